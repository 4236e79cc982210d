//! Clients with keys: who is refused, which limits hold, what is recorded, and that no key is written anywhere.

use std::{fs, path::PathBuf, time::Duration};

use mesh_keys::KeyDigest;
use mesh_testbed::{Answer, Collector, Mesh, MeshSetup, eventually, keep_secret, retry};
use mesh_tests::{Call, Events, MeshClient, Rpc, WebSocket, access, assert_problem, fixture, metric};
use serde_json::{Value, json};
use tempfile::TempDir;
use tonic::Code;

use crate::telemetry::with_collector;

const READ: &str = "/api/v2/markets";
const BOT: &str = "mesh_planted-key-of-the-bot";
const OTHER: &str = "mesh_planted-key-of-another";
/// A key of no file.
const UNKNOWN: &str = "mesh_unknown";
/// Longer than the edge takes to read the file again.
const NOTICED: Duration = Duration::from_secs(20);

struct KeyFile(TempDir);

impl KeyFile {
    fn new(lines: &[Value]) -> Self {
        let file = Self(tempfile::tempdir().unwrap());
        file.write(&lines.iter().map(|line| format!("{line}\n")).collect::<String>());
        file
    }

    fn path(&self) -> PathBuf {
        self.0.path().join("keys.jsonl")
    }

    fn write(&self, text: &str) {
        fs::write(self.path(), text).unwrap();
    }

    /// A mesh with this file and further variables.
    fn configure<'a>(&self, setup: MeshSetup<'a>, env: &[(&str, &str)]) -> MeshSetup<'a> {
        let setup = setup.env("MESH_EDGE_KEYS_FILE", self.path().to_string_lossy());
        env.iter().fold(setup, |setup, (name, value)| setup.env(*name, *value))
    }
}

/// A line of the file with further members. No output may show its key.
fn line(name: &str, key: &str, members: &Value) -> Value {
    keep_secret(key);
    let mut line = json!({"name": name, "sha256": KeyDigest::of(key.as_bytes())});
    line.as_object_mut().unwrap().extend(members.as_object().unwrap().clone());
    line
}

async fn get(client: &MeshClient, path: &str, key: &str) -> Answer {
    client.get_with(path, "authorization", &format!("Bearer {key}")).await
}

fn assert_unknown(answer: &Answer) {
    assert_problem(answer, 401, 16, 10_047);
    assert_eq!(answer.header("www-authenticate"), Some("Bearer"));
}

/// The first record of the use of an operation by the bot.
fn usage(mesh: &Mesh, operation: &str) -> Option<Value> {
    let mut lines = access::json_lines(&mesh.service("edge").log()).into_iter();
    lines.find(|line| line["target"] == "usage" && line["key"] == "bot" && line["operation"] == operation)
}

#[tokio::test]
async fn a_key_in_force_is_let_in_and_every_other_is_refused_on_every_path() {
    let expired = json!({"expires": "2020-01-01T00:00:00Z"});
    let lines = [line("bot", BOT, &json!({})), line("old", OTHER, &expired)];
    let file = KeyFile::new(&lines);
    keep_secret(UNKNOWN);
    let collector = Collector::start().await;
    let env = [
        ("MESH_EDGE_ACCESS_LOG", "all"),
        ("OTEL_TRACES_SAMPLER", "always_on"),
        ("MESH_EDGE_SHARED_MAX_AGE_S", "1"),
    ];
    let (_database, mesh, client) =
        fixture::start(|setup| file.configure(with_collector(setup, &collector), &env)).await;
    for name in ["authorization", "x-api-key"] {
        let value = if name == "x-api-key" { BOT.to_owned() } else { format!("bEaRer  {BOT}") };
        assert_eq!(client.get_with(READ, name, &value).await.status, 200);
    }
    // A key is optional, and another scheme has none. Shared caches keep nothing of a client with a key.
    for _ in 0..2 {
        let answers = (client.get(READ).await, get(&client, READ, BOT).await);
        assert_eq!((answers.0.status, answers.1.status), (200, 200), "{answers:?}");
        assert!(answers.0.header("cache-control").unwrap().contains("s-maxage=1"), "{answers:?}");
        assert_eq!(answers.1.header("cache-control"), Some("no-cache"));
    }
    assert_eq!(client.get_with(READ, "authorization", "Basic Ym90OmJvdA==").await.status, 200);
    for path in [READ, READ, "/nowhere", "/health", "/docs", "/limits", "/watch?read=%2Fapi%2Fv2%2Fmarkets"] {
        for key in [UNKNOWN, OTHER, ""] {
            assert_unknown(&get(&client, path, key).await);
        }
        assert_unknown(&client.get_with(path, "x-api-key", UNKNOWN).await);
    }
    assert_unknown(&get(&client, "/api/v2/markets?pagination.first=x", UNKNOWN).await);
    assert_unknown(&client.post_with("/transaction", &[("x-api-key", UNKNOWN)], "{}").await);
    let bearer = format!("Bearer {BOT}");
    let both = client.get_with_all(READ, &[("authorization", &bearer), ("x-api-key", BOT)]).await;
    assert_problem(&both, 400, 3, 10_015);
    assert_eq!(client.send("OPTIONS", READ).await.status, 204);

    let (rpc, call) = (Rpc::connect(&mesh).await, Call::from_path(READ).unwrap());
    let ask = async |name: &'static str, value: &str| {
        let request = call.with_metadata(&[(name, value)]);
        rpc.call_with(&call, request).await
    };
    assert!(ask("authorization", &bearer).await.is_ok());
    for (name, value) in [("authorization", "Bearer mesh_unknown"), ("x-api-key", OTHER)] {
        assert_eq!(ask(name, value).await.unwrap_err().code(), Code::Unauthenticated);
    }
    let request = call.with_metadata(&[("x-api-key", UNKNOWN)]);
    let nowhere = rpc.call_at("/api.v2.Query/Nowhere".parse().unwrap(), request).await;
    assert_eq!(nowhere.unwrap_err().code(), Code::Unauthenticated);
    assert!(mesh.service("edge").log().contains("\"key\":\"bot\""), "the name is logged");
    // The testbed searches logs, answers and spans for the keys.
    mesh.service("edge").admin("/metrics").await;
    collector.until(|taken| taken.spans.iter().filter(|span| span.kind == "SERVER").count() > 30).await;
    assert_eq!(metric(&mesh, "edge", "mesh_edge_keys").await, 2);
}

#[tokio::test]
async fn another_file_is_in_force_in_seconds_and_a_faulty_one_is_not() {
    let both = [line("bot", BOT, &json!({"watches": 1})), line("other", OTHER, &json!({}))];
    let file = KeyFile::new(&both);
    let (_database, mesh, client) = fixture::start(|setup| file.configure(setup, &[])).await;
    let bearer = format!("Bearer {BOT}");
    let mut events = Events::open(&client, READ, &[("authorization", &bearer)]).await.unwrap();
    assert_eq!(events.event().await.name, "answer");
    let mut socket = WebSocket::open(client.url(), &[("x-api-key", OTHER)]).await.unwrap();
    socket.watch("a", READ).await;
    assert_eq!(socket.frame().await["id"], "a");
    let second = Events::open(&client, READ, &[("authorization", &bearer)]).await.unwrap_err();
    assert_problem(&second, 429, 8, 10_000);

    file.write(&format!("{}\nno line\n", both[1]));
    let faulty = async || metric(&mesh, "edge", "mesh_edge_keys_faulty").await;
    eventually(NOTICED, "the faulty file is not noticed", async || faulty().await == 1).await;
    assert!(mesh.service("edge").log().contains("line 2: "), "its line is logged");
    assert_eq!(get(&client, READ, BOT).await.status, 200, "the earlier keys stay");

    file.write(&format!("{}\n", both[1]));
    eventually(NOTICED, "the key is not removed", async || get(&client, READ, BOT).await.status == 401).await;
    assert_eq!((faulty().await, get(&client, READ, OTHER).await.status), (0, 200));
    assert!(mesh.service("edge").log().contains("files are good again"), "the end of the fault is logged");
    while events.block().await.is_some() {}
    file.write("\n");
    assert_eq!(socket.closed().await, 1008, "the watches of a removed key end");
    assert_unknown(&get(&client, READ, OTHER).await);
}

#[tokio::test]
async fn an_open_web_socket_follows_the_line_of_its_key() {
    let file = KeyFile::new(&[line("bot", BOT, &json!({"watches": 9}))]);
    let (_database, mesh, client) = fixture::start(|setup| file.configure(setup, &[])).await;
    let mut socket = WebSocket::open(client.url(), &[("x-api-key", BOT)]).await.unwrap();
    socket.watch("first", READ).await;
    assert_eq!(socket.frame().await["id"], "first");
    file.write(&format!("{}\n", line("bot", BOT, &json!({"watches": 1}))));
    let mut number = 0;
    let refused = retry(NOTICED, async || {
        number += 1;
        let id = number.to_string();
        socket.watch(&id, READ).await;
        let mut begun = socket.frame().await;
        while begun["id"] != id {
            begun = socket.frame().await;
        }
        socket.send(json!({"id": id, "unwatch": true}).to_string()).await;
        if begun["error"].is_null() { Err("the earlier limit holds") } else { Ok(begun) }
    })
    .await;
    assert_eq!(refused["error"]["code"], 8, "{refused}");
    file.write(&format!("{}\n", line("bot", BOT, &json!({"expires": "2020-01-01T00:00:00Z"}))));
    assert_eq!(socket.closed().await, 1008, "the key has expired");
    mesh.service("edge").stop().await;
    let used = access::json_lines(&mesh.service("edge").log());
    let is_refusal = |line: &Value| line["target"] == "usage" && line["refused"].as_u64() > Some(0);
    assert!(used.iter().any(is_refusal), "{used:?}");
}

#[tokio::test]
async fn without_a_key_there_is_no_data_when_keys_are_needed() {
    let file = KeyFile::new(&[line("bot", BOT, &json!({}))]);
    let env = [("MESH_EDGE_ANONYMOUS", "off")];
    let (_database, mesh, client) = fixture::start(|setup| file.configure(setup, &env)).await;
    for _ in 0..3 {
        assert_eq!(get(&client, READ, BOT).await.status, 200);
        assert_unknown(&client.get(READ).await);
    }
    for path in ["/api/v2/networkhistory/export?table=TABLE_TRADES", "/watch?read=%2Fapi%2Fv2%2Fmarkets"] {
        assert_unknown(&client.get(path).await);
    }
    assert_unknown(&Events::open(&client, READ, &[]).await.unwrap_err());
    assert_unknown(&client.post("/transaction", "{}").await);
    assert_eq!(WebSocket::open(client.url(), &[]).await.unwrap_err(), 401);
    let refused = Rpc::connect(&mesh).await.call(&Call::from_path(READ).unwrap()).await;
    assert_eq!(refused.unwrap_err().code(), Code::Unauthenticated);
    for path in ["/", "/docs", "/openapi.json", "/limits", "/health"] {
        assert_eq!(client.get(path).await.status, 200, "{path}");
    }
    assert_eq!(client.get("/nowhere").await.status, 404);
}

#[tokio::test]
async fn the_limits_of_a_key_replace_those_of_its_address_and_are_shared_by_the_edges() {
    let limits = json!({"ratePerS": 2, "burst": 20, "exports": 3, "watches": 0});
    let file = KeyFile::new(&[line("bot", BOT, &limits)]);
    let prefix = format!("keys{}", std::process::id());
    let env = [("MESH_BUS_PREFIX", prefix.as_str()), ("MESH_EDGE_RATE_PER_S", "1")];
    let (database, mesh, client) = fixture::start(|setup| file.configure(setup, &env)).await;
    let of_key = get(&client, "/limits", BOT).await;
    let rate = &of_key.json()["rate"];
    assert_eq!([&rate["requestsPerS"], &rate["burst"], &rate["exportsPerAddress"]], [2, 20, 3]);
    let of_address = client.get("/limits").await.json();
    assert_eq!([&of_address["rate"]["requestsPerS"], &of_address["rate"]["burst"]], [1, 5]);

    let share = async |client: &MeshClient| {
        let answer = get(client, READ, BOT).await;
        answer.header("ratelimit-limit").unwrap().parse::<u32>().unwrap()
    };
    assert_eq!(share(&client).await, 20);
    let second = file.configure(Mesh::configure(&database), &env);
    let second = second.without(&["query", "tx-relay", "export", "node-info"]).start().await;
    let second_client = MeshClient::new(&second);
    assert_eq!(share(&second_client).await, 10, "from its first request on");
    eventually(NOTICED, "the limit is not shared", async || share(&client).await == 10).await;
    let mut refused = None;
    for _ in 0..40 {
        let answer = get(&client, READ, BOT).await;
        refused = refused.or((answer.status == 429).then_some(answer));
    }
    assert_problem(&refused.expect("none is refused"), 429, 8, 400_001);
    assert_ne!(client.get(READ).await.status, 401, "the address has its own limit");
    second.service("edge").stop().await;
    eventually(NOTICED, "the share is not given back", async || share(&client).await == 20).await;

    mesh.service("edge").stop().await;
    let used = usage(&mesh, "ListMarkets").expect("it is recorded at the stop");
    assert!(used["requests"].as_u64() > Some(40) && used["refused"].as_u64() > Some(0), "{used}");
    assert!(used["bytes_out"].as_u64() > Some(1000) && used["to"].as_str() > used["from"].as_str(), "{used}");
    assert_eq!(usage(&second, "ListMarkets").expect("also there")["refused"], 0);
}
