//! The cases of Autobahn's fuzzing client against the sockets of the edge. Most of them need a server that sends
//! every message back, so here one does.

use std::{
    collections::BTreeMap,
    net::Ipv4Addr,
    process::{Command, Stdio},
};

use mesh_testbed::say;
use serde::Deserialize;
use serde_json::json;
use tokio::{
    net::{TcpListener, TcpStream},
    task::spawn_blocking,
};
use tokio_tungstenite::{
    accept_async,
    tungstenite::{
        Message,
        protocol::frame::coding::{Data, OpCode},
    },
};

use super::{
    frame,
    socket::{End, WebSocket},
};

/// The greatest message of the cases is 16 MiB.
const MAX_MESSAGE_BYTES: usize = 16 << 20;

/// By agent and case.
type Report = BTreeMap<String, BTreeMap<String, Outcome>>;

#[derive(Deserialize, Debug)]
#[serde(rename_all = "camelCase")]
struct Outcome {
    behavior: String,
    behavior_close: String,
}

impl Outcome {
    /// `NON-STRICT`: where the client sends invalid text, it is refused at the end of the frame.
    fn is_good(&self) -> bool {
        let is_good = |behavior: &str| ["OK", "NON-STRICT", "INFORMATIONAL"].contains(&behavior);
        is_good(&self.behavior) && is_good(&self.behavior_close)
    }
}

async fn echo(stream: TcpStream) {
    let Ok(accepted) = accept_async(stream).await else { return };
    let mut socket = WebSocket::new(accepted.into_inner(), MAX_MESSAGE_BYTES).await;
    let end = loop {
        let echoed = match socket.next().await {
            Ok(Message::Close(_)) => Err(End::ByClient),
            Ok(message @ (Message::Text(_) | Message::Binary(_))) => {
                let kind = if message.is_text() { Data::Text } else { Data::Binary };
                let payload = message.into_data();
                let header = frame::header(OpCode::Data(kind), payload.len(), "");
                socket.write(vec![header, payload]).await
            }
            Ok(_) => Ok(()),
            Err(end) => Err(end),
        };
        if let Err(end) = echoed {
            break end;
        }
    };
    socket.end(end).await;
}

#[tokio::test]
async fn no_case_of_the_fuzzing_client_fails() {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let folder = tempfile::tempdir().unwrap();
    let (spec, reports) = (folder.path().join("spec.json"), folder.path().join("reports"));
    let url = format!("ws://{}", listener.local_addr().unwrap());
    let text = json!({
        "outdir": reports,
        "servers": [{ "agent": "edge", "url": url }],
        "cases": ["*"],
        // Compression is not offered.
        "exclude-cases": ["12.*", "13.*"],
    });
    std::fs::write(&spec, text.to_string()).unwrap();
    let serving = tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(echo(stream));
        }
    });
    // Its log has thousands of lines.
    let client = Command::new("wstest")
        .args(["-m", "fuzzingclient", "-s"])
        .arg(&spec)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn();
    let mut client = match client {
        Err(error) => return say(&format!("skipped: the WebSocket cases of Autobahn by wstest ({error})")),
        Ok(client) => client,
    };
    let status = spawn_blocking(move || client.wait()).await.unwrap().unwrap();
    serving.abort();
    assert!(status.success());
    let report: Report = serde_json::from_slice(&std::fs::read(reports.join("index.json")).unwrap()).unwrap();
    let cases = &report["edge"];
    let mut counts = BTreeMap::<_, usize>::new();
    cases.values().for_each(|outcome| *counts.entry(&outcome.behavior).or_default() += 1);
    say(&format!("cases of Autobahn: {counts:?}"));
    let failed: Vec<_> = cases.iter().filter(|(_, outcome)| !outcome.is_good()).collect();
    assert!(failed.is_empty() && cases.len() > 240, "of {} cases: {failed:?}", cases.len());
}
