//! The words of a step, passed on line by line and searched for credentials, which nothing may show.

use std::{
    cell::Cell,
    io::{self, IsTerminal as _, Write},
    pin::pin,
    process::{ExitStatus, Stdio},
    time::Duration,
};

use futures_util::future::join;
use tokio::{
    io::{AsyncBufReadExt as _, AsyncRead, BufReader},
    process::Command,
    time::timeout,
};

use crate::group;

/// How long the streams of a command that has ended are read on.
const LEFT_OPEN: Duration = Duration::from_secs(2);
/// What stands where one stood.
const HIDDEN: &str = "[a credential stood here]";

/// Runs a command. Gives its status, and whether it showed one of these.
pub(super) async fn run(mut command: Command, secrets: &[String]) -> io::Result<(ExitStatus, bool)> {
    if io::stderr().is_terminal() {
        command.env("CARGO_TERM_COLOR", "always");
    }
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    group::run_with(command, async |child| {
        let shown = Cell::new(false);
        let out = pass_on(child.stdout.take(), io::stdout(), secrets, &shown);
        let err = pass_on(child.stderr.take(), io::stderr(), secrets, &shown);
        let mut passing = pin!(join(out, err));
        tokio::select! {
            _ = &mut passing => {}
            // Somebody whom the command left behind may keep the streams open for ever.
            _ = child.wait() => drop(timeout(LEFT_OPEN, passing).await),
        }
        shown.get()
    })
    .await
}

/// Passes lines on without these, and notes whether there were any.
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
    async fn what_is_secret_is_hidden_and_told_of() {
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
