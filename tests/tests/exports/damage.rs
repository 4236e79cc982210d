//! Segments that are corrupted, truncated or deleted, before a download and in the middle of it (X3, X10,
//! H10): the download is refused or visibly broken, never a ZIP that looks whole and has other bytes. That
//! every bit counts is tested in `mesh-history`.

use std::{collections::BTreeMap, fs, path::Path};

use mesh_testbed::http1::Connection;
use mesh_tests::{access::line, assert_has, assert_problem, say, zip};
use rand::{SeedableRng, rngs::SmallRng};
use serde_json::json;
use tokio::{io::AsyncReadExt, net::TcpStream};

use super::{HandmadeMesh, HandmadeSegments, Plan, noise, *};

/// How a download ended, as its client sees it.
#[derive(Debug)]
enum Outcome {
    /// Status and number of the error.
    Refused(Answer),
    /// The bytes received before the transfer broke.
    Broken(Vec<u8>),
    /// The whole body.
    Whole(Vec<u8>),
}

async fn download(mesh_client: &MeshClient, path: &str) -> Outcome {
    let mut response = mesh_client.request(Method::GET, path).send().await.unwrap();
    if response.status() != 200 {
        let (status, headers) = (response.status().as_u16(), response.headers().clone());
        return Outcome::Refused(Answer { status, headers, body: response.bytes().await.unwrap() });
    }
    let mut received = Vec::new();
    loop {
        match response.chunk().await {
            Ok(Some(chunk)) => received.extend_from_slice(&chunk),
            Ok(None) => return Outcome::Whole(received),
            Err(_) => return Outcome::Broken(received),
        }
    }
}

/// Begins a download with a small receive buffer and reads a mebibyte of it.
async fn read_a_mebibyte(served: &HandmadeMesh, path: &str) -> (Answer, TcpStream, Vec<u8>) {
    let mut connection = Connection::open_narrow(&served.mesh.url(), 64 << 10).await.unwrap();
    connection.send(format!("GET {path} HTTP/1.1\r\nhost: a\r\n\r\n").as_bytes()).await.unwrap();
    let (head, mut stream) = connection.head_then_stream().await.unwrap();
    assert_eq!(head.status, 200);
    let mut received = head.body.to_vec();
    while received.len() < 1 << 20 {
        assert!(stream.read_buf(&mut received).await.unwrap() > 0);
    }
    (head, stream, received)
}

/// Asserts that a broken transfer gave a proper prefix of the whole, and no ZIP that opens.
async fn assert_broken(received: &[u8], whole: &[u8], what: &str) {
    assert!(received.len() < whole.len() && whole.starts_with(received), "{what}: {} bytes", received.len());
    assert!(zip::read(received).await.is_err(), "{what}");
}

fn plans(bytes: usize) -> Vec<Plan> {
    let mut dice = SmallRng::seed_from_u64(5);
    let plan = |number: u64| {
        let plan = Plan::new(1, number * 10 + 1, number * 10 + 10).with("orders", "id\n1\n");
        plan.with("trades", noise(&mut dice, bytes))
    };
    (0..3).map(plan).collect()
}

/// Offsets of the parts of a segment's file: header and rows of trades, `layout.json`, the directory, its end
/// record.
fn part_offsets(file: &[u8]) -> BTreeMap<&'static str, usize> {
    let find = |bytes: &[u8], from: usize| {
        from + file[from..].windows(bytes.len()).position(|window| window == bytes).unwrap()
    };
    let trades = find(b"history/trades.csv", 0) + "history/trades.csv".len();
    let layout = find(b"layout.json", trades);
    BTreeMap::from([
        ("metadata.json", "metadata.json".len() + 30 + 20),
        ("another table", find(b"history/orders.csv", 0) + "history/orders.csv".len() + 2),
        ("the header", trades + 2),
        ("the first rows", trades + 100),
        ("rows in the middle", usize::midpoint(trades, layout)),
        ("the last rows", layout - 100),
        ("layout.json", layout + "layout.json".len() + 20),
        ("the directory", find(b"PK\x01\x02", layout) + 20),
        ("the end of the directory", file.len() - 10),
    ])
}

/// Maps a segment's file to a damaged one; `None` deletes it.
type Damage = Box<dyn Fn(&[u8]) -> Option<Vec<u8>>>;

fn flip(offset: usize, bit: u8) -> Damage {
    Box::new(move |file| {
        let mut file = file.to_vec();
        file[offset] ^= 1 << bit;
        Some(file)
    })
}

fn cut(length: usize) -> Damage {
    Box::new(move |file| Some(file[..length].to_vec()))
}

fn delete() -> Damage {
    Box::new(|_| None)
}

/// Overwrites a file in place, without a rename, as a faulty disk does.
fn put(path: &Path, bytes: Option<&[u8]>) {
    match bytes {
        Some(bytes) => fs::write(path, bytes).unwrap(),
        None => fs::remove_file(path).unwrap(),
    }
}

/// Makes the replica list its segments again: it does so before it answers that a range is not available.
async fn list_again(mesh_client: &MeshClient) {
    assert_eq!(mesh_client.get(&HandmadeMesh::path("trades", 1_000_000, 1_000_000)).await.status, 404);
}

/// Every damage that is tried before a download: a flipped bit in each part of a file, a truncated file, a
/// deleted one.
fn damages(good: &[u8]) -> Vec<(String, Damage)> {
    let part_offsets = part_offsets(good);
    let mut damages: Vec<(String, Damage)> =
        part_offsets.iter().map(|(name, offset)| ((*name).to_owned(), flip(*offset, 0))).collect();
    for length in [0, 1, 100, part_offsets["rows in the middle"], good.len() - 1] {
        damages.push((format!("cut to {length}"), cut(length)));
    }
    damages.push(("vanished".to_owned(), delete()));
    damages
}

#[tokio::test]
async fn damage_before_a_download_refuses_or_breaks_it() {
    let served = HandmadeSegments::write(plans(720_000)).await.serve(1).await;
    let (mesh_client, path) = (served.mesh_client(), served.whole("trades"));
    let Outcome::Whole(whole) = download(&mesh_client, &path).await else { panic!("it is whole at first") };
    let (mut refused, mut broken, mut harmless) = (0, 0, 0);
    for plan in &served.segments.plans {
        let file = served.segments.path(plan);
        let good = fs::read(&file).unwrap();
        for (name, damage) in damages(&good) {
            // Lists the segments of the intact file again.
            put(&file, Some(&good));
            list_again(&mesh_client).await;
            put(&file, damage(&good).as_deref());
            for is_known in [false, true] {
                if is_known {
                    list_again(&mesh_client).await;
                }
                let what = format!("{name} in {} (known: {is_known})", plan.from);
                match download(&mesh_client, &path).await {
                    Outcome::Refused(answer) if name == "vanished" => {
                        let (from, to) = (plan.from, plan.to);
                        let problem = assert_problem(&answer, 404, 5, 240_013);
                        assert_eq!(problem.inner, format!("missing blocks {from}-{to}"), "{what}");
                        refused += 1;
                    }
                    Outcome::Refused(answer) => {
                        assert_problem(&answer, 500, 13, 240_014);
                        refused += 1;
                    }
                    Outcome::Broken(received) => {
                        assert_broken(&received, &whole, &what).await;
                        broken += 1;
                        let in_bytes = ["header", "rows"].iter().any(|part| name.contains(part));
                        assert!(!is_known || in_bytes, "{what} is known and not refused");
                        let is_at_once = plan.from == 1 && name == "the first rows";
                        assert!(!is_at_once, "{what} is found before the first byte");
                    }
                    Outcome::Whole(bytes) => {
                        // The damage is in bytes that this download does not read: sizes and checksums that
                        // are already listed, another table, or a header that an earlier segment gave.
                        assert!(bytes == whole, "{what}");
                        let unused = name == "another table" || (name == "the header" && plan.from > 1);
                        let figures = ["metadata.json", "layout.json", "the directory", "the end"];
                        let is_unread = !is_known
                            && (name.contains("cut") || figures.iter().any(|part| name.contains(part)));
                        assert!(unused || is_unread, "{what} was not seen");
                        harmless += 1;
                    }
                }
            }
        }
        put(&file, Some(&good));
        list_again(&mesh_client).await;
        let mended = download(&mesh_client, &path).await;
        assert!(matches!(mended, Outcome::Whole(bytes) if bytes == whole), "{} is mended", plan.from);
    }
    assert!(refused > 0 && broken > 0 && harmless > 0);
    say(&format!("damage before a download: {refused} refused, {broken} broken, {harmless} without effect"));
}

#[tokio::test]
async fn damage_during_a_download_breaks_it() {
    let served = HandmadeSegments::write(plans(5 << 20)).await.serve(1).await;
    let (mesh_client, path) = (served.mesh_client(), served.whole("trades"));
    let Outcome::Whole(whole) = download(&mesh_client, &path).await else { panic!("it is whole at first") };
    let last = &served.segments.plans[2];
    let file = served.segments.path(last);
    let good = fs::read(&file).unwrap();
    let part_offsets = part_offsets(&good);
    for (what, damage) in [
        ("flipped", flip(part_offsets["the last rows"], 3)),
        ("cut", cut(part_offsets["rows in the middle"])),
        ("vanished", delete()),
    ] {
        let (head, mut stream, mut received) = read_a_mebibyte(&served, &path).await;
        assert_eq!(head.header("content-length"), Some(&*whole.len().to_string()));
        put(&file, damage(&good).as_deref());
        // An end or a reset: a client sees both, because the promised length is not reached.
        while matches!(stream.read_buf(&mut received).await, Ok(1..)) {}
        assert!(received.len() > 1 << 20, "{what}: more than a mebibyte was received");
        assert_broken(&received, &whole, what).await;
        let log_line = line(&served.mesh, head.header("x-request-id").unwrap()).await;
        let expected = json!({"status": 200, "ended": "broken", "operation": "ExportNetworkHistory"});
        assert_has(&log_line, &expected);
        assert_eq!(log_line["errors"].as_array().map(Vec::len), Some(1), "{log_line}");
        let bytes = log_line["bytes"].as_u64().unwrap();
        assert!(bytes >= received.len() as u64 && bytes < whole.len() as u64, "{log_line}");
        put(&file, Some(&good));
        list_again(&mesh_client).await;
        let mended = download(&mesh_client, &path).await;
        assert!(matches!(mended, Outcome::Whole(bytes) if bytes == whole), "{what} is mended");
    }
}

#[tokio::test]
async fn the_chunk_form_of_a_damaged_download_ends_with_the_error() {
    let served = HandmadeSegments::write(plans(720_000)).await.serve(1).await;
    let (mesh_client, path) = (served.mesh_client(), served.whole("trades"));
    let accept = [("accept", "application/x-ndjson")];
    let intact = lines(&mesh_client.get_with_all(&path, &accept).await);
    assert!(intact.len() > 1, "one chunk shows nothing about later ones");
    for later in &intact[1..] {
        assert_eq!(later["result"]["extensions"], json!([]), "S2: the list is empty, not absent");
    }
    let whole = bytes(&intact);
    let file = served.segments.path(&served.segments.plans[2]);
    let good = fs::read(&file).unwrap();
    put(&file, flip(part_offsets(&good)["the last rows"], 3)(&good).as_deref());
    let answer = mesh_client.get_with_all(&path, &accept).await;
    let mut lines = lines(&answer);
    let error = lines.pop().unwrap();
    assert_eq!(error.as_object().unwrap().keys().collect::<Vec<_>>(), ["error"]);
    let numbers = (&error["error"]["code"], &error["error"]["details"][0]["code"]);
    assert_eq!(numbers, (&json!(13), &json!(240_014)));
    assert!(lines.iter().all(|line| line.get("error").is_none()) && !lines.is_empty());
    assert_broken(&bytes(&lines), &whole, "chunks").await;
    let log_line = line(&served.mesh, answer.header("x-request-id").unwrap()).await;
    assert_has(&log_line, &json!({"ended": "broken", "errors": [240_014]}));
}

#[tokio::test]
async fn an_aborted_download_is_logged_as_an_error_and_a_whole_one_is_not() {
    let served = HandmadeSegments::write(plans(5 << 20)).await.serve(1).await;
    let (mesh_client, path) = (served.mesh_client(), served.whole("trades"));
    let whole = mesh_client.get_with_all(&path, &[]).await;
    let (head, stream, received) = read_a_mebibyte(&served, &path).await;
    drop(stream);
    let log_line = line(&served.mesh, head.header("x-request-id").unwrap()).await;
    assert_has(&log_line, &json!({"status": 200, "ended": "left", "errors": null}));
    let bytes = log_line["bytes"].as_u64().unwrap();
    assert!(bytes >= received.len() as u64 && bytes < whole.body.len() as u64, "{log_line}");
    let of_whole = whole.header("x-request-id").unwrap();
    assert!(mesh_tests::access::lines(&served.mesh).iter().all(|line| line["request_id"] != of_whole));
}
