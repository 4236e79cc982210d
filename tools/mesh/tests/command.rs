//! Runs the command line, and judges what it says.

use std::{
    process::{Output, Stdio},
    time::Duration,
};

use serde_json::Value;
use tokio::{io::AsyncWriteExt as _, process::Command, time::timeout};

/// Timeout of a command that ends by itself.
const LIMIT: Duration = Duration::from_secs(180);

/// What a command printed, and its exit code.
#[derive(Debug)]
pub(crate) struct Outcome {
    pub(crate) code: Option<i32>,
    pub(crate) bytes: Vec<u8>,
    pub(crate) error: String,
}

impl Outcome {
    /// Runs a command to its end, with this standard input.
    pub(crate) async fn of(command: &mut Command, input: &[u8]) -> Self {
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
        let mut child = command.spawn().unwrap();
        let mut stdin = child.stdin.take().unwrap();
        let write = async move {
            // A command that needs no input may be gone already.
            let _ = stdin.write_all(input).await;
        };
        let (output, ()) = tokio::join!(timeout(LIMIT, child.wait_with_output()), write);
        output.unwrap_or_else(|_| panic!("{command:?} does not end")).unwrap().into()
    }

    /// Runs a command that writes its standard output to a file or a pipe.
    pub(crate) async fn writing_to(command: &mut Command, file: impl Into<Stdio>) -> Self {
        let child = command.stdout(file).stderr(Stdio::piped()).kill_on_drop(true).spawn().unwrap();
        timeout(LIMIT, child.wait_with_output()).await.expect("it does not end").unwrap().into()
    }

    /// Standard output.
    pub(crate) fn text(&self) -> &str {
        std::str::from_utf8(&self.bytes).unwrap()
    }

    /// Standard output as JSON.
    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.bytes).unwrap_or_else(|error| panic!("no JSON ({error}): {self:?}"))
    }

    /// Expects exit code 0; returns standard output.
    #[track_caller]
    pub(crate) fn done(&self) -> &str {
        assert_eq!(self.code, Some(0), "{}", self.error);
        self.text()
    }

    /// Expects exit code 0, and that nothing is left to read.
    #[track_caller]
    pub(crate) fn ends_silently(&self) {
        assert_eq!((self.done(), self.error.as_str()), ("", ""));
    }

    /// Expects this exit code, and one line on standard error with these parts.
    #[track_caller]
    pub(crate) fn fails(&self, code: i32, parts: &[&str]) {
        assert_eq!((self.code, self.error.lines().count()), (Some(code), 1), "{}", self.error);
        says(&self.error, parts);
    }
}

impl From<Output> for Outcome {
    fn from(output: Output) -> Self {
        let error = String::from_utf8(output.stderr).unwrap();
        Self { code: output.status.code(), bytes: output.stdout, error }
    }
}

/// Expects these parts in a text.
#[track_caller]
pub(crate) fn says(text: &str, parts: &[&str]) {
    for part in parts {
        assert!(text.contains(part), "no {part:?} in: {text}");
    }
}

/// The command line with these arguments.
pub(crate) fn command(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_mesh"));
    command
        .args(args)
        .env_remove("MESH_POW_PREFIX")
        .env_remove("MESH_RELAY_SIGNATURE_ALGO")
        .env_remove("MESH_API_KEY");
    command
}

/// Runs the command line without input.
pub(crate) async fn mesh(args: &[&str]) -> Outcome {
    Outcome::of(&mut command(args), b"").await
}
