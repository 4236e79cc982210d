//! Every command in the documents: run against a mesh on this machine where possible, else its flags are
//! compared with the help of the command line.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
};

use mesh_testbed::{Database, eventually};
use serde_json::{Map, Value};
use tokio::process::Command;

use super::installed::{Installed, PATIENCE, Up, get_json, hash_of};
use crate::command::Outcome;

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
/// Number of blocks of the demo network that the examples need.
const BLOCKS: &str = "5000";
const SEGMENTS: usize = 5;

/// Commands of `mesh` that are run here. The others do not end, or run this test: only their flags are
/// checked.
const RUN: [&str; 11] =
    ["ps", "restart", "scale", "stop", "start", "export", "seal", "history", "migrate", "tx", "watch"];
/// Commands of `mesh` that work on a home.
const AT_HOME: [&str; 6] = ["ps", "restart", "scale", "stop", "start", "seal"];
/// First words of commands that need servers or programs outside this test; they are not run.
const ELSEWHERE: [&str; 5] = ["npx", "schemathesis", "for", "kind", "kubectl"];

/// A command of a document, with the answer that is shown, if any.
struct Shown {
    document: PathBuf,
    text: String,
    answer: Option<String>,
}

fn documents() -> Vec<PathBuf> {
    let root = Path::new(ROOT);
    let mut found = vec![root.join("README.md"), root.join("ARCHITECTURE.md")];
    let mut folders = vec![root.join("docs"), root.join("services")];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            // Installed packages contain documents of their own.
            if path.is_dir() && !path.ends_with("node_modules") {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "md") {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}

/// The commands of a document's plain blocks: lines that begin with a program, or with `$` where answers are
/// shown.
fn shown(document: &Path) -> Vec<Shown> {
    let text = fs::read_to_string(document).unwrap();
    let (mut found, mut is_inside, mut is_plain) = (Vec::<Shown>::new(), false, false);
    for line in text.lines() {
        if let Some(language) = line.trim_start().strip_prefix("```") {
            is_inside = !is_inside;
            is_plain = language.is_empty();
            continue;
        }
        if !is_inside || !is_plain {
            continue;
        }
        let asks = line.strip_prefix("$ ");
        let command = asks.unwrap_or(line);
        let program = command.split(' ').next().unwrap_or_default();
        let is_command =
            ["curl", "grpcurl", "nats", "cargo", "mesh"].contains(&program) || ELSEWHERE.contains(&program);
        if asks.is_some() || is_command {
            let text =
                command.split("  #").next().unwrap_or_default().split(" # ").next().unwrap_or_default();
            found.push(Shown { document: document.to_owned(), text: text.trim().to_owned(), answer: None });
        } else if let Some(last) = found.last_mut().filter(|_| !line.is_empty()) {
            last.answer.get_or_insert_default().push_str(line);
        }
    }
    found
}

/// The words of a command of `mesh`, without those that call it.
fn of_mesh(text: &str) -> Option<Vec<&str>> {
    let rest = text.strip_prefix("cargo mesh").or_else(|| text.strip_prefix("mesh"))?;
    (rest.is_empty() || rest.starts_with(' ')).then(|| rest.split_whitespace().collect())
}

/// Checks the flags of a command of `mesh` against its help.
fn is_known(document: &Path, text: &str) {
    let Some(words) = of_mesh(text) else { return };
    let is_name = |word: &&&str| word.bytes().all(|byte| byte.is_ascii_lowercase());
    // After the command and its subcommand there are values.
    let mut path: Vec<&str> = words.iter().take_while(is_name).take(2).copied().collect();
    let help = loop {
        let help = std::process::Command::new(env!("CARGO_BIN_EXE_mesh")).args(&path).arg("--help").output();
        let help = help.unwrap();
        if help.status.success() || path.pop().is_none() {
            break String::from_utf8(help.stdout).unwrap();
        }
    };
    assert!(words.is_empty() || !path.is_empty(), "{}: {text}: there is no such command", document.display());
    for word in &words {
        let flag = word.trim_start_matches('[').trim_end_matches(']');
        if flag.starts_with("--") {
            let mut flags = help.split(|letter: char| !letter.is_ascii_alphanumeric() && letter != '-');
            assert!(flags.any(|known| known == flag), "{}: {text}: there is no {flag}", document.display());
        }
    }
}

#[test]
fn what_the_documents_call_is_there() {
    for document in documents() {
        for shown in shown(&document) {
            shown.text.split("; ").for_each(|command| is_known(&document, command));
        }
        let text = fs::read_to_string(&document).unwrap();
        // Every second part is between two backticks.
        text.split('`').skip(1).step_by(2).for_each(|code| is_known(&document, code));
    }
}

/// Runs the commands of one document in its own folder.
struct CommandRunner<'a> {
    installed: &'a Installed,
    up: &'a Up,
    database: Database,
    folder: PathBuf,
}

impl<'a> CommandRunner<'a> {
    async fn new(installed: &'a Installed, up: &'a Up, name: String) -> Self {
        let folder = installed.folder.path().join(name);
        fs::create_dir(&folder).unwrap();
        fs::write(folder.join("command.bin"), b"a command").unwrap();
        Self { installed, up, database: Database::fresh().await, folder }
    }

    /// A command with the addresses and paths of this test.
    fn typed(&self, command: &str) -> String {
        let home = self.installed.home();
        let mut typed =
            command.replace("http://127.0.0.1:8080", &self.up.http).replace("127.0.0.1:9090", &self.up.grpc);
        typed = typed.replace(".mesh/", &format!("{}/", home.display()));
        if let Some(words) = of_mesh(command) {
            let words: Vec<String> = words
                .iter()
                .map(|word| match word.trim_start_matches('[').trim_end_matches(']') {
                    "DIR" => home.display().to_string(),
                    "URL" => format!("'{}'", self.database.url()),
                    "TABLE" => "trades".to_owned(),
                    "A" => "1".to_owned(),
                    "B" => "1000".to_owned(),
                    "HASH" => hash_of(&fs::read(self.folder.join("tx.json")).unwrap()),
                    word => word.to_owned(),
                })
                .collect();
            typed = format!("mesh {}", words.join(" "));
            match words.first().map(String::as_str) {
                Some(name) if AT_HOME.contains(&name) => {
                    typed.push_str(&format!(" --home {}", home.display()));
                }
                Some("export") => typed.push_str(&format!(" --url {}", self.up.http)),
                Some("watch") => {
                    typed = typed.replacen("watch", &format!("watch --count 1 --url {}", self.up.http), 1);
                }
                // `--url` goes after the subcommand, because the last word may be a redirection.
                Some("tx") if words[1] != "keygen" => {
                    typed = typed.replacen(&words[1], &format!("{} --url {}", words[1], self.up.http), 1);
                }
                _ => {}
            }
        }
        // A stream does not end by itself.
        if command.starts_with("curl -N ") {
            typed.push_str(" | grep -m 1 '^data: {'");
        }
        typed
    }

    /// Asks the services of the bus as the tool of NATS would, also where that is not installed.
    async fn ask_bus(&self, command: &str) {
        let typed = self.typed(command);
        let words = typed.split_once("--server ").expect("the server's address").1;
        let (address, words) = words.split_once("--inbox-prefix ").expect("the prefix of inboxes");
        let address =
            Outcome::of(Command::new("sh").args(["-c", &format!("printf %s {address}")]), b"").await;
        let prefix = words.split(' ').next().unwrap_or_default();
        let url = address.text().strip_prefix("nats://").expect("a URL");
        let (user, server) = url.split_once('@').expect("a user");
        let (user, password) = user.split_once(':').expect("a password");
        let options = async_nats::ConnectOptions::new().custom_inbox_prefix(prefix);
        let options = options.user_and_password(user.to_owned(), password.to_owned());
        let client = options.connect(server).await.unwrap_or_else(|error| panic!("{typed}: {error}"));
        let reply = client.request("$SRV.PING", "".into()).await;
        assert!(reply.is_ok(), "{typed}: {reply:?}");
    }

    /// Runs a command and returns its standard output.
    async fn run(&self, command: &str) -> String {
        let typed = self.typed(command);
        // `mesh export` does not replace the file of an earlier command.
        for file in fs::read_dir(&self.folder).unwrap() {
            let file = file.unwrap().path();
            if file.extension().is_some_and(|extension| extension == "zip") {
                fs::remove_file(file).unwrap();
            }
        }
        let path = std::env::var("PATH").unwrap_or_default();
        let mut shell = Command::new("sh");
        shell.args(["-c", &typed]).current_dir(&self.folder);
        shell.env("PATH", format!("{}:{path}", self.installed.folder.path().display()));
        let outcome = Outcome::of(&mut shell, b"").await;
        assert_eq!(outcome.code, Some(0), "{typed}: {}", outcome.error);
        outcome.text().to_owned()
    }
}

/// The stable part of an answer: its names, and the ids.
fn shape(value: &Value) -> Value {
    match value {
        Value::Object(fields) => {
            let of_block = |name: &str| name == "hash";
            let stable = fields
                .iter()
                .map(|(name, value)| (name.clone(), if of_block(name) { Value::Null } else { shape(value) }));
            Value::Object(stable.collect::<Map<_, _>>())
        }
        Value::Array(values) => values.first().map(shape).into_iter().collect(),
        Value::String(text) if text.len() == 64 && text.bytes().all(|byte| byte.is_ascii_hexdigit()) => {
            value.clone()
        }
        Value::String(_) => "text".into(),
        other => other.clone(),
    }
}

/// Asserts that the output is the one that the document shows.
fn compare(shown: &Shown, output: &str) {
    let Some(answer) = &shown.answer else { return };
    let document = shown.document.display();
    if let Ok(expected) = serde_json::from_str::<Value>(answer) {
        let found: Value =
            serde_json::from_str(output).unwrap_or_else(|_| panic!("{document}: {}: {output}", shown.text));
        assert_eq!(shape(&found), shape(&expected), "{document}: {}", shown.text);
    } else {
        // Numbers differ from run to run.
        let ends = |text: &str| {
            let mut words = text.split_whitespace().map(str::to_owned);
            (words.nth(1), words.next_back())
        };
        assert_eq!(ends(output), ends(answer), "{document}: {}", shown.text);
    }
}

async fn is_sealed(up: &Up) {
    eventually(PATIENCE * 4, "the history is not sealed", async || {
        let answer = get_json(&format!("{}/api/v2/networkhistory/segments", up.http)).await;
        answer["segments"].as_array().is_some_and(|segments| segments.len() >= SEGMENTS)
    })
    .await;
}

fn is_there(program: &str) -> bool {
    std::env::split_paths(&std::env::var_os("PATH").unwrap_or_default())
        .any(|folder| folder.join(program).is_file())
}

#[tokio::test]
async fn what_the_documents_show_can_be_typed() {
    let installed = Installed::new();
    let up = installed.up_with(&["--demo-blocks", BLOCKS]).await;
    is_sealed(&up).await;
    let mut skipped = BTreeSet::new();
    for (number, document) in documents().iter().enumerate() {
        let shown = shown(document);
        if shown.is_empty() {
            continue;
        }
        let runner = CommandRunner::new(&installed, &up, format!("desk-{number}")).await;
        for shown in shown {
            let program = shown.text.split(' ').next().unwrap_or_default();
            if ELSEWHERE.contains(&program) {
                continue;
            }
            let words = of_mesh(&shown.text);
            let name = words.as_ref().and_then(|words| words.first());
            if name.is_some_and(|name| !RUN.contains(name)) {
                continue;
            }
            if program == "nats" {
                runner.ask_bus(&shown.text).await;
            }
            if words.is_none() && !is_there(program) {
                skipped.insert(program.to_owned());
                continue;
            }
            let mut output = String::new();
            for command in shown.text.split("; ") {
                output.push_str(&runner.run(command).await);
            }
            compare(&shown, &output);
        }
    }
    for program in skipped {
        eprintln!("skipped: commands of the documents, because there is no {program}");
    }
    up.stop(rustix::process::Signal::INT).await;
}
