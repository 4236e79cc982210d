//! Edges as on the public internet: with TLS, and with a key that every request needs.

use std::{fs, io, net::SocketAddr, path::Path, time::Duration};

use mesh::failure::{Failure, cannot};
use mesh_keys::{KeyDigest, KeyEntry};
use mesh_launcher::servers::TlsFiles;
use mesh_testbed::{Authority, TlsClient, poll, tls_tunnel};

use super::clients::connection::KEY;
use crate::private::variables;

/// Longest time until an edge presents a new certificate.
const NOTICED_WITHIN: Duration = Duration::from_secs(10);

/// The files of the edges.
pub(super) struct PublicAccess {
    authority: Authority,
    tls: TlsFiles,
    edge: Option<SocketAddr>,
    pub(super) env: Vec<(String, String)>,
}

impl PublicAccess {
    /// Makes a certificate, and a file with the key of the drills' clients.
    pub(super) fn prepare(folder: &Path) -> Result<Self, Failure> {
        let folder = folder.join("public");
        let authority = Authority::generate();
        let tls = authority.certify(&folder);
        let keys = folder.join("keys.jsonl");
        let entry = key_entry("drill".to_owned(), KEY, 0);
        fs::write(&keys, mesh_keys::to_text(&[entry])).map_err(|error| cannot("write the keys", &error))?;
        let files = [
            ("MESH_EDGE_TLS_CERT", &tls.certificate),
            ("MESH_EDGE_TLS_KEY", &tls.key),
            ("MESH_EDGE_KEYS_FILE", &keys),
        ];
        let mut env = variables(&files.map(|(name, file)| (name, file.to_string_lossy())));
        env.extend(variables(&[("MESH_EDGE_ANONYMOUS", "off")]));
        Ok(Self { authority, tls, edge: None, env })
    }

    /// The address at which clients without TLS reach the edges by TLS.
    pub(super) fn tunnel(&mut self, edge: SocketAddr) -> SocketAddr {
        self.edge = Some(edge);
        tls_tunnel(edge, &self.tls.ca)
    }

    /// Where clients with TLS reach the edges, and what they trust.
    pub(super) fn secured(&self) -> Result<(SocketAddr, TlsClient), Failure> {
        let client = TlsClient::trusting(&self.tls.ca, &[]);
        self.edge.zip(client.ok()).ok_or_else(|| Failure::failed("the edges have no certificate"))
    }

    /// Replaces the certificate by one of the same authority, and waits until a new connection gets it.
    pub(super) async fn replace_certificate(&self) -> Result<(), Failure> {
        let presented = async || {
            let edge = self.edge.ok_or(io::ErrorKind::NotConnected)?;
            let stream = TlsClient::connect(edge, &self.tls.ca, &[]).await?;
            let certificates = stream.get_ref().1.peer_certificates();
            let first = certificates.and_then(<[_]>::first).ok_or(io::ErrorKind::InvalidData)?;
            Ok::<_, io::Error>(first.to_vec())
        };
        let before = presented().await.map_err(|error| cannot("connect by TLS", &error))?;
        if let Some(folder) = self.tls.ca.parent() {
            self.authority.certify(folder);
        }
        let is_replaced = async || match presented().await {
            Ok(now) if now != before => Ok(()),
            Ok(_) => Err(Failure::failed("the edges still present the earlier certificate")),
            Err(error) => Err(cannot("connect by TLS", &error)),
        };
        poll(NOTICED_WITHIN, is_replaced).await
    }
}

/// A key with a rate of requests a second, and without other limits; a rate of 0 is none.
pub(crate) fn key_entry(name: String, key: &str, rate_per_s: u32) -> KeyEntry {
    KeyEntry {
        name,
        sha256: KeyDigest::of(key.as_bytes()),
        rate_per_s: Some(rate_per_s),
        burst: None,
        exports: Some(0),
        watches: Some(0),
        expires: None,
    }
}
