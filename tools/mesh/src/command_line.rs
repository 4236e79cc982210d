//! Reading a command line, for all programs of the project in the same way.

use clap::{
    Parser,
    error::{ContextKind, ContextValue, ErrorKind},
};

use crate::failure::Failure;

/// Reads the arguments of this process. Asking for help is not a failure: then there is nothing left to do.
///
/// # Errors
///
/// The arguments are none of the forms.
pub fn command_line<C: Parser>() -> Result<Option<C>, Failure> {
    let error = match C::try_parse() {
        Ok(cli) => return Ok(Some(cli)),
        Err(error) => error,
    };
    match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => {
            // Whoever closed the pipe has read enough.
            let _ = error.print();
            Ok(None)
        }
        ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {
            Err(Failure::usage("say what to do, such as `mesh up`; `mesh --help` lists the commands"))
        }
        _ => {
            let text = error.to_string();
            let what = text.split("\n\n").next().unwrap_or_default().trim_start_matches("error: ");
            let nearest = match error.get(ContextKind::SuggestedValue) {
                Some(ContextValue::String(value)) => format!("; the nearest is {value}"),
                _ => String::new(),
            };
            Err(Failure::usage(format!("{what}{nearest}; `mesh --help` lists the forms")))
        }
    }
}
