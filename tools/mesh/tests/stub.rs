//! A gateway that answers what a test wants: an HTTP/1.1 server with one request on each connection.

use std::sync::{Arc, Mutex};

use tokio::{
    io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader},
    net::TcpListener,
    task::JoinSet,
};

/// The answer to a request.
pub(crate) struct Reply {
    /// Head and body.
    pub(crate) bytes: Vec<u8>,
    /// Whether the connection stays open after these bytes, until the test ends.
    pub(crate) stalls: bool,
}

/// A running stub. It ends when it is dropped.
pub(crate) struct StubGateway {
    pub(crate) url: String,
    requests: Arc<Mutex<Vec<(String, String)>>>,
    _serving: JoinSet<()>,
}

impl StubGateway {
    /// Answers each request with what `answer` makes of its head.
    pub(crate) async fn start<F>(mut answer: impl FnMut(String) -> F + Send + 'static) -> Self
    where
        F: Future<Output = Reply> + Send + 'static,
    {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let requests = Arc::new(Mutex::new(Vec::new()));
        let received = requests.clone();
        let mut serving = JoinSet::new();
        serving.spawn(async move {
            let mut stalled = Vec::new();
            while let Ok((stream, _)) = listener.accept().await {
                let mut stream = BufReader::new(stream);
                let mut head = String::new();
                while !head.ends_with("\r\n\r\n") {
                    assert!(stream.read_line(&mut head).await.unwrap() > 0);
                }
                let length = head.split("content-length: ").nth(1).and_then(|rest| rest.lines().next());
                let mut body = vec![0; length.map_or(0, |length| length.parse().unwrap())];
                stream.read_exact(&mut body).await.unwrap();
                received.lock().unwrap().push((head.clone(), String::from_utf8(body).unwrap()));
                let reply = answer(head).await;
                // Fails for a client that went away.
                let _ = stream.write_all(&reply.bytes).await;
                stalled.extend(reply.stalls.then_some(stream));
            }
        });
        Self { url, requests, _serving: serving }
    }

    /// Heads and bodies of the requests so far.
    pub(crate) fn requests(&self) -> Vec<(String, String)> {
        self.requests.lock().unwrap().clone()
    }

    /// The heads of the requests so far.
    pub(crate) fn heads(&self) -> Vec<String> {
        self.requests().into_iter().map(|(head, _)| head).collect()
    }
}
