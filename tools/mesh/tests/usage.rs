//! Usage errors of the command line: exit codes, and one sentence that says what to do next.

use mesh_testbed::{Database, nats};

use crate::command::{Outcome, command, mesh, says};

/// Expects nothing but one line with these parts on standard error.
async fn fails(args: &[&str], code: i32, parts: &[&str]) {
    let outcome = mesh(args).await;
    outcome.fails(code, parts);
    assert_eq!(outcome.text(), "", "{args:?}");
}

#[tokio::test]
async fn wrong_usage_is_one_sentence_and_code_2() {
    for (line, parts) in [
        ("", &["mesh up`"][..]),
        ("fly", &["fly", "--help"]),
        ("up --port http", &["--port", "http"]),
        ("up --replicas unknown=2", &["unknown", "query"]),
        ("up --env NAME", &["NAME=VALUE"]),
        ("up --env =b", &["NAME=VALUE"]),
        ("restart", &["SERVICE"]),
        ("stop query=first", &["REPLICA"]),
        ("stop edge=", &["REPLICA"]),
        ("stop nobody", &["nobody", "postgres", "decoder"]),
        ("scale query", &["SERVICE=N"]),
        ("scale query=-1", &["between 0 and"]),
        ("scale query=1000", &["between 0 and"]),
        ("scale postgres=2", &["postgres", "query"]),
        ("load folder", &["--postgres"]),
        ("history", &["mesh history --help"]),
        ("history import folder", &["--postgres"]),
        ("seal --interval 0", &["--interval"]),
        (
            "export trade --from-block 1 --to-block 9",
            &["trade", "nearest is trades", "balances", "withdrawals"],
        ),
        ("export TABLE_UNSPECIFIED --from-block 1 --to-block 9", &["TABLE_UNSPECIFIED", "market_data"]),
        ("export trades --from-block -1 --to-block 9", &["--from-block"]),
        ("export trades --from-block x --to-block 9", &["--from-block", "first"]),
        ("export trades --from-block 1 --to-block 9223372036854775808", &["--to-block", "last"]),
        ("export trades --from-block 1", &["--to-block"]),
        ("export trades --from-block 1 --to-block 2 --url h", &["--url", "http://"]),
        ("up --node node:26657", &["--node", "http://host:port"]),
        ("up --home /proc/none --decoder a'b", &["--decoder", "not a command"]),
        ("up --consensus raft", &["raft", "cometbft"]),
        ("up --consensus cometbft --node http://node:26657", &["--consensus", "--node"]),
        ("tx", &["mesh tx --help"]),
        ("tx sign --key k", &["--input", "--hex", "--base64"]),
        ("tx sign --key k --hex 6869 --base64 aGk=", &["--hex", "--base64"]),
        ("tx sign --key k --hex 686", &["--hex"]),
        ("tx sign --key k --hex=", &["--hex"]),
        ("tx sign --key k --base64 a", &["--base64"]),
        ("tx sign --key k --hex 00 --difficulty 257", &["--difficulty"]),
        ("tx sign --key k --hex 00 --no-pow --difficulty 256", &["--no-pow", "--difficulty"]),
        ("tx sign --key k --hex 00 --block-hash AB", &["--block-hash"]),
        ("tx sign --key k --hex 00 --tx-version 1", &["--tx-version"]),
        ("tx submit --type TYPE_FOO", &["TYPE_FOO"]),
        ("tx status AB", &["64 hex digits"]),
        ("watch", &["PATH"]),
        ("watch ftp://h/accounts", &["path and query"]),
        ("watch /accounts --count 0", &["--count"]),
    ] {
        fails(&line.split_whitespace().collect::<Vec<_>>(), 2, parts).await;
    }
}

#[tokio::test]
async fn an_error_repeats_no_secret() {
    let with_key = |key: &str| {
        let mut command = command(&["get", "/health", "--url", "http://127.0.0.1:1"]);
        command.env("MESH_API_KEY", key);
        command
    };
    for mut command in [command(&["up", "--node", "tcp://user:secret@host:26657"]), with_key("secret\nkey")] {
        let outcome = Outcome::of(&mut command, &[]).await;
        outcome.fails(2, &["cannot be read: "]);
        assert!(!outcome.error.contains("secret"), "{}", outcome.error);
    }
    Outcome::of(&mut with_key(""), &[]).await.fails(1, &["http://127.0.0.1:1/health (", "refused", "--url"]);
}

#[tokio::test]
async fn the_password_of_a_database_comes_from_a_file() {
    let database = Database::fresh().await;
    let (user, rest) = database.url().split_once('@').unwrap();
    let (user, password) = user.rsplit_once(':').unwrap();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("password");
    let doctor = async || {
        let mut command = command(&["doctor", "--json", "--postgres", &format!("{user}@{rest}")]);
        Outcome::of(command.env("MESH_DATABASE_PASSWORD_FILE", &file), &[]).await
    };
    doctor().await.fails(2, &["--postgres", "MESH_DATABASE_PASSWORD_FILE cannot be read"]);
    std::fs::write(&file, format!("{password}\n")).unwrap();
    says(doctor().await.text(), &["credentials accepted"]);
    std::fs::write(&file, "wrong").unwrap();
    assert!(!doctor().await.text().contains("credentials accepted"));
}

#[tokio::test]
async fn a_result_that_cannot_be_written_is_a_failure() {
    for arguments in [&["completions", "bash"][..], &["--help"], &["up", "--help"], &["--version"]] {
        let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
        let outcome = Outcome::writing_to(&mut command(arguments), full).await;
        assert_eq!(outcome.code, Some(1), "{arguments:?}");
        says(&outcome.error, &["cannot write the result to standard output"]);
    }
}

#[tokio::test]
async fn help_and_version_are_no_failures() {
    let help = mesh(&["--help"]).await;
    let text = help.done();
    for command in [
        "up", "down", "ps", "stop", "start", "restart", "scale", "load", "seal", "history", "export", "tx",
        "watch", "bench", "rig", "test", "dist",
    ] {
        assert!(text.contains(&format!("\n  {command} ")), "{text}");
    }
    assert!(!text.contains("devnode") && !text.contains("baseline"), "{text}");
    assert_eq!(mesh(&["help"]).await.done(), text);
    mesh(&["--version"]).await.done();
}

#[tokio::test]
async fn without_a_running_mesh_ps_shows_nothing_and_orders_fail() {
    let folder = tempfile::tempdir().unwrap();
    let home = folder.path().join("none");
    let home = home.to_str().unwrap();
    let listed = mesh(&["ps", "--json", "--home", home]).await;
    assert_eq!(listed.done(), "[]\n");
    says(&listed.error, &["no mesh runs"]);
    for order in [["stop", "query"], ["start", "query=0"], ["restart", "edge"], ["scale", "query=2"]] {
        fails(&[order[0], order[1], "--home", home], 1, &["no mesh runs", "mesh up"]).await;
    }
    let file = tempfile::NamedTempFile::new().unwrap();
    for home in [home, file.path().to_str().unwrap()] {
        fails(&["down", "--home", home], 1, &["no mesh runs", "mesh up"]).await;
    }
}

#[tokio::test]
async fn servers_that_do_not_answer_are_missing_and_refused_addresses_wrong() {
    let database = Database::empty().await;
    fails(&["load", "/nonexistent", "--postgres", "postgres://127.0.0.1:1/mesh"], 69, &["--postgres"]).await;
    fails(&["load", "/nonexistent", "--postgres", "database"], 64, &["postgresql://"]).await;
    fails(&["migrate", "--postgres", "database"], 64, &["--postgres", "postgresql://"]).await;
    let decode = ["ingest", "decode", "--height", "1", "--node", "http://127.0.0.1:1"];
    fails(&decode, 69, &["block 1: the node does not answer", "--node"]).await;
    let rows = ["ingest", "rows", "-", "--postgres", database.url()];
    fails(&rows, 1, &["\"blocks\" does not exist", "migrate --postgres"]).await;
    let (before, after) = database.url().rsplit_once('@').unwrap();
    let (user, _) = before.rsplit_once(':').unwrap();
    for wrong in [format!("{user}:wrong@{after}"), format!("{}_none", database.url())] {
        fails(&["migrate", "--postgres", &wrong], 64, &["rejects the connection", "correct user"]).await;
    }
    let home = tempfile::tempdir().unwrap();
    // Nothing listens at the first address; one server that answers is enough.
    let bus = format!("nats://127.0.0.1:1,{}", nats().await.url().replacen("://", "://operator:wrong@", 1));
    let up =
        ["up", "--port", "0", "--grpc-port", "0", "--postgres", database.url(), "--nats", &bus, "--home"];
    fails(&[&up[..], &[home.path().to_str().unwrap()]].concat(), 64, &["--nats rejects the credentials"])
        .await;
}

#[tokio::test]
async fn the_schema_of_a_later_release_is_named_and_kept() {
    let database = Database::fresh().await;
    let later = "INSERT INTO refinery_schema_history VALUES (1000, 'later', '2030-01-01T00:00:00Z', '1')";
    database.connect().await.batch_execute(later).await.unwrap();
    let migrated = mesh(&["migrate", "--postgres", database.url()]).await;
    migrated.done();
    says(&migrated.error, &["schema 1000 of a later release"]);
    assert!(!migrated.error.contains("newest"));
}

#[tokio::test]
async fn a_database_without_one_of_our_tables_is_not_called_newest() {
    let database = Database::fresh().await;
    database.connect().await.batch_execute("DROP TABLE orders_rested, checkpoints CASCADE").await.unwrap();
    let parts = ["checkpoints, orders_rested", "restore"];
    fails(&["migrate", "--postgres", database.url()], 1, &parts).await;
}

#[tokio::test]
async fn sealing_needs_a_database() {
    let folder = tempfile::tempdir().unwrap();
    let home = folder.path().join("none");
    fails(&["seal", "--home", home.to_str().unwrap()], 1, &["no database", "mesh up", "--postgres"]).await;
    assert!(!home.exists());
    fails(&["seal", "--postgres", "postgres://127.0.0.1:1/mesh"], 69, &["--postgres"]).await;
    let database = Database::fresh().await;
    let mut seal = command(&["seal", "--home", home.to_str().unwrap()]);
    let seal = seal.env("MESH_DATABASE_URL", database.url()).env("MESH_HISTORY_URL", folder.path());
    assert_eq!(Outcome::of(seal, &[]).await.done(), "nothing to seal\n", "by the variables of the command");
}

#[tokio::test]
async fn a_taken_port_and_a_missing_certificate_are_named_before_the_start() {
    let folder = tempfile::tempdir().unwrap();
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port().to_string();
    let home = folder.path().to_str().unwrap();
    fails(&["up", "--home", home, "--port", &port, "--grpc-port", "0"], 1, &[&port, "--port"]).await;
    let up = ["up", "--tls-cert", "/nonexistent", "--tls-key", "/nonexistent", "--home", "/proc/none"];
    fails(&up, 64, &["/nonexistent", "--tls-cert"]).await;
}

#[tokio::test]
async fn every_shell_gets_its_completions() {
    for (shell, sign) in [("bash", "complete -F"), ("zsh", "#compdef mesh"), ("fish", "complete -c mesh")] {
        says(mesh(&["completions", shell]).await.done(), &[sign, "doctor", "watch", "from-block"]);
    }
}

#[tokio::test]
async fn a_home_whose_database_is_elsewhere_begins_none_of_its_own() {
    let home = tempfile::tempdir().unwrap();
    let saved = r#"{"database":"db:5432/mesh","data":null,"complete":false}"#;
    std::fs::write(home.path().join("mesh.json"), saved).unwrap();
    let started = mesh(&["up", "--port", "0", "--home", home.path().to_str().unwrap()]).await;
    started.fails(1, &["db:5432/mesh", "--postgres"]);
}
