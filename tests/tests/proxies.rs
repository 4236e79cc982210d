//! The proxy configurations of `examples/proxy`, as docs/operations/proxy.md shows them: nginx and Caddy in front of a
//! mesh pass reads, events, gRPC and downloads on, and the address of the client. A proxy that is not installed is
//! skipped with a message.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Stdio,
    time::Duration,
};

use mesh_launcher::servers::{TlsFiles, free_port};
use mesh_testbed::{Mesh, certify, retry};
use mesh_tests::{MeshClient, SEALED, fixture, is_here, say};
use prost_reflect::prost::Message as _;
use proto_msgs::v2::WatchRequest;
use tempfile::TempDir;
use tokio::{
    io::AsyncReadExt as _,
    process::{Child, Command},
    time::{Instant, timeout},
};

use crate::watch::{LIMITS, write_block};

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/..");
const PAGE: &str = "docs/operations/proxy.md";
const WITHIN: Duration = Duration::from_secs(20);
/// Requests that one address may send at once.
const BURST: usize = 1000;
/// The lines that the page puts before the server of nginx.
const HTTP_LINES: &str = "\
proxy_cache_path /var/cache/tradewind keys_zone=tradewind:10m max_size=1g inactive=10s use_temp_path=off;
proxy_cache_path /var/cache/tradewind-past keys_zone=tradewind_past:10m max_size=1g inactive=1d use_temp_path=off;
map $arg_atBlock $tradewind_cache { default tradewind_past; \"\" tradewind; }
map $http_accept $tradewind_stream { default \"\"; ~event-stream 1; }
";
const EXPORT: &str = "/api/v2/networkhistory/export?fromBlock=1&toBlock=3&table=TABLE_TRADES";

fn example(name: &str) -> String {
    fs::read_to_string(Path::new(ROOT).join("examples/proxy").join(name)).unwrap()
}

struct ProxyServer {
    _process: Child,
    folder: TempDir,
    tls: TlsFiles,
    port: u16,
}

impl ProxyServer {
    /// Starts nginx or Caddy with its example; only addresses, certificates and folders are those of the test.
    fn start(program: &str, mesh: &Mesh, is_caching: bool) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let tls = certify(folder.path());
        let port = free_port().unwrap();
        let path = |name: &str| folder.path().join(name).display().to_string();
        let own = |text: String| {
            let text = text.replace("127.0.0.1:8080", mesh.url().trim_start_matches("http://"));
            text.replace("127.0.0.1:9090", mesh.grpc_url().trim_start_matches("http://"))
        };
        let mut command = Command::new(program);
        if program == "nginx" {
            let site = own(example("nginx.conf")).replace("listen 443", &format!("listen 127.0.0.1:{port}"));
            fs::write(path("tradewind-cache.conf"), example("nginx-cache.conf")).unwrap();
            let site = match is_caching {
                true => {
                    let include = format!("    include {};\n    location / {{", path("tradewind-cache.conf"));
                    let site = site.replacen("    location / {", &include, 1);
                    HTTP_LINES.replace("/var/cache/tradewind", &path("cache")) + &site
                }
                false => site,
            };
            fs::write(path("site.conf"), site.replace("/etc/ssl/tradewind", &path(""))).unwrap();
            let temporary = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
                .map(|name| format!("{name}_temp_path {};", path(name)));
            let main = format!(
                "daemon off; master_process off; pid {}; error_log stderr; events {{}}\n\
                 http {{ access_log off; {} include {}; }}\n",
                path("pid"),
                temporary.concat(),
                path("site.conf"),
            );
            fs::write(path("main.conf"), main).unwrap();
            command.args(["-p", &path(""), "-c", &path("main.conf")]);
        } else {
            let global = "{\n\tadmin off\n\tauto_https disable_redirects\n\tdefault_bind 127.0.0.1\n}\n";
            let (certificate, key) = (tls.certificate.display(), tls.key.display());
            let address = format!("https://localhost:{port} {{\n\ttls {certificate} {key}\n");
            let site = own(example("Caddyfile")).replace("gateway.example.com {\n", &address);
            fs::write(path("Caddyfile"), format!("{global}{site}")).unwrap();
            command.args(["run", "--adapter", "caddyfile", "--config", &path("Caddyfile")]);
            command.env("HOME", folder.path()).env("XDG_DATA_HOME", folder.path());
            command.env("XDG_CONFIG_HOME", folder.path());
        }
        let log = fs::File::create(path("log")).unwrap();
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log).kill_on_drop(true);
        Self { _process: command.spawn().unwrap(), tls, port, folder }
    }

    fn curl(&self, path: &str, args: &[&str]) -> Command {
        let mut curl = Command::new("curl");
        curl.args(["-4sSN", "--max-time", "20", "--cacert"]).arg(&self.tls.ca).args(args);
        curl.arg(format!("https://localhost:{}{path}", self.port)).current_dir(self.folder.path());
        curl.kill_on_drop(true);
        curl
    }

    async fn get(&self, path: &str, args: &[&str]) -> Result<Vec<u8>, String> {
        let output = self.curl(path, args).output().await.unwrap();
        let log = || fs::read_to_string(self.folder.path().join("log")).unwrap_or_default();
        let error = || format!("{}\n{}", String::from_utf8_lossy(&output.stderr), log());
        if output.status.success() { Ok(output.stdout) } else { Err(error()) }
    }

    /// The beginning of a stream that does not end, up to a text.
    async fn begins(&self, path: &str, args: &[&str], end: &[u8]) -> Vec<u8> {
        let mut curl = self.curl(path, args).stdout(Stdio::piped()).spawn().unwrap();
        let (mut out, mut read) = (curl.stdout.take().unwrap(), Vec::new());
        let until = async {
            while !read.windows(end.len()).any(|bytes| bytes == end) {
                assert!(out.read_buf(&mut read).await.unwrap() > 0, "{path} ends");
            }
        };
        timeout(WITHIN / 4, until).await.unwrap_or_else(|_| panic!("{path} is held back"));
        read
    }

    /// `RateLimit-Remaining` of the last of some requests of an address.
    async fn remaining(&self, address: &str, requests: usize) -> usize {
        let path = format!("/api/v2/markets?pagination.first=[1-{requests}]");
        let shown = self.get(&path, &["--interface", address, "-o", "answer", "-D", "-"]).await;
        let shown = String::from_utf8(shown.unwrap()).unwrap().to_lowercase();
        let last = shown.rsplit("ratelimit-remaining: ").next().unwrap();
        last.split_whitespace().next().unwrap().parse().unwrap()
    }
}

/// The bytes of a gRPC message in its frame.
fn frame(folder: &Path, message: &[u8]) -> PathBuf {
    let file = folder.join("message");
    let length = u32::try_from(message.len()).unwrap().to_be_bytes();
    fs::write(&file, [&[0][..], &length, message].concat()).unwrap();
    file
}

async fn passes_everything_on(program: &str) {
    if let Some(lacks) = [program, "curl"].into_iter().find(|program| !is_here(program)) {
        say(&format!("skipped: {program} in front of a mesh, because there is no {lacks}"));
        return;
    }
    let database = fixture::database().await;
    let setup = Mesh::configure(&database).env("MESH_EDGE_TRUSTED_PROXIES", "127.0.0.1/32");
    let setup = setup.env("MESH_EDGE_RATE_PER_S", "1").env("MESH_EDGE_RATE_BURST", BURST.to_string());
    let mesh = setup.env("MESH_HISTORY_INTERVAL_BLOCKS", "1").start().await;
    let direct = MeshClient::new(&mesh);
    direct.until_sealed(&SEALED).await;
    let proxy = ProxyServer::start(program, &mesh, false);
    retry(WITHIN, async || proxy.get("/health", &["--fail"]).await).await;

    // Each client has an allowance of its own.
    let own = ["--interface", "127.0.0.2"];
    assert!(proxy.remaining("127.0.0.3", 20).await < BURST - 1, "{program}");
    assert_eq!(proxy.remaining("127.0.0.4", 1).await, BURST - 1, "{program}");

    let markets = "/api/v2/markets?pagination.first=1";
    // Over HTTP/1.1: to a client with HTTP/2, nginx forwards events in any case.
    let events = ["--http1.1", "-H", "Accept: text/event-stream", own[0], own[1]];
    let begin = proxy.begins(markets, &events, b"\ndata: {\"markets\"").await;
    assert!(begin.starts_with(b"retry: 1000\n"), "{program}: {}", String::from_utf8_lossy(&begin));

    let upgrade = ["--http1.1", "-i", "-H", "Connection: Upgrade", "-H", "Upgrade: websocket"];
    let key = ["-H", "Sec-WebSocket-Version: 13", "-H", "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ=="];
    let handshake = [&upgrade[..], &key, &own].concat();
    // curl prints the head of a 101 when it ends.
    let mut curl = proxy.curl("/watch", &[&handshake[..], &["--max-time", "2"]].concat());
    let switched = String::from_utf8_lossy(&curl.output().await.unwrap().stdout).into_owned();
    let is_switched =
        switched.starts_with("HTTP/1.1 101 ") && switched.contains("s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
    assert!(is_switched, "{program}: {switched}");

    let watch = WatchRequest { method: "api.v2.Query/ListMarkets".to_owned(), request: None };
    let message = format!("@{}", frame(proxy.folder.path(), &watch.encode_to_vec()).display());
    let grpc = ["--http2", "-H", "content-type: application/grpc", "-H", "te: trailers", "--data-binary"];
    let call = [&grpc[..], &[&message], &own].concat();
    proxy.begins("/api.v2.Watch/Watch", &call, fixture::MARKET.as_bytes()).await;

    let whole = direct.get(EXPORT).await.body;
    proxy.get(EXPORT, &["-r", "0-99", "-o", "part", own[0], own[1]]).await.unwrap();
    assert_eq!(fs::read(proxy.folder.path().join("part")).unwrap(), whole[..100], "{program}");
    proxy.get(EXPORT, &["-C", "-", "-o", "part", own[0], own[1]]).await.unwrap();
    assert_eq!(fs::read(proxy.folder.path().join("part")).unwrap(), whole, "{program}");
}

#[tokio::test]
async fn nginx_passes_everything_on() {
    passes_everything_on("nginx").await;
}

#[tokio::test]
async fn caddy_passes_everything_on() {
    passes_everything_on("caddy").await;
}

/// The number of reads that the edge has answered.
async fn answered(mesh: &Mesh) -> u64 {
    let metrics = mesh.service("edge").admin("/metrics").await;
    let lines = metrics.text().lines();
    let counts = lines.filter(|line| line.starts_with("http_server_request_duration_seconds_count"));
    let markets = counts.filter(|line| line.contains("operation=\"ListMarkets\""));
    markets.filter_map(|line| line.rsplit(' ').next()?.parse::<u64>().ok()).sum()
}

#[tokio::test]
async fn a_cache_asks_once_for_all_clients() {
    if let Some(lacks) = ["nginx", "curl"].into_iter().find(|program| !is_here(program)) {
        say(&format!("skipped: a cache in front of a mesh, because there is no {lacks}"));
        return;
    }
    let database = fixture::database().await;
    let mesh = Mesh::configure(&database).env("MESH_EDGE_SHARED_MAX_AGE_S", "1").start().await;
    let proxy = ProxyServer::start("nginx", &mesh, true);
    retry(WITHIN, async || proxy.get("/health", &["--fail"]).await).await;
    let started = Instant::now();
    for _ in 0..50 {
        proxy.get("/api/v2/markets?pagination.first=[1-4]", &["--fail", "-o", "answer"]).await.unwrap();
    }
    let most = 4 * (started.elapsed().as_secs() + 2);
    let answered = answered(&mesh).await;
    assert!((4..=most).contains(&answered), "the edge answered {answered} of 200, at most {most}");
    let kept = fs::read(proxy.folder.path().join("answer")).unwrap();
    assert_eq!(kept, MeshClient::new(&mesh).get("/api/v2/markets?pagination.first=4").await.body);
    let events = ["--http1.1", "-H", "Accept: text/event-stream"];
    proxy.begins("/api/v2/markets", &events, b"\ndata: {\"markets\"").await;

    // An answer that does not change has the height of a new block.
    let height = async |height: &str| {
        let head = proxy.get(LIMITS, &["--fail", "-o", "answer", "-D", "-"]).await?;
        let head = String::from_utf8_lossy(&head).to_lowercase();
        head.contains(&format!("x-block-height: {height}\r\n")).then_some(()).ok_or(head)
    };
    height(fixture::HEIGHT).await.unwrap();
    write_block(&database.connect().await, 4, None).await;
    retry(WITHIN / 2, async || height("4").await).await;
}

#[test]
fn the_page_shows_the_configurations() {
    let page = fs::read_to_string(Path::new(ROOT).join(PAGE)).unwrap();
    for (language, name) in [("nginx", "nginx.conf"), ("nginx", "nginx-cache.conf"), ("text", "Caddyfile")] {
        let block = format!("```{language}\n{}```\n", example(name));
        assert!(page.contains(&block), "{PAGE} does not show examples/proxy/{name} as it is");
    }
    assert!(page.contains(&format!("```nginx\n{HTTP_LINES}```\n")), "{PAGE} does not show {HTTP_LINES}");
}
