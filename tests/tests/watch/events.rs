//! What the events of a watch are, and when they come (W1, W2, W4, W5, W6, W10, W11).

use mesh_tests::{Event, Events, MeshClient, ProxiedServer, assert_problem, cases, fixture, raw};
use proto_msgs::{Contract, Method};

use super::{LIMITS, SOON, start, withdrawal, write_block};

async fn open(client: &MeshClient, path: &str) -> Events {
    Events::open(client, path, &[]).await.unwrap_or_else(|refused| panic!("{path}: {refused:?}"))
}

#[tokio::test]
async fn every_case_of_a_read_can_be_watched_and_its_first_event_is_the_plain_answer() {
    let client = MeshClient::fixture().await;
    let mut watched = std::collections::BTreeSet::new();
    for (operation, file) in cases::files() {
        for case in &file.cases {
            let request = &case.request;
            let is_plain = request.method.is_none() && request.headers.is_empty() && !case.sealed;
            if !is_plain || request.path.contains("pretty") || request.path.contains("export") {
                continue;
            }
            let plain = client.get(&request.path).await;
            match Events::open(&client, &request.path, &[]).await {
                Ok(mut events) => {
                    let first = events.block().await.unwrap();
                    assert_eq!((first.name.as_str(), first.retry), ("answer", Some(1000)), "{}", case.name);
                    assert_eq!(first.data, plain.text(), "{operation}: {}", case.name);
                    if let Some(height) = plain.header("x-block-height") {
                        assert_eq!(first.id, height.parse().ok(), "{operation}: {}", case.name);
                    }
                    watched.insert(operation.clone());
                }
                Err(refused) => {
                    let (refused, plain) = ((refused.status, refused.text()), (plain.status, plain.text()));
                    assert_eq!(refused, plain, "{}", case.name);
                }
            }
        }
    }
    // The fixture has no consensus node.
    let of_node = ["LastBlockHeight", "GetTransaction"];
    let operations = Contract::get().operations().iter();
    let reads = operations.filter(|row| row.method == Method::Get && !row.streaming);
    for row in reads.filter(|row| !of_node.contains(&row.name.as_str())) {
        assert!(watched.contains(&cases::file_name(&row.name)), "{} is watched", row.name);
    }
}

#[tokio::test]
async fn an_event_comes_with_the_block_that_changes_the_answer_and_none_with_one_that_does_not() {
    let (database, _mesh, client) = start(&[]).await;
    let writer = database.connect().await;
    let mut events = open(&client, &withdrawal()).await;
    for (name, value) in
        [("cache-control", "no-store, no-transform"), ("x-accel-buffering", "no"), ("connection", "close")]
    {
        assert_eq!(events.header(name), Some(value));
    }
    assert_eq!(events.header("content-encoding"), None);
    assert_eq!(events.event().await.id, Some(3));
    write_block(&writer, 4, None).await;
    let quiet = events.block_within(SOON * 2).await;
    assert!(quiet.is_err(), "nothing has changed: {quiet:?}");
    for (height, reference) in [(5, "five"), (6, "six")] {
        write_block(&writer, height, Some(reference)).await;
        let event = events.event().await;
        assert_eq!(event.id, Some(height));
        assert_eq!(event.json()["withdrawal"]["ref"], reference);
        assert_eq!(event.data, client.get(&withdrawal()).await.text(), "what a plain read gives");
    }
}

#[tokio::test]
async fn a_watch_comes_behind_the_answers_before_it_and_a_head_has_no_events() {
    let client = MeshClient::fixture().await;
    let request = |method: &str, path: &str, version: &str, more: &str| {
        format!("{method} {path} HTTP/{version}\r\nHost: x\r\n{more}\r\n")
    };
    let wanted = "Accept: text/event-stream\r\n";
    let plain = request("GET", "/api/v2/trades", "1.1", "");
    let [head, watch] = ["HEAD", "GET"].map(|method| request(method, LIMITS, "1.1", wanted));
    let mut connection = raw::begin(client.url(), &format!("{plain}{head}{watch}")).await;
    assert!(raw::answer(&mut connection).await.body.starts_with(b"{\"trades\""));
    let head = connection.answer(true).await.unwrap().expect("the head alone");
    assert_eq!((head.status, head.header("content-type")), (200, Some("text/event-stream")));

    let mut connection = raw::begin(client.url(), &format!("{plain}{watch}")).await;
    assert!(raw::answer(&mut connection).await.body.starts_with(b"{\"trades\""));
    let old = raw::begin(client.url(), &request("GET", LIMITS, "1.0", wanted)).await;
    for mut connection in [connection, old] {
        let (_, mut framing) = connection.head().await.unwrap().expect("a head");
        let mut received = Vec::new();
        while !received.ends_with(b"\n\n") {
            let mut piece = Vec::new();
            assert!(connection.piece(&mut framing, &mut piece, 1 << 20).await.unwrap(), "it goes on");
            received.append(&mut piece);
        }
        let begins = received.starts_with(b"retry: 1000\nid: 3\nevent: answer\ndata: {");
        assert!(begins, "{}", received.escape_ascii());
    }
}

#[tokio::test]
async fn a_client_that_comes_back_gets_nothing_before_a_block_that_it_has_not_seen() {
    let (database, _mesh, client) = start(&[]).await;
    let writer = database.connect().await;
    for (last, comes_at_once) in [
        ("2", true),
        ("3", false),
        (" 3 ", false),
        // Above the head: the network was reset.
        ("4", true),
        ("99999999", true),
        ("9223372036854775808", true),
        ("18446744073709551615", true),
        ("18446744073709551616", true),
        ("-3", true),
        ("+3", true),
        ("x", true),
        ("", true),
    ] {
        let mut events = Events::open(&client, LIMITS, &[("last-event-id", last)]).await.unwrap();
        let first = events.block().await.unwrap();
        assert_eq!((first.id == Some(3), first.retry), (comes_at_once, Some(1000)), "{last}: {first:?}");
        assert_eq!(first.name.is_empty(), !comes_at_once, "{last}: the first bytes leave at once");
        if !comes_at_once {
            assert_eq!(first.comment.as_deref(), Some("3"), "{last}: the height of the head");
        }
    }
    let refused = Events::open(&client, LIMITS, &[("if-match", "\"x\"")]).await.unwrap_err();
    assert_eq!(refused.status, 412, "as the plain read");
    let mut events = Events::open(&client, LIMITS, &[("last-event-id", "3")]).await.unwrap();
    events.block().await.unwrap();
    write_block(&writer, 4, None).await;
    assert_eq!(events.event().await.id, Some(4), "the state of now, although it has not changed");
}

#[tokio::test]
async fn a_store_that_is_away_is_one_problem_and_the_stream_goes_on_when_it_is_back() {
    let database = fixture::database().await;
    let store = ProxiedServer::start(database.url()).await;
    let mesh = mesh_testbed::Mesh::configure(&database).without(&["export"]);
    let mesh = mesh.env("MESH_DATABASE_URL", store.url()).start().await;
    let client = MeshClient::new(&mesh);
    let (mut events, mut several) =
        (open(&client, &withdrawal()).await, open(&client, &format!("/watch?read={}", withdrawal())).await);
    assert_eq!((events.event().await.id, several.event().await.name.as_str()), (Some(3), "answer-0"));
    store.cut();
    write_block(&database.connect().await, 4, Some("four")).await;
    // Until then the last answer is shown to plain reads, too.
    let problem = events.event().await;
    assert_eq!((problem.name.as_str(), problem.id), ("problem", None));
    assert_eq!(problem.json()["code"], 14);
    assert_eq!(several.event().await.name, "problem-0");
    let quiet = events.block_within(SOON * 3).await;
    assert!(quiet.is_err(), "a problem is sent once: {quiet:?}");
    store.restore();
    for events in [&mut events, &mut several] {
        let back = events.event().await;
        assert_eq!((back.id, &back.json()["withdrawal"]["ref"]), (Some(4), &"four".into()));
    }
}

/// Like a test network that restarts from genesis.
#[tokio::test]
async fn a_store_that_was_set_back_ends_watches_and_their_clients_forget_its_heights() {
    let (database, _mesh, client) = start(&[]).await;
    let writer = database.connect().await;
    let mut early = open(&client, LIMITS).await;
    early.event().await;
    for height in [4, 5] {
        write_block(&writer, height, None).await;
    }
    let mut late = Events::open(&client, LIMITS, &[("last-event-id", "5")]).await.unwrap();
    late.block().await.unwrap();
    // Higher than the last event of `early`, lower than what `late` has.
    let set_back = "DELETE FROM blocks WHERE height > 4;
        UPDATE last_block SET (block_time, height, hash) = (SELECT block_time, height, hash FROM blocks \
        WHERE height = 4)";
    writer.batch_execute(set_back).await.unwrap();
    for mut events in [early, late] {
        let last = loop {
            let block = events.block().await.expect("the id is cleared before the end");
            // Until the edge accepts the lower head, re-reads find the store behind.
            if block.comment.is_none() && block.name != "problem" {
                break block;
            }
        };
        assert_eq!(last, Event { clears_id: true, ..Event::default() });
        assert_eq!(events.block().await, None);
    }
    // A client that keeps its id all the same.
    let mut stubborn = Events::open(&client, LIMITS, &[("last-event-id", "5")]).await.unwrap();
    assert_eq!(stubborn.event().await.id, Some(4), "the state of now");
    write_block(&writer, 5, Some("five")).await;
    let mut back = open(&client, &withdrawal()).await;
    let mut received = back.event().await;
    while received.id != Some(5) {
        received = back.event().await;
    }
    assert_eq!(received.json()["withdrawal"]["ref"], "five");
}

#[tokio::test]
async fn several_reads_come_on_one_stream_each_under_its_own_name() {
    let (database, _mesh, client) = start(&[]).await;
    let read = |path: &str| path.replace('?', "%3F").replace('&', "%26").replace('=', "%3D");
    let accounts = format!("/accounts?party={}", fixture::PARTY);
    let path = format!("/watch?read={LIMITS}&read={}&read={}", read(&withdrawal()), read(&accounts));
    let mut events = Events::open(&client, &path, &[("last-event-id", "99")]).await.unwrap();
    for (index, path) in [LIMITS, &withdrawal(), &accounts].into_iter().enumerate() {
        let event = events.event().await;
        assert_eq!((event.name, event.id), (format!("answer-{index}"), Some(3)), "the last id is ignored");
        assert_eq!(event.data, client.get(path).await.text());
    }
    write_block(&database.connect().await, 4, Some("four")).await;
    let event = events.event().await;
    assert_eq!((event.name.as_str(), event.id), ("answer-1", Some(4)));
}

#[tokio::test]
async fn each_read_of_a_stream_counts_to_the_rate_of_its_client() {
    let (_database, _mesh, client) =
        start(&[("MESH_EDGE_RATE_PER_S", "1"), ("MESH_EDGE_RATE_BURST", "5")]).await;
    let refused = Events::open(&client, &format!("/watch?read={}", [LIMITS; 16].join("&read=")), &[]).await;
    assert_problem(&refused.unwrap_err(), 429, 8, 400_001);
}

#[tokio::test]
async fn a_watch_of_several_reads_is_refused_with_the_read_that_is_wrong() {
    let client = MeshClient::fixture().await;
    for (query, status, code, number, inner) in [
        ("", 400, 3, 10_015, ""),
        ("?read=", 400, 3, 10_015, ""),
        ("?read=/nothing", 404, 5, 10_000, "read 0"),
        ("?read=/api/v2/network/limits&read=/api/v2/withdrawal/xy", 400, 3, 80_005, "read 1: xy"),
        ("?read=/health", 400, 3, 10_015, "read 0"),
        ("?read=/watch?read=/accounts", 400, 3, 10_015, "read 0"),
        ("?read=/transaction", 400, 3, 10_015, "read 0"),
        ("?read=/api/v2/ledgerentry/export", 400, 3, 10_015, "read 0"),
    ] {
        let refused = client.get(&format!("/watch{query}")).await;
        assert_eq!(assert_problem(&refused, status, code, number).inner, inner, "{query}");
    }
    let unknown = format!("/api/v2/withdrawal/{}", fixture::UNKNOWN_ID);
    let refused = client.get(&format!("/watch?read={unknown}")).await;
    assert_eq!(assert_problem(&refused, 404, 5, 150_001).inner.split(':').next(), Some("read 0"));
    let too_many = format!("/watch?{}", "read=/api/v2/info&".repeat(17));
    assert_problem(&client.get(&too_many).await, 400, 3, 10_015);
    assert_problem(&client.send("POST", "/watch").await, 405, 12, 10_000);
    let strict = client.get_with("/watch?read=/api/v2/info&raed=x", "prefer", "handling=strict").await;
    assert_problem(&strict, 400, 3, 10_015);
    let path = "/watch?raed=x&read=/api/v2/info%3Ffoo%3D1&read=/api/v2/info%3Fbar%3D1%26foo%3D2";
    let mut lenient = open(&client, path).await;
    assert_eq!(lenient.header("x-ignored"), Some("raed, foo, bar"));
    assert_eq!(lenient.event().await.name, "answer-0");
}

/// Other forms are in the cases; how `Accept` is read is in the unit tests of `mesh_chassis::accept`.
#[tokio::test]
async fn a_page_is_not_watched() {
    let client = MeshClient::fixture().await;
    let page = client.send_with("HEAD", "/health", &[("accept", "text/event-stream")]).await;
    assert_eq!((page.status, page.header("content-type")), (200, Some("text/plain; charset=utf-8")));
}
