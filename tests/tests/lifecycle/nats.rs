//! A minimal client of the NATS protocol, independent of the mesh's library.

use std::{
    sync::atomic::{AtomicUsize, Ordering},
    time::Duration,
};

use serde_json::{Value, json};
use tokio::{
    io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader},
    net::{
        TcpStream,
        tcp::{OwnedReadHalf, OwnedWriteHalf},
    },
    time::timeout,
};

/// Time limit for the first reply; on a busy machine it may be late.
const FIRST_REPLY_LIMIT: Duration = Duration::from_secs(10);

/// Time without a reply after which no more are expected.
const QUIET: Duration = Duration::from_millis(250);

/// A connection to the bus with one subscription for replies.
pub(crate) struct Client {
    reader: BufReader<OwnedReadHalf>,
    writer: OwnedWriteHalf,
    replies: String,
}

/// A reply: its headers as text, its payload.
pub(crate) struct Reply {
    pub(crate) headers: String,
    pub(crate) payload: Vec<u8>,
}

impl Client {
    /// Connects to the tests' bus; `None` where that uses TLS, which this client does not support.
    pub(crate) async fn connect() -> Option<Self> {
        let server = mesh_testbed::nats().await;
        if server.bus().tls_ca.is_some() {
            mesh_tests::say("skipped: the bus speaks TLS, and its protocol by hand is without");
            return None;
        }
        let address = server.url().trim_start_matches("nats://");
        let stream = TcpStream::connect(address).await.expect("the bus listens");
        let (reader, mut writer) = stream.into_split();
        let mut options = json!({"verbose": false, "pedantic": false, "headers": true, "no_responders": true,
            "lang": "test", "version": "1.0.0", "protocol": 1});
        if let Some(file) = server.bus().credentials_of("operator") {
            let text = std::fs::read_to_string(file).expect("the credentials are there");
            let (user, password) = text.trim().split_once(':').expect("user:password");
            options["user"] = user.into();
            options["pass"] = password.into();
        }
        static CLIENTS: AtomicUsize = AtomicUsize::new(0);
        let replies =
            format!("_INBOX_operator.{}.{}", std::process::id(), CLIENTS.fetch_add(1, Ordering::Relaxed));
        let hello = format!("CONNECT {options}\r\nSUB {replies} 1\r\nPING\r\n");
        writer.write_all(hello.as_bytes()).await.expect("the bus reads");
        let mut client = Self { reader: BufReader::new(reader), writer, replies };
        while client.line().await != "PONG" {}
        Some(client)
    }

    /// Sends a request to a subject and collects replies until none arrives for [`QUIET`].
    pub(crate) async fn ask(&mut self, subject: &str, payload: &[u8]) -> Vec<Reply> {
        let head = format!("PUB {subject} {} {}\r\n", self.replies, payload.len());
        self.writer.write_all(&[head.as_bytes(), payload, b"\r\n"].concat()).await.expect("the bus reads");
        let (mut replies, mut limit) = (Vec::new(), FIRST_REPLY_LIMIT);
        while let Ok(reply) = timeout(limit, self.reply()).await {
            replies.push(reply);
            limit = QUIET;
        }
        replies
    }

    /// Sends a request of the service convention; returns the replies as JSON.
    pub(crate) async fn question(&mut self, subject: &str) -> Vec<Value> {
        let replies = self.ask(subject, b"").await;
        replies
            .iter()
            .map(|reply| serde_json::from_slice(&reply.payload).expect("the reply is JSON"))
            .collect()
    }

    async fn reply(&mut self) -> Reply {
        loop {
            let line = self.line().await;
            let fields: Vec<&str> = line.split(' ').collect();
            let size = |at: usize| fields[fields.len() - at].parse::<usize>().expect("a length");
            let (headers, whole) = match fields[0] {
                "MSG" => (0, size(1)),
                "HMSG" => (size(2), size(1)),
                "PING" => {
                    self.writer.write_all(b"PONG\r\n").await.expect("the bus reads");
                    continue;
                }
                _ => panic!("the bus says {line}"),
            };
            let mut bytes = vec![0; whole + 2];
            self.reader.read_exact(&mut bytes).await.expect("the bus sends on");
            let headers_text = String::from_utf8_lossy(&bytes[..headers]).into_owned();
            return Reply { headers: headers_text, payload: bytes[headers..whole].to_vec() };
        }
    }

    async fn line(&mut self) -> String {
        let mut line = String::new();
        let length = self.reader.read_line(&mut line).await.expect("the bus speaks text");
        assert!(length > 0, "the bus hung up");
        line.trim_end().to_owned()
    }
}
