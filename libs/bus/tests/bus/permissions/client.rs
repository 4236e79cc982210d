//! A client that speaks the bus's protocol directly, so that refusals arrive in the order of its commands.

use std::time::Duration;

use mesh_bus::Credentials;
use mesh_launcher::servers::Nats;
use tokio::{
    io::{AsyncBufReadExt, AsyncWriteExt, BufReader},
    net::TcpStream,
    time::timeout,
};

const TEST_TIMEOUT: Duration = Duration::from_secs(20);

pub(crate) struct Client(BufReader<TcpStream>);

impl Client {
    pub(crate) async fn connect(server: &Nats, user: &str) -> Self {
        let address = server.url();
        let stream = TcpStream::connect(address.trim_start_matches("nats://")).await.unwrap();
        let Credentials::Password { user, password } = Credentials::read(&server.users().join(user)).unwrap()
        else {
            panic!("{user} has no password")
        };
        let mut client = Self(BufReader::new(stream));
        let connect = format!(r#"CONNECT {{"verbose":false,"user":"{user}","pass":"{password}"}}"#);
        assert_eq!(client.refusal(&connect).await, None, "{user} is accepted");
        client
    }

    /// Whether the server allows publishing to a subject.
    pub(crate) async fn may_publish(&mut self, subject: &str) -> bool {
        let refusal = self.refusal(&format!("PUB {subject} 0\r\n")).await;
        is_none(refusal.as_deref(), &format!("Permissions Violation for Publish to \"{subject}\""))
    }

    /// Whether the server allows subscribing to a subject, in a queue group if there is one.
    pub(crate) async fn may_subscribe(&mut self, subject: &str, queue: Option<&str>) -> bool {
        let queue = queue.map_or_else(String::new, |queue| format!(" {queue}"));
        let refusal = self.refusal(&format!("SUB {subject}{queue} 1\r\nUNSUB 1")).await;
        is_none(refusal.as_deref(), &format!("Permissions Violation for Subscription to \"{subject}\""))
    }

    /// The server's error for these lines of the protocol, if any.
    async fn refusal(&mut self, lines: &str) -> Option<String> {
        self.0.write_all(format!("{lines}\r\nPING\r\n").as_bytes()).await.unwrap();
        let mut refusal = None;
        loop {
            let mut line = String::new();
            let length = timeout(TEST_TIMEOUT, self.0.read_line(&mut line)).await.unwrap().unwrap();
            assert!(length > 0, "hung up after {lines}: {refusal:?}");
            match line.trim_end() {
                "PONG" => return refusal,
                // Messages published here may be delivered back.
                line if line.starts_with("-ERR") => refusal = Some(line.to_owned()),
                _ => {}
            }
        }
    }
}

fn is_none(refusal: Option<&str>, expected: &str) -> bool {
    match refusal {
        None => true,
        Some(refusal) => {
            assert!(refusal.contains(expected), "another refusal than {expected}: {refusal}");
            false
        }
    }
}
