//! A faulty gateway: a proxy in front of the real one that corrupts its answers.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex},
};

use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
    task::JoinSet,
};

/// The fault of an answer.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Fault {
    /// No fault.
    None,
    /// The connection is closed after so many bytes of the body.
    Cut(usize),
    /// The same, and its entity tag is changed.
    Retagged(usize),
    /// The connection stalls after so many bytes of the body and stays open.
    Stall(usize),
    /// The last byte of the body has a flipped bit.
    Flip,
    /// The answer is 503.
    Unavailable,
    /// The connection is closed without an answer.
    Closed,
}

/// The gateway. It ends when it is dropped.
pub(crate) struct Faulty {
    url: String,
    requests: Arc<Mutex<Vec<String>>>,
    _serving: JoinSet<()>,
}

impl Faulty {
    /// Spoils the answers one after the other; those after the last fault are left as they are.
    pub(crate) async fn before(url: &str, faults: &[Fault]) -> Self {
        let real = url.trim_start_matches("http://").to_owned();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let requests = Arc::new(Mutex::new(Vec::new()));
        let heads = requests.clone();
        let mut faults: VecDeque<Fault> = faults.iter().copied().collect();
        let mut serving = JoinSet::new();
        serving.spawn(async move {
            let mut answering = JoinSet::new();
            loop {
                let (client, _) = listener.accept().await.unwrap();
                let fault = faults.pop_front().unwrap_or(Fault::None);
                answering.spawn(answer(client, real.clone(), fault, heads.clone()));
            }
        });
        Self { url, requests, _serving: serving }
    }

    /// Where it answers.
    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    /// The heads of the requests so far, lower case.
    pub(crate) fn requests(&self) -> Vec<String> {
        self.requests.lock().unwrap().clone()
    }
}

async fn answer(mut client: TcpStream, real: String, fault: Fault, heads: Arc<Mutex<Vec<String>>>) {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let Ok(byte) = client.read_u8().await else { return };
        head.push(byte);
    }
    let head = String::from_utf8(head).unwrap();
    heads.lock().unwrap().push(head.to_ascii_lowercase());
    match fault {
        Fault::Closed => return,
        Fault::Unavailable => {
            let gone = "HTTP/1.1 503 X\r\nretry-after: 0\r\nconnection: close\r\ncontent-length: 0\r\n\r\n";
            let _ = client.write_all(gone.as_bytes()).await;
            return;
        }
        _ => {}
    }
    let mut server = TcpStream::connect(real).await.unwrap();
    let (line, fields) = head.split_once("\r\n").unwrap();
    server.write_all(format!("{line}\r\nconnection: close\r\n{fields}").as_bytes()).await.unwrap();
    let mut response = Vec::new();
    server.read_to_end(&mut response).await.unwrap();
    let body = response.windows(4).position(|end| end == b"\r\n\r\n").unwrap() + 4;
    if let Fault::Retagged(_) = fault {
        let tag = response.windows(7).position(|name| name == b"etag: \"").unwrap() + 7;
        // Changes one digit of the tag.
        response[tag] = if response[tag] == b'0' { b'1' } else { b'0' };
    }
    match fault {
        Fault::Cut(bytes) | Fault::Retagged(bytes) | Fault::Stall(bytes) => response.truncate(body + bytes),
        Fault::Flip => *response.last_mut().unwrap() ^= 1,
        Fault::None | Fault::Unavailable | Fault::Closed => {}
    }
    let _ = client.write_all(&response).await;
    if let Fault::Stall(_) = fault {
        // Until the client goes away.
        let _ = client.read(&mut [0]).await;
    }
}
