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

use crate::{
    Outcome,
    up::installed::{Installed, PATIENCE, Up, get_json, hash_of},
};

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
const ELSEWHERE: [&str; 6] = ["npx", "schemathesis", "for", "kind", "kubectl", "git"];

/// A command of a document with the answer that is shown, or a file with its content.
struct Shown {
    document: PathBuf,
    /// The command, or the name of the file.
    text: String,
    answer: Option<String>,
    is_file: bool,
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

/// The name in a line that introduces the content of a file: "`last.py`:".
fn file_name(line: &str) -> Option<&str> {
    // A file of this machine is not written.
    line.strip_prefix('`')?.strip_suffix("`:").filter(|name| name.contains('.') && !name.starts_with('/'))
}

/// The commands of a document's plain blocks: lines that begin with a program, or with `$` where answers are
/// shown; a line that ends in `\` continues. Blocks below the name of a file are its content.
fn shown(document: &Path) -> Vec<Shown> {
    let text = fs::read_to_string(document).unwrap();
    let text = text.replace(" \\\n", " ");
    let (mut found, mut block, mut before) = (Vec::<Shown>::new(), None::<&str>, "");
    for line in text.lines() {
        if let Some(language) = line.trim_start().strip_prefix("```") {
            let file = file_name(before).filter(|_| block.is_none() && !language.is_empty());
            found.extend(file.map(|name| {
                let (document, text) = (document.to_owned(), name.to_owned());
                Shown { document, text, answer: Some(String::new()), is_file: true }
            }));
            block = if block.is_some() { None } else { Some(if file.is_some() { "file" } else { language }) };
            continue;
        }
        match block {
            None if !line.is_empty() => before = line,
            Some("file") => found.last_mut().unwrap().answer.as_mut().unwrap().extend([line, "\n"]),
            Some("") => add_command(&mut found, document, line),
            _ => {}
        }
    }
    found
}

/// Adds a line of a plain block: a command, or a line of the last command's answer.
fn add_command(found: &mut Vec<Shown>, document: &Path, line: &str) {
    let asks = line.strip_prefix("$ ");
    let command = asks.unwrap_or(line);
    let program = command.split(' ').next().unwrap_or_default();
    let is_command =
        ["curl", "grpcurl", "nats", "cargo", "mesh"].contains(&program) || ELSEWHERE.contains(&program);
    if asks.is_some() || is_command {
        let text = command.split("  #").next().unwrap_or_default().split(" # ").next().unwrap_or_default();
        let text = text.trim().to_owned();
        found.push(Shown { document: document.to_owned(), text, answer: None, is_file: false });
    } else if let Some(last) = found.last_mut().filter(|last| !line.is_empty() && !last.is_file) {
        last.answer.get_or_insert_default().extend([line, "\n"]);
    }
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
    // After the command and its subcommands there are values.
    let mut path: Vec<&str> = words.iter().take_while(is_name).take(3).copied().collect();
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
        for shown in shown(&document).iter().filter(|shown| !shown.is_file) {
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
                    let last = if words[1] == "demo" { &words[2] } else { &words[1] };
                    typed = typed.replacen(last, &format!("{last} --url {}", self.up.http), 1);
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

    /// Writes a file that a document shows, with the address of this test's gateway.
    fn save(&self, file: &Shown) {
        let content = file.answer.as_deref().unwrap().replace("http://127.0.0.1:8080", &self.up.http);
        fs::write(self.folder.join(&file.text), content).unwrap();
    }

    /// The first program of a command, or the `jq` behind it, that is not here.
    fn lacks(&self, command: &str) -> Option<String> {
        let program = command.split(' ').next().unwrap_or_default();
        let is_here = is_there(program) || program.contains('/') && self.folder.join(program).is_file();
        let lacks = if is_here { "jq" } else { program };
        (!is_here || command.contains("| jq ") && !is_there("jq")).then(|| lacks.to_owned())
    }

    /// Runs a command and returns its standard output.
    async fn run(&self, command: &str) -> String {
        let outcome = self.outcome(command).await;
        assert_eq!(outcome.code, Some(0), "{command}: {}", outcome.error);
        outcome.text().to_owned()
    }

    async fn outcome(&self, command: &str) -> Outcome {
        let typed = self.typed(command);
        // `mesh export` does not replace the file of an earlier command.
        for file in fs::read_dir(&self.folder).unwrap() {
            let file = file.unwrap().path();
            if command.contains("export") && file.extension().is_some_and(|extension| extension == "zip") {
                fs::remove_file(file).unwrap();
            }
        }
        let path = std::env::var("PATH").unwrap_or_default();
        let mut shell = Command::new("sh");
        shell.args(["-c", &typed]).current_dir(&self.folder);
        shell.env("PATH", format!("{}:{path}", self.installed.folder.path().display()));
        Outcome::of(&mut shell, b"").await
    }
}

/// The stable part of an answer: its names, and the ids.
fn shape(value: &Value) -> Value {
    match value {
        Value::Object(fields) => {
            let of_block = |name: &str| ["hash", "txHash"].contains(&name);
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
        // Numbers, keys and hashes differ from run to run.
        let words = |text: &str| {
            let line = text.lines().next().unwrap_or_default().to_owned();
            let has_digit = |word: &&str| word.bytes().any(|byte| byte.is_ascii_digit());
            line.split_whitespace().filter(|word| !has_digit(word)).map(str::to_owned).collect::<Vec<_>>()
        };
        assert_eq!(words(output), words(answer), "{document}: {}", shown.text);
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

/// Runs the commands of one document. Returns what was left out, because a program or packages are not here.
async fn run_document(runner: &CommandRunner<'_>, all: Vec<Shown>) -> BTreeSet<String> {
    let (mut skipped, mut has_packages) = (BTreeSet::new(), true);
    for shown in all {
        if shown.is_file {
            runner.save(&shown);
            continue;
        }
        let program = shown.text.split(' ').next().unwrap_or_default();
        let words = of_mesh(&shown.text);
        let is_left_out = match &words {
            Some(words) => words.first().is_some_and(|name| !RUN.contains(name)),
            // Other commands of cargo compile for minutes.
            None => program == "cargo" || ELSEWHERE.contains(&program),
        };
        if is_left_out {
            continue;
        }
        if program == "nats" {
            runner.ask_bus(&shown.text).await;
        }
        if let Some(program) = runner.lacks(&shown.text).filter(|_| words.is_none()) {
            skipped.insert(program);
            continue;
        }
        if shown.text.contains(" install ") {
            has_packages = runner.outcome(&shown.text).await.code == Some(0);
            if !has_packages {
                skipped.insert(format!("network or registry for `{}`", shown.text));
            }
            continue;
        }
        if !has_packages && (program.contains('/') || program == "node") {
            continue;
        }
        let mut output = String::new();
        for command in shown.text.split("; ") {
            output.push_str(&runner.run(command).await);
        }
        compare(&shown, &output);
    }
    skipped
}

#[tokio::test]
async fn what_the_documents_show_can_be_typed() {
    let installed = Installed::with_umask("000");
    let up = installed.up_with(&["--demo-blocks", BLOCKS]).await;
    installed.keeps_secrets();
    is_sealed(&up).await;
    let mut skipped = BTreeSet::new();
    for (number, document) in documents().iter().enumerate() {
        let shown = shown(document);
        if shown.is_empty() {
            continue;
        }
        let runner = CommandRunner::new(&installed, &up, format!("desk-{number}")).await;
        skipped.extend(run_document(&runner, shown).await);
    }
    for lacking in skipped {
        mesh_testbed::say(&format!("skipped: commands of the documents, because there is no {lacking}"));
    }
    up.stop(rustix::process::Signal::INT).await;
}
