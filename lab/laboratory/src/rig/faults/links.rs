//! The network links of a mesh: a proxy between every replica and each of its servers, and one before the
//! edges.

use std::{net::SocketAddr, sync::Arc};

use mesh::failure::{Failure, cannot};
use mesh_proxy::Proxy;

use super::schedule::{Link, LinkEnd, links};
use crate::private::{ReplicaEnv, Servers};

/// All links with their proxies; none by default.
#[derive(Default)]
pub(crate) struct Links {
    proxies: Vec<(Link, Proxy)>,
}

impl Links {
    /// Starts a proxy between every replica and each of its servers, of which the node may be missing.
    pub(crate) async fn inside(
        servers: &Servers,
        node: Option<SocketAddr>,
        seed: u64,
    ) -> Result<Self, Failure> {
        let mut proxies = Vec::new();
        for name in links() {
            let to = match name.to {
                LinkEnd::Bus => address(&servers.bus.url)?,
                LinkEnd::Database => address(servers.database_address())?,
                LinkEnd::Node => match node {
                    Some(node) => node,
                    None => continue,
                },
                LinkEnd::Edges => continue,
            };
            let proxy = Proxy::start(to, seed).await.map_err(|error| cannot("start a proxy", &error))?;
            proxies.push((name, proxy));
        }
        Ok(Self { proxies })
    }

    /// Starts the proxy between clients and edges; returns the address for clients.
    pub(crate) async fn before(&mut self, edges: SocketAddr, seed: u64) -> Result<SocketAddr, Failure> {
        let proxy = Proxy::start(edges, seed).await.map_err(|error| cannot("start a proxy", &error))?;
        let address = proxy.address();
        self.proxies.push((Link { from: None, to: LinkEnd::Edges }, proxy));
        Ok(address)
    }

    /// The variables that make each replica connect through its own proxies.
    pub(crate) fn replica_env(&self, servers: &Servers) -> ReplicaEnv {
        let mut variables = Vec::new();
        for (Link { from, to }, proxy) in &self.proxies {
            let at = proxy.address();
            let user = from.map_or("", |target| target.name);
            let variable = match to {
                LinkEnd::Bus => ("MESH_BUS_URL", format!("nats://{at}")),
                LinkEnd::Database => {
                    let (url, there) = (servers.database.url_of(user), servers.database_address());
                    ("MESH_DATABASE_URL", url.replace(&format!("@{there}/"), &format!("@{at}/")))
                }
                LinkEnd::Node => ("MESH_NODE_URL", format!("http://{at}")),
                LinkEnd::Edges => continue,
            };
            variables.push((*from, variable));
        }
        Arc::new(move |service, replica| {
            let is_of = |(from, _): &&(Option<super::schedule::Target>, (&str, String))| {
                from.is_some_and(|target| target.name == service && target.replica == replica)
            };
            let of = variables.iter().filter(is_of);
            of.map(|(_, (name, value))| ((*name).to_owned(), value.clone())).collect()
        })
    }

    /// The proxies of a link, at least one.
    pub(crate) fn get(&self, link: Link) -> Result<impl Iterator<Item = &Proxy>, Failure> {
        let is_part =
            move |other: &Link| other.to == link.to && link.from.is_none_or(|_| other.from == link.from);
        let mut found = self.proxies.iter().filter(move |(other, _)| is_part(other)).peekable();
        match found.peek() {
            Some(_) => Ok(found.map(|(_, proxy)| proxy)),
            None => Err(Failure::failed(format!("there is no line from {link}"))),
        }
    }
}

fn address(text: &str) -> Result<SocketAddr, Failure> {
    let text = text.trim_start_matches("nats://");
    text.parse().map_err(|error| cannot("read the address of a server", &error))
}
