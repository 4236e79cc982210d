//! Parses the command line of any program of the project, with one-line errors.

use std::{env, error::Error as _};

use clap::{
    Command, Parser,
    error::{ContextKind, ContextValue, ErrorKind},
};

use crate::{failure::Failure, terminal::printed};

/// Parses the arguments of this process. `None` after `--help` or `--version`, which is printed here.
///
/// # Errors
/// The arguments do not parse (exit code 2), or the help cannot be written.
pub fn command_line<C: Parser>() -> Result<Option<C>, Failure> {
    let command = without_empty_variables(C::command());
    let error = match command.try_get_matches().and_then(|matches| C::from_arg_matches(&matches)) {
        Ok(cli) => return Ok(Some(cli)),
        Err(error) => error,
    };
    match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => printed(error.print()).map(|()| None),
        ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {
            let help = error.to_string();
            let usage = help.split_once("Usage: ").map_or("", |(_, usage)| usage);
            let command = usage.split(" <").next().unwrap_or_default();
            Err(Failure::usage(match command {
                "mesh" => "say what to do, such as `mesh up`; `mesh --help` lists the commands".to_owned(),
                command => format!("say what to do; `{command} --help` lists the commands"),
            }))
        }
        ErrorKind::ValueValidation => {
            let text = |kind| match error.get(kind) {
                Some(ContextValue::String(text)) => text.as_str(),
                _ => "",
            };
            let (argument, value) = (text(ContextKind::InvalidArg), text(ContextKind::InvalidValue));
            // An address may contain a password.
            let is_secret = argument.starts_with("--api-key") || value.contains("://");
            let value = if is_secret { String::new() } else { format!(" {value:?}") };
            let why = error.source().map_or_else(String::new, |why| format!(": {why}"));
            Err(Failure::usage(format!(
                "{argument}{value} cannot be read{why}; `--help` after the command lists the forms"
            )))
        }
        _ => {
            let text = error.to_string();
            let what = text.split("\n\n").next().unwrap_or_default().trim_start_matches("error: ");
            let nearest = match error.get(ContextKind::SuggestedValue) {
                Some(ContextValue::String(value)) => format!("; the nearest is {value}"),
                _ => String::new(),
            };
            Err(Failure::usage(format!("{what}{nearest}; `--help` after the command lists the forms")))
        }
    }
}

/// Options whose variables are empty count as not given, as in the services.
fn without_empty_variables(command: Command) -> Command {
    let is_empty = |name: &std::ffi::OsStr| env::var_os(name).is_some_and(|value| value.is_empty());
    let command = command.mut_args(|argument| match argument.get_env().is_some_and(is_empty) {
        true => argument.env(None::<&'static str>),
        false => argument,
    });
    command.mut_subcommands(without_empty_variables)
}
