//! Passes the output of a step on line by line, with credentials replaced, and collects what tests skipped.

use std::{
    cell::RefCell,
    collections::BTreeSet,
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

/// The start of a line by which a test says what it leaves out.
const SKIPPED: &str = "skipped: ";

/// What the output of a command contained.
#[derive(Debug, Default)]
pub(super) struct Findings {
    /// Whether it contained a secret.
    pub(super) has_secret: bool,
    /// What tests skipped, and why.
    pub(super) skipped: BTreeSet<String>,
}

/// Runs a command. Returns its status and what its output contained.
pub(super) async fn run(mut command: Command, secrets: &[String]) -> io::Result<(ExitStatus, Findings)> {
    if io::stderr().is_terminal() {
        command.env("CARGO_TERM_COLOR", "always");
    }
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    process_group::run_with(command, async |child| {
        let findings = RefCell::default();
        let out = pass_on(child.stdout.take(), io::stdout(), secrets, &findings);
        let err = pass_on(child.stderr.take(), io::stderr(), secrets, &findings);
        let mut passing = pin!(join(out, err));
        tokio::select! {
            _ = &mut passing => {}
            // A process that outlives the command may keep the streams open.
            _ = child.wait() => drop(timeout(LEFT_OPEN, passing).await),
        }
        findings.take()
    })
    .await
}

/// Passes lines on with secrets replaced, and records what they contain.
async fn pass_on(
    from: Option<impl AsyncRead + Unpin>,
    mut to: impl Write,
    secrets: &[String],
    findings: &RefCell<Findings>,
) {
    let Some(from) = from else { return };
    let mut lines = BufReader::new(from).split(b'\n');
    while let Ok(Some(line)) = lines.next_segment().await {
        let mut line = String::from_utf8_lossy(&line).into_owned();
        for secret in secrets {
            if line.contains(secret.as_str()) {
                findings.borrow_mut().has_secret = true;
                line = line.replace(secret.as_str(), HIDDEN);
            }
        }
        if let Some(what) = line.strip_prefix(SKIPPED) {
            findings.borrow_mut().skipped.insert(what.to_owned());
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
        let (mut to, findings) = (Vec::new(), RefCell::default());
        pass_on(Some(&b"one\nskipped: two\n"[..]), &mut to, &secrets, &findings).await;
        assert!(!findings.borrow().has_secret);
        pass_on(Some(&b"url://a:canary@b\n"[..]), &mut to, &secrets, &findings).await;
        assert!(findings.borrow().has_secret && findings.borrow().skipped.iter().eq(["two"]));
        assert_eq!(String::from_utf8(to).unwrap(), format!("one\nskipped: two\nurl://a:{HIDDEN}@b\n"));
    }

    #[tokio::test]
    async fn both_streams_of_a_command_are_searched() {
        for command in ["echo canary", "echo canary >&2"] {
            let mut shell = Command::new("/bin/sh");
            shell.args(["-c", command]);
            let (status, findings) = run(shell, &["canary".to_owned()]).await.unwrap();
            assert!(status.success() && findings.has_secret);
        }
    }
}
