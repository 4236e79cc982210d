//! Parses the command line of any program of the project, with one-line errors.

use clap::{
    Parser,
    error::{ContextKind, ContextValue, ErrorKind},
};

use crate::failure::Failure;

/// Parses the arguments of this process. `None` after `--help` or `--version`, which is printed here.
///
/// # Errors
///
/// The arguments do not parse; exit code 2.
pub fn command_line<C: Parser>() -> Result<Option<C>, Failure> {
    let error = match C::try_parse() {
        Ok(cli) => return Ok(Some(cli)),
        Err(error) => error,
    };
    match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => {
            // A closed pipe is no failure: its reader has read enough.
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
