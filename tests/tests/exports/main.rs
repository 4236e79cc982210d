//! Downloads as a client sees them: sealed history as spliced ZIPs with every way to ask for a part of one, the
//! ledger as CSV, and the chunk form of both. The fixture's three blocks are three segments.

#![allow(clippy::unwrap_used)] // in what the tests share

mod history;
mod ledger;

use std::time::Duration;

use mesh_testbed::{Answer, Database, Mesh};
use mesh_tests::{fixture, outside::Outside};
use reqwest::Method;
use tokio::{
    sync::OnceCell,
    time::{Instant, sleep},
};

const SEGMENTS: &str = "/api/v2/networkhistory/segments";

/// A mesh over the fixture whose history is sealed.
struct Sealed {
    database: Database,
    mesh: Mesh,
}

impl Sealed {
    async fn start() -> Self {
        let database = fixture::database().await;
        let mesh = Mesh::configure(&database).env("MESH_HISTORY_INTERVAL_BLOCKS", "1").start().await;
        let sealed = Self { database, mesh };
        let deadline = Instant::now() + Duration::from_secs(30);
        loop {
            let answer = sealed.outside().get(SEGMENTS).await;
            if answer.status == 200 && answer.json()["segments"].as_array().unwrap().len() == 3 {
                return sealed;
            }
            assert!(Instant::now() < deadline, "the history is not sealed: {answer:?}");
            sleep(Duration::from_millis(20)).await;
        }
    }

    /// The one that all tests of this process share. They only read.
    async fn shared() -> &'static Self {
        static SHARED: OnceCell<Sealed> = OnceCell::const_new();
        SHARED.get_or_init(Self::start).await
    }

    fn outside(&self) -> Outside {
        Outside::of(&self.mesh)
    }

    /// What PostgreSQL itself prints.
    async fn copy(&self, query: &str) -> Vec<u8> {
        use futures_util::TryStreamExt;
        let client = self.database.connect().await;
        client.batch_execute("SET TimeZone = 'UTC'").await.unwrap();
        let copied =
            client.copy_out(&format!("COPY ({query}) TO STDOUT (FORMAT csv, HEADER)")).await.unwrap();
        let rows: Vec<_> = copied.try_collect().await.unwrap();
        rows.concat()
    }
}

/// Gets a path with these headers.
async fn get(outside: &Outside, path: &str, headers: &[(&str, &str)]) -> Answer {
    let request = outside.request(Method::GET, path);
    Answer::to(headers.iter().fold(request, |request, (name, value)| request.header(*name, *value))).await
}

/// The objects of a chunk form, one per line.
fn lines(answer: &Answer) -> Vec<serde_json::Value> {
    assert_eq!(answer.header("content-type"), Some("application/x-ndjson"), "{answer:?}");
    answer.text().lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// The bytes in a chunk form.
fn bytes(lines: &[serde_json::Value]) -> Vec<u8> {
    use base64::{Engine as _, engine::general_purpose::STANDARD};
    let data = |line: &serde_json::Value| STANDARD.decode(line["result"]["data"].as_str().unwrap()).unwrap();
    lines.iter().flat_map(data).collect()
}
