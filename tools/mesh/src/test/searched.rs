//! Passes the output of a step on line by line, with credentials replaced.

use std::{
    cell::Cell,
    io::{self, IsTerminal as _, Write},
    pin::pin,
    process::{ExitStatus, Stdio},
    time::Duration,
};

use futures_util::future::join;
use mesh_launcher::process_group;
use tokio::{
    io::{AsyncBufReadExt as _, AsyncRead, BufReader},
    process::Command,
    time::timeout,
};

/// How long the output of an ended command is still read.
const LEFT_OPEN: Duration = Duration::from_secs(2);
/// The replacement of a credential.
const HIDDEN: &str = "[a credential stood here]";

/// Runs a command. Returns its status, and whether its output contained one of these secrets.
pub(super) async fn run(mut command: Command, secrets: &[String]) -> io::Result<(ExitStatus, bool)> {
    if io::stderr().is_terminal() {
        command.env("CARGO_TERM_COLOR", "always");
    }
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    process_group::run_with(command, async |child| {
        let shown = Cell::new(false);
        let out = pass_on(child.stdout.take(), io::stdout(), secrets, &shown);
        let err = pass_on(child.stderr.take(), io::stderr(), secrets, &shown);
        let mut passing = pin!(join(out, err));
        tokio::select! {
            _ = &mut passing => {}
            // A process that outlives the command may keep the streams open.
            _ = child.wait() => drop(timeout(LEFT_OPEN, passing).await),
        }
        shown.get()
    })
    .await
}

/// Passes lines on with secrets replaced; returns whether there were any.
async fn pass_on(
    from: Option<impl AsyncRead + Unpin>,
    mut to: impl Write,
    secrets: &[String],
    shown: &Cell<bool>,
) {
    let Some(from) = from else { return };
    let mut lines = BufReader::new(from).split(b'\n');
    while let Ok(Some(line)) = lines.next_segment().await {
        let mut line = String::from_utf8_lossy(&line).into_owned();
        for secret in secrets {
            if line.contains(secret.as_str()) {
                shown.set(true);
                line = line.replace(secret.as_str(), HIDDEN);
            }
        }
        // A closed pipe is no failure: its reader has read enough.
        let _ = writeln!(to, "{line}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn secrets_are_hidden_and_reported() {
        let secrets = ["canary".to_owned()];
        let (mut to, shown) = (Vec::new(), Cell::new(false));
        pass_on(Some(&b"one\n"[..]), &mut to, &secrets, &shown).await;
        assert!(!shown.get());
        pass_on(Some(&b"url://a:canary@b\n"[..]), &mut to, &secrets, &shown).await;
        assert!(shown.get());
        assert_eq!(String::from_utf8(to).unwrap(), format!("one\nurl://a:{HIDDEN}@b\n"));
    }

    #[tokio::test]
    async fn both_streams_of_a_command_are_searched() {
        for command in ["echo canary", "echo canary >&2"] {
            let mut shell = Command::new("/bin/sh");
            shell.args(["-c", command]);
            let (status, shown) = run(shell, &["canary".to_owned()]).await.unwrap();
            assert!(status.success() && shown);
        }
    }
}
