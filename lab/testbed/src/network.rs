//! A bus of several nats-servers, or of one separate from the server that all tests share.

use std::path::PathBuf;

use futures_util::future::join_all;
use mesh_launcher::{
    bus::Bus,
    process::{Process, Signal},
    servers::{self, Nats, NatsSettings, free_port},
};
use serde_json::Value;
use tokio::{
    io::{AsyncBufReadExt, BufReader},
    net::TcpStream,
};

use crate::{
    retry,
    servers::{ANY_MESH, READY_WITHIN, folder, nats_program},
    tls, unique,
};

/// nats-servers that form one bus, with the same users. Dropping this kills them.
#[derive(Debug)]
pub struct Network {
    members: Vec<Member>,
}

#[derive(Debug)]
struct Member {
    server: Nats,
    process: Option<Process>,
}

impl Network {
    /// Starts one server that accepts TLS only.
    pub async fn with_tls() -> Self {
        let test_folder = test_folder();
        let tls = Some(tls::certify(&test_folder.join("tls")));
        Self::start(&test_folder, vec![NatsSettings { tls, ..NatsSettings::of(ANY_MESH) }]).await
    }

    /// Starts a cluster of three servers, each with a route to the others.
    pub async fn cluster() -> Self {
        let ports = [(); 3].map(|()| port());
        let settings = ports.map(|own| {
            let others = ports.iter().filter(|port| **port != own);
            let routes: Vec<String> = others.map(|port| format!("\"nats://127.0.0.1:{port}\"")).collect();
            let cluster =
                format!("name: tests, listen: \"127.0.0.1:{own}\", routes: [{}]", routes.join(", "));
            // Silent servers are noticed as on Kubernetes; there for routes alone, which is new in NATS 2.11.
            let more = format!("cluster {{ {cluster} }}\nping_interval: \"1s\"\n");
            NatsSettings { more, ..NatsSettings::of(ANY_MESH) }
        });
        let cluster = Self::start(&test_folder(), settings.into()).await;
        for server in 0..cluster.members.len() {
            cluster.until_whole(server).await;
        }
        cluster
    }

    /// Starts a server and a leaf node of it.
    pub async fn hub_and_leaf() -> Self {
        let port = port();
        let hub = format!(
            "leafnodes {{ listen: \"127.0.0.1:{port}\", authorization {{ user: leaf, password: leaf }} }}\n"
        );
        let leaf =
            format!("leafnodes {{ remotes: [{{ url: \"nats-leaf://leaf:leaf@127.0.0.1:{port}\" }}] }}\n");
        let settings = [hub, leaf].map(|more| NatsSettings { more, ..NatsSettings::of(ANY_MESH) });
        Self::start(&test_folder(), settings.into()).await
    }

    async fn start(test_folder: &std::path::Path, settings: Vec<NatsSettings>) -> Self {
        let users = Some(test_folder.join("users"));
        let starting = settings.into_iter().enumerate().map(|(number, settings)| {
            let settings = NatsSettings { users: users.clone(), ..settings };
            async move {
                let (home, log) =
                    (test_folder.join(number.to_string()), test_folder.join(format!("{number}.log")));
                let server = Nats::prepare(&nats_program(), &home, &log, &settings).await;
                let server = server.unwrap_or_else(|error| panic!("no nats-server: {error}"));
                let process = Some(run(&server).await);
                Member { server, process }
            }
        });
        Self { members: join_all(starting).await }
    }

    /// The bus configuration of a client that connects to this server only.
    pub fn at(&self, server: usize) -> Bus {
        self.members[server].server.bus()
    }

    /// The bus configuration of a client that may connect to any server.
    pub fn bus(&self) -> Bus {
        let urls: Vec<String> = self.members.iter().map(|member| member.server.url()).collect();
        Bus { url: urls.join(","), ..self.at(0) }
    }

    /// Kills a server.
    pub async fn kill(&mut self, server: usize) {
        if let Some(process) = self.members[server].process.take() {
            process.kill_group();
            let _ = process.wait().await;
        }
    }

    /// Sends a server a signal, e.g. STOP to freeze it: its clients notice nothing but silence, as when a machine is lost.
    pub fn signal(&self, server: usize, signal: Signal) {
        if let Some(process) = &self.members[server].process {
            process.signal(signal).unwrap_or_else(|error| panic!("cannot signal a nats-server: {error}"));
        }
    }

    /// Starts a killed server again.
    pub async fn restart(&mut self, server: usize) {
        self.members[server].process = Some(run(&self.members[server].server).await);
    }

    /// Waits until a server of a cluster has routes to all others.
    pub async fn until_whole(&self, server: usize) {
        retry(READY_WITHIN, async || {
            let known = known_servers(&self.members[server].server.url()).await;
            let is_whole = known == Some(self.members.len());
            if is_whole { Ok(()) } else { Err(format!("the cluster does not come together: {known:?}")) }
        })
        .await;
    }
}

/// Number of cluster servers in a server's INFO message.
async fn known_servers(url: &str) -> Option<usize> {
    let stream = TcpStream::connect(url.trim_start_matches("nats://")).await.ok()?;
    let mut greeting = String::new();
    BufReader::new(stream).read_line(&mut greeting).await.ok()?;
    let info: Value = serde_json::from_str(greeting.trim_start_matches("INFO ")).ok()?;
    Some(info["connect_urls"].as_array()?.len())
}

async fn run(server: &Nats) -> Process {
    let started = servers::start(&server.spec(), || server.ready(READY_WITHIN)).await;
    started.unwrap_or_else(|error| panic!("no nats-server: {error}"))
}

fn test_folder() -> PathBuf {
    folder().join(format!("nats-{}", unique()))
}

fn port() -> u16 {
    free_port().unwrap_or_else(|error| panic!("no port for a nats-server: {error}"))
}
