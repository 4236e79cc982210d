//! `mesh watch` from the command line: against a real mesh, and against a gateway that comes and goes.

use std::{collections::VecDeque, net::TcpListener, process::Stdio, time::Duration};

use mesh_testbed::{Database, Mesh};
use rustix::process::{Pid, Signal, kill_process};
use tokio::{
    io::{AsyncBufReadExt as _, BufReader, Lines},
    process::{Child, ChildStdout},
    time::timeout,
};

use crate::{Outcome, Reply, StubGateway, command, mesh, says};

const PATIENCE: Duration = Duration::from_secs(60);

/// The header of a request for a stream.
const ACCEPT: &str = "\r\naccept: text/event-stream\r\n";

const PROBLEM: &str = r#"{"code":14,"message":"Unavailable error","details":[{"@type":"t","code":10000,"message":"the database is unreachable","inner":""}]}"#;

/// A stream of events: whole, broken, or still open.
pub(crate) fn events(text: &str, how: &str) -> Reply {
    let length = if how == "broken" { "content-length: 100000\r\n" } else { "" };
    let head =
        format!("HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n{length}\r\n");
    Reply { bytes: format!("{head}{text}").into_bytes(), stalls: how == "open" }
}

/// An answer with a JSON body.
pub(crate) fn body(status: u16, body: &str) -> Reply {
    let length = body.len();
    let head = format!("HTTP/1.1 {status} X\r\nconnection: close\r\ncontent-type: application/json\r\n");
    Reply { bytes: format!("{head}content-length: {length}\r\n\r\n{body}").into_bytes(), stalls: false }
}

fn event(height: u64, name: &str, data: &str) -> String {
    format!("id: {height}\nevent: {name}\ndata: {data}\n\n")
}

/// A gateway with these replies in sequence.
pub(crate) async fn replying(replies: Vec<Reply>) -> StubGateway {
    let mut replies = VecDeque::from(replies);
    StubGateway::start(move |_| std::future::ready(replies.pop_front().unwrap_or_else(|| body(404, "{}"))))
        .await
}

/// A running watch, and the lines that it prints.
fn start(args: &[&str]) -> (Child, Lines<BufReader<ChildStdout>>) {
    let mut command = command(&[&["watch"], args].concat());
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
    let mut child = command.spawn().unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    (child, lines)
}

async fn line(lines: &mut Lines<BufReader<ChildStdout>>) -> String {
    timeout(PATIENCE, lines.next_line()).await.expect("no line came").unwrap().unwrap_or_default()
}

/// Expects a watch to exit with code 0 and without output on standard error.
async fn ends_quietly(child: Child) {
    let output = timeout(PATIENCE, child.wait_with_output()).await.expect("it does not end").unwrap();
    Outcome::from(output).ends_silently();
}

#[tokio::test]
async fn this_machine_is_reached_directly_and_an_error_of_a_proxy_names_it() {
    let answer = events(&event(7, "answer", "{}"), "whole");
    let (gateway, proxy) = (replying(vec![answer]).await, replying(vec![]).await);
    let closed = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let watch = async |url: &str, proxy: &str| {
        let mut command = command(&["watch", "/blockchain/height", "--count", "1", "--url", url]);
        for name in ["http_proxy", "HTTPS_PROXY", "ALL_PROXY"] {
            command.env(name, proxy);
        }
        Outcome::of(command.env_remove("NO_PROXY").env_remove("no_proxy"), b"").await
    };
    watch(&gateway.url, &format!("http://{closed}")).await.done();
    // No host has these names; the proxy is asked for them.
    for url in ["http://gateway.invalid", "https://gateway.invalid"] {
        let failed = watch(url, &format!("http://user:canary@{closed}")).await;
        failed.fails(1, &["refused", &format!("the proxy http://{closed}"), "NO_PROXY"]);
        assert!(!failed.error.contains("canary"), "{}", failed.error);
    }
    watch("http://gateway.invalid", &proxy.url).await.fails(1, &["HTTP 404", "the proxy http://127.0.0.1:"]);
    says(&proxy.heads()[0], &["GET http://gateway.invalid/blockchain/height "]);
}

#[tokio::test]
async fn a_person_sees_the_answer_and_then_the_rows_that_come() {
    let (database, client) = Database::with_client().await;
    client.batch_execute(include_str!("export/history.sql")).await.unwrap();
    let mesh = Mesh::start(&database).await;
    let read = format!("api/v2/trades?marketId={}&pagination.first=1", "a1".repeat(32));
    let (child, mut lines) = start(&[&read, "--url", &mesh.url(), "--count", "2"]);
    says(&line(&mut lines).await, &["block 4  ", "Z"]);
    assert_eq!(line(&mut lines).await, "{");
    let next = "BEGIN;
        INSERT INTO trades SELECT (jsonb_populate_record(trades, jsonb_build_object(
            'synthetic_time', synthetic_time + interval '1 s', 'block_time', block_time + interval '1 s',
            'id', repeat('0b', 32)))).*
        FROM trades ORDER BY synthetic_time DESC LIMIT 1;
        INSERT INTO blocks (block_time, height, hash) VALUES ('2023-06-20 10:00:05+00', 5, 'five');
        COMMIT;";
    client.batch_execute(next).await.unwrap();
    let mut rest = Vec::new();
    while let Some(line) = timeout(PATIENCE, lines.next_line()).await.expect("no change came").unwrap() {
        rest.push(line);
    }
    let at = rest.iter().position(|line| line.starts_with("block 5  ")).unwrap();
    let [come, gone] = &rest[at + 1..] else { panic!("{rest:?}") };
    says(come, &["  + trades.edges {", &"0b".repeat(32)]);
    says(gone, &["  - trades.edges {"]);
    ends_quietly(child).await;
}

#[tokio::test]
async fn a_lost_stream_goes_on_where_it_was_and_says_so_once() {
    let first =
        ["retry: 10\n", &event(5, "answer", "{\"a\":1}"), &event(6, "answer", "{\"a\":2}"), ": 6\n\n"];
    let replies = vec![
        events(&first.concat(), "broken"),
        body(503, PROBLEM),
        body(429, "{}"),
        // What was printed already is not printed again.
        events(&[event(7, "answer", "{\"a\":2}"), event(8, "answer", "{\"a\":3}")].concat(), "whole"),
        events(&format!("event: problem\ndata: {PROBLEM}\n\n"), "open"),
    ];
    let gateway = replying(replies).await;
    let watched = mesh(&["watch", "/accounts?x=1", "--url", &gateway.url, "--json", "--count", "4"]).await;
    let expected = [
        "{\"height\":5,\"answer\":{\"a\":1}}",
        "{\"height\":6,\"answer\":{\"a\":2}}",
        "{\"height\":8,\"answer\":{\"a\":3}}",
        &format!("{{\"height\":8,\"problem\":{PROBLEM}}}"),
    ];
    assert_eq!(watched.done().lines().collect::<Vec<_>>(), expected);
    let notes: Vec<_> = watched.error.lines().collect();
    let [lost, "reconnected"] = notes[..] else { panic!("{notes:?}") };
    says(lost, &["lost: ", "reconnecting"]);
    let heads = gateway.heads();
    for (head, last) in heads.iter().zip([None, Some(6), Some(6), Some(6), Some(8)]) {
        says(head, &["GET /accounts?x=1 ", "\r\nprefer: handling=strict\r\n", ACCEPT]);
        let name = "\r\nlast-event-id: ";
        let sent =
            head.split_once(name).map(|(_, rest)| rest.lines().next().unwrap().parse::<u64>().unwrap());
        assert_eq!(sent, last, "{head}");
    }
    assert_eq!(heads.len(), 5);
}

#[tokio::test]
async fn a_gateway_that_ends_a_stream_and_is_slow_to_take_the_next_one_is_lost() {
    let mut has_begun = false;
    let gateway = StubGateway::start(move |_| {
        let pause = if std::mem::replace(&mut has_begun, true) { 4 } else { 0 };
        async move {
            tokio::time::sleep(Duration::from_secs(pause)).await;
            events(&["retry: 1\n", &event(5 + pause, "answer", &pause.to_string())].concat(), "whole")
        }
    })
    .await;
    let watched = mesh(&["watch", "accounts", "--url", &gateway.url, "--json", "--count", "2"]).await;
    assert_eq!(watched.done(), "{\"height\":5,\"answer\":0}\n{\"height\":9,\"answer\":4}\n");
    assert_eq!(watched.error, "lost: no answer; reconnecting\nreconnected\n");
}

#[tokio::test]
async fn a_person_is_told_when_the_answer_is_behind() {
    let texts = [
        event(5, "answer", "{\"a\":1}"),
        event(6, "answer", "{\"a\":2}"),
        event(7, "answer", "{\"a\":2}"),
        format!("event: problem\ndata: {PROBLEM}\n\n"),
        event(8, "answer", "{\"a\":2}"),
        event(8, "problem", "{}"),
        event(8, "reload", "x"),
        event(9, "answer", "{\"a\":3}"),
    ];
    let gateway = replying(vec![events(&texts.concat(), "open")]).await;
    let watched = mesh(&["watch", &format!("{}/accounts", gateway.url), "--count", "6"]).await;
    assert_eq!(
        watched.error,
        "behind since block 7: the database is unreachable\nno longer behind, block 8\n\
         behind since block 8: {}\nno longer behind, block 9\n"
    );
    says(watched.done(), &["\n{\n  \"a\": 1\n}\nblock 6  ", "Z\n  a: 1 -> 2\nblock 9  ", "Z\n  a: 2 -> 3\n"]);
}

#[tokio::test]
async fn refusals_and_answers_without_events_end_it_with_a_sentence() {
    let unnamed = body(400, &PROBLEM.replace("the database is unreachable", "no such name"));
    for (reply, parts) in [
        (unnamed, ["refused: no such name", "no such name\n"]),
        (body(404, "nothing"), ["refused: HTTP 404", "Not Found\n"]),
        (Reply { bytes: b"\x15\x03\x03\0\x02\x02\x46".to_vec(), stalls: false }, ["http or https", "--url"]),
        (body(200, "{}"), ["/accounts answers without events", "older gateway"]),
        (events(&event(1, "answer", "{\"a\""), "open"), ["/accounts answers what no gateway does", "--url"]),
    ] {
        let gateway = replying(vec![reply]).await;
        let refused: Outcome = mesh(&["watch", "accounts", "--url", &gateway.url]).await;
        refused.fails(1, &parts);
        assert_eq!((refused.text(), gateway.heads().len()), ("", 1), "{refused:?}");
    }
    let away = mesh(&["watch", "accounts", "--url", "http://127.0.0.1:1"]).await;
    away.fails(1, &["http://127.0.0.1:1/accounts", "mesh up", "--url"]);
}

#[tokio::test]
async fn a_signal_and_a_closed_pipe_end_it_well() {
    let stream = || events(&event(5, "answer", "{\"a\":1}"), "open");
    let gateway = replying(vec![stream(), stream()]).await;
    let args = ["/accounts", "--json", "--url", &gateway.url];
    let (child, mut lines) = start(&args);
    assert_eq!(line(&mut lines).await, "{\"height\":5,\"answer\":{\"a\":1}}");
    kill_process(Pid::from_raw(child.id().unwrap().cast_signed()).unwrap(), Signal::INT).unwrap();
    ends_quietly(child).await;

    let (child, mut lines) = start(&args);
    line(&mut lines).await;
    drop(lines);
    ends_quietly(child).await;
}

#[tokio::test]
async fn a_read_is_printed_now_and_as_of_a_block() {
    let (database, client) = Database::with_client().await;
    let inserted = client.batch_execute(
        "INSERT INTO blocks VALUES ('2026-01-01T00:00:01Z', 1, 'aa'), ('2026-01-01T00:00:02Z', 2, 'bb');
        INSERT INTO network_parameters VALUES ('k', 'v', '', '2026-01-01T00:00:02Z');
        INSERT INTO accounts VALUES (repeat('a', 64), 'network', 'VOTE', '', 4, '', '2026-01-01T00:00:02Z')",
    );
    inserted.await.unwrap();
    let gateway = Mesh::start(&database).await;
    let url = gateway.url();
    let get = async |args: &[&str]| mesh(&[&["get", "accounts", "--url", &url], args].concat()).await;
    says(get(&[]).await.text(), &["VOTE"]);
    assert_eq!(get(&["--at-block", "1"]).await.text(), "{\"accounts\":[]}\n");
    says(&get(&["--at-block", "3", "--wait", "1"]).await.error, &["the block is not stored yet"]);
    let stream = mesh(&["get", "/watch?read=/accounts", "--url", &url]).await;
    stream.fails(1, &["is a stream of events", "mesh watch"]);
}
