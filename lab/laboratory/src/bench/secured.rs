//! Section "secured": what a key and TLS cost the edge, for reads from its cache.

use std::{
    fs,
    net::SocketAddr,
    path::{Path, PathBuf},
    sync::Arc,
};

use mesh::failure::{Failure, cannot};
use mesh_keys::{KeyDigest, KeyEntry};
use mesh_testbed::{TlsClient, certify, http1::Dial};
use rand::{Rng as _, SeedableRng as _, rngs::SmallRng};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};

use super::{
    comparison::{self, REQUESTS, Side},
    http_load::whole_length,
    load::{Client, Pace},
    section::Figures,
    world::World,
};

/// Keys in the file.
const KEYS: usize = 10_000;
/// Connections.
const CONNECTIONS: u64 = 32;
/// Rows that are read repeatedly.
const ROWS: usize = 100;
/// Process names of the edges.
const EDGES: [&str; 4] = ["edge", "edge-limit", "edge-keys", "edge-tls"];
/// A rate that no client reaches.
const RATE: u32 = 1_000_000;

/// Section "secured".
pub(super) async fn measure(world: &World<'_>) -> Result<Figures, Failure> {
    let (plain, rows) = (world.edges().await?.cached, world.withdrawals().await?);
    let keys: Arc<[String]> = (0..KEYS).map(|_| mesh_keys::generate()).collect();
    let folder = tempfile::tempdir().map_err(|error| cannot("use a temporary folder", &error))?;
    let file = folder.path().join("keys.jsonl");
    fs::write(&file, key_file(&keys)).map_err(|error| cannot("write the keys", &error))?;
    let tls = certify(folder.path());
    let start = async |name, variables: &[(&str, &str)]| {
        let own = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
        let variables = variables.iter().map(own).collect();
        world.mesh.start_named(&world.servers, &[("edge", name)], variables).await
    };
    let path = |file: &Path| file.to_string_lossy().into_owned();
    let with_limit = start(EDGES[1], &[("MESH_EDGE_RATE_PER_S", &RATE.to_string())]).await?;
    let with_keys = start(EDGES[2], &[("MESH_EDGE_KEYS_FILE", &path(&file))]).await?;
    let files = [path(&tls.certificate), path(&tls.key)];
    let variables = [("MESH_EDGE_TLS_CERT", &*files[0]), ("MESH_EDGE_TLS_KEY", &*files[1])];
    let with_tls = start(EDGES[3], &variables).await?;

    let side = |name, process, address, ca: Option<&PathBuf>, reconnects: bool| {
        let (watched, pace) = (world.mesh.watch(&[process]), Pace::closed(CONNECTIONS, world.length()));
        let target = Target {
            address,
            ca: ca.cloned(),
            reconnects,
            rows: rows[..ROWS].into(),
            keys: Arc::clone(&keys),
        };
        Side::blocking(name, REQUESTS, move || {
            pace.run(&watched, |number| {
                let (target, random) = (target.clone(), SmallRng::seed_from_u64(number));
                async move { Ok(SecuredClient { target, random, stream: None, answer: vec![0; 16 << 10] }) }
            })
        })
    };
    let sides = comparison::run_rounds([
        side("plain", EDGES[0], plain, None, false),
        side("a limit of the address", EDGES[1], with_limit, None, false),
        side("a limit of one of 10,000 keys", EDGES[2], with_keys, None, false),
        side("TLS", EDGES[3], with_tls, Some(&tls.ca), false),
        side("plain, a connection each", EDGES[0], plain, None, true),
        side("TLS, a connection each", EDGES[3], with_tls, Some(&tls.ca), true),
    ])
    .await?;
    let [plain, limit, key, tls, plain_each, tls_each] = &sides;
    let found =
        vec![key.cost() - limit.cost(), tls.cost() / plain.cost(), tls_each.cost() - plain_each.cost()];
    Ok(comparison::figures(
        &format!("{ROWS} withdrawals from the cache, {CONNECTIONS} connections"),
        &sides,
        found,
    ))
}

fn key_file(keys: &[String]) -> String {
    let entry = |(number, key): (usize, &String)| KeyEntry {
        name: format!("client {number}"),
        sha256: KeyDigest::of(key.as_bytes()),
        rate_per_s: Some(RATE),
        burst: None,
        exports: None,
        watches: None,
        expires: None,
    };
    mesh_keys::to_text(&keys.iter().enumerate().map(entry).collect::<Vec<_>>())
}

/// What a client asks for.
#[derive(Clone)]
struct Target {
    address: SocketAddr,
    /// The authority to trust; `None` = without TLS.
    ca: Option<PathBuf>,
    /// Whether each request has a connection of its own.
    reconnects: bool,
    rows: Arc<[String]>,
    /// Each request has one of them, also where no edge knows any.
    keys: Arc<[String]>,
}

trait Stream: AsyncRead + AsyncWrite + Unpin {}

impl<S: AsyncRead + AsyncWrite + Unpin> Stream for S {}

/// A client that sends one request after the other.
struct SecuredClient {
    target: Target,
    random: SmallRng,
    stream: Option<Box<dyn Stream>>,
    answer: Vec<u8>,
}

impl SecuredClient {
    async fn exchange(&mut self) -> std::io::Result<()> {
        let Target { address, ca, reconnects, rows, keys } = &self.target;
        let mut stream: Box<dyn Stream> = match (self.stream.take(), ca) {
            (Some(stream), _) => stream,
            (None, Some(ca)) => Box::new(TlsClient::connect(*address, ca, &[]).await?),
            (None, None) => Box::new(Dial::default().connect(*address).await?),
        };
        let row = &rows[self.random.random_range(0..rows.len())];
        let key = &keys[self.random.random_range(0..keys.len())];
        let request = format!("GET {row} HTTP/1.1\r\nHost: bench\r\nAuthorization: Bearer {key}\r\n\r\n");
        stream.write_all(request.as_bytes()).await?;
        stream.flush().await?;
        let mut filled = 0;
        while whole_length(&self.answer[..filled]).map_err(std::io::Error::other)? != Some(filled) {
            let read = stream.read(&mut self.answer[filled..]).await?;
            if read == 0 {
                return Err(std::io::ErrorKind::UnexpectedEof.into());
            }
            filled += read;
        }
        self.stream = (!reconnects).then_some(stream);
        Ok(())
    }
}

impl Client for SecuredClient {
    async fn call(&mut self) -> Result<bool, String> {
        self.exchange().await.map(|()| true).map_err(|error| error.to_string())
    }
}
