//! Passes the output of a step on line by line, with credentials replaced, and collects what tests skipped and
//! why tests failed.

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

/// Kept lines of a panic message.
const PANIC_LINES: usize = 12;

/// The report of a failed test: its first line and its panic message.
type Report = (String, Vec<String>);

/// What the output of a command contained.
#[derive(Debug, Default)]
pub(super) struct Findings {
    /// Whether it contained a secret.
    pub(super) has_secret: bool,
    /// What tests skipped, and why.
    pub(super) skipped: BTreeSet<String>,
    /// The reports of failed tests.
    pub(super) failed: Vec<Report>,
}

/// Finds the reports of failed tests in the output of a test program.
#[derive(Default)]
struct ReportReader {
    is_in_report: bool,
}

impl ReportReader {
    fn read(&mut self, line: &str, failed: &mut Vec<Report>) {
        if line.starts_with("---- ") && line.ends_with(" ----") {
            self.is_in_report = true;
            failed.push((line.to_owned(), Vec::new()));
        } else if line == "failures:" {
            // Once before the reports and once after them.
            self.is_in_report = false;
        } else if let Some((_, lines)) = failed.last_mut().filter(|_| self.is_in_report) {
            let is_message = !lines.is_empty() || line.contains(" panicked at ");
            if is_message && lines.len() < PANIC_LINES {
                lines.push(line.to_owned());
            }
        }
    }
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
    let mut reports = ReportReader::default();
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
        reports.read(&line, &mut findings.borrow_mut().failed);
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
    async fn the_message_of_each_failed_test_is_kept() {
        let long = "more\n".repeat(20);
        let output = format!(
            "test a ... FAILED\n\nfailures:\n\n---- a stdout ----\nprinted\nthread 'a' panicked at x.rs:1:2:\n\
             it is 2\n\n---- b stdout ----\nthread 'b' panicked at x.rs:3:4:\n{long}\n\nfailures:\n    a\n    b\n"
        );
        let findings = RefCell::default();
        pass_on(Some(output.as_bytes()), Vec::new(), &[], &findings).await;
        let failed = findings.take().failed;
        let [(first, of_a), (second, of_b)] = failed.as_slice() else { panic!("{failed:?}") };
        assert_eq!([first, second], ["---- a stdout ----", "---- b stdout ----"]);
        assert_eq!(of_a, &["thread 'a' panicked at x.rs:1:2:", "it is 2", ""]);
        assert_eq!(of_b.len(), PANIC_LINES);
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
