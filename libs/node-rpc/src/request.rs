//! Requests to nodes, and the bodies of the responses.

use std::time::Duration;

use mesh_chassis::Failure;
use mesh_problem::error_chain;
use reqwest::{Client, ClientBuilder, RequestBuilder, Response, header::AUTHORIZATION, redirect::Policy};

use crate::NodeUrl;

/// Idle connections are closed after this time: before a node does, which takes 10 s.
const IDLE_TIMEOUT: Duration = Duration::from_secs(5);

/// A client for requests to these nodes, without a proxy: the services reach their servers directly. No node chooses by a
/// redirect what else is asked.
pub fn client_builder(nodes: &[NodeUrl]) -> ClientBuilder {
    let client = Client::builder().no_proxy().redirect(Policy::none()).pool_idle_timeout(IDLE_TIMEOUT);
    // The system's certificates are read for `https` only.
    if nodes.iter().any(NodeUrl::is_tls) { client } else { client.tls_certs_only([]) }
}

/// The client of a service for the nodes of `MESH_NODE_URL`.
///
/// # Errors
/// An address cannot be requested, or the client cannot be built.
pub fn client(nodes: &[NodeUrl]) -> Result<Client, Failure> {
    let client = client_builder(nodes).build()?;
    for node in nodes {
        let built = node.get(&client, "status").build();
        built.map_err(|error| format!("MESH_NODE_URL: {}", describe(error)))?;
    }
    Ok(client)
}

impl NodeUrl {
    /// A request for a method of the node, with its credentials: `status` or `block?height=7`.
    pub fn get(&self, client: &Client, call: &str) -> RequestBuilder {
        let (method, parameters) = call.split_once('?').unwrap_or((call, ""));
        let mut address = self.endpoint(method).to_string();
        if !parameters.is_empty() {
            address.push(if address.contains('?') { '&' } else { '?' });
            address.push_str(parameters);
        }
        let request = client.get(address);
        match self.authorization() {
            Some(value) => request.header(AUTHORIZATION, value.clone()),
            None => request,
        }
    }
}

/// Reads the body of a response; `None` if it has more than `max_bytes`.
///
/// # Errors
/// The connection was lost.
pub async fn read_body(mut response: Response, max_bytes: usize) -> reqwest::Result<Option<Vec<u8>>> {
    let mut body = Vec::new();
    while let Some(piece) = response.chunk().await? {
        if body.len() + piece.len() > max_bytes {
            return Ok(None);
        }
        body.extend_from_slice(&piece);
    }
    Ok(Some(body))
}

/// Describes why a request failed, without its address, which may have a key in its path.
pub fn describe(error: reqwest::Error) -> String {
    error_chain(&error.without_url())
}
