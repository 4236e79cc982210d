//! The servers of these commands: those that were named, or those of the mesh that runs in the home.

use mesh_bus::Bus;
use mesh_ingest::{Decoder, EVENT_PREFIX, node::Nodes};
use mesh_launcher::{
    bus::{self, BusCredentials},
    control::{Answer, Request, ask},
    services::INGEST,
};
use mesh_node_rpc::NodeUrl;
use mesh_problem::error_chain;
use mesh_store::append::Appender;
use tokio::time::{Duration, timeout};

use super::args::PlaceArgs;
use crate::{
    cli::HomeArgs,
    failure::{Failure, failed},
};

const CONNECT_WITHIN: Duration = Duration::from_secs(5);

/// The variables of the service `ingest` of the mesh in the home.
pub(super) struct Variables {
    /// Why there are none, when there are none.
    missing: String,
    variables: Vec<(String, String)>,
}

impl Variables {
    pub(super) async fn of(home: &HomeArgs) -> Result<Self, Failure> {
        let home = home.home()?;
        let root = home.root().display();
        let (missing, variables) = match ask(&home, &Request::Environment { name: INGEST.to_owned() }).await {
            Ok(Answer::Environment { variables }) => {
                (format!("the mesh in {root} does not have it"), variables)
            }
            Ok(_) => (format!("the mesh in {root} has no ingest"), Vec::new()),
            Err(_) => (format!("no mesh runs in {root}; name its folder with --home"), Vec::new()),
        };
        Ok(Self { missing, variables })
    }

    fn get(&self, name: &str) -> Option<String> {
        self.variables.iter().rev().find(|(found, _)| found == name).map(|(_, value)| value.clone())
    }

    pub(super) fn nodes(&self, given: Option<&str>) -> Result<Nodes, Failure> {
        let Some(urls) = given.map(str::to_owned).or_else(|| self.get("MESH_NODE_URL")) else {
            return Err(failed!("{}; name a consensus node with --node", self.missing));
        };
        let urls: Result<Vec<NodeUrl>, _> = urls.split(',').map(|url| url.trim().parse()).collect();
        let urls = urls.map_err(|error| Failure::configuration(format!("the node's address: {error}")))?;
        Nodes::new(urls).map_err(|error| failed!("cannot make a client of the node: {error}"))
    }

    pub(super) async fn store(&self, given: Option<&str>) -> Result<Appender, Failure> {
        let Some(url) = given.map(str::to_owned).or_else(|| self.get("MESH_DATABASE_URL")) else {
            return Err(failed!("{}; name a database with --postgres", self.missing));
        };
        Ok(Appender::connect(&url).await?)
    }

    /// The decoder: the built-in one when it is named, else that of the mesh.
    pub(super) async fn decoder(&self, place: &PlaceArgs) -> Result<Decoder, Failure> {
        let is_service =
            place.decoder.is_none() && self.get("MESH_INGEST_DECODER").as_deref() == Some("nats");
        if !is_service {
            let prefix = self.get("MESH_INGEST_EVENT_PREFIX").filter(|prefix| !prefix.is_empty());
            return Ok(Decoder::Events(prefix.unwrap_or_else(|| EVENT_PREFIX.to_owned())));
        }
        let bus = bus::Bus {
            url: self.get("MESH_BUS_URL").unwrap_or_default(),
            credentials: self.get("MESH_BUS_CREDENTIALS").map(|file| BusCredentials::Shared(file.into())),
            tls_ca: self.get("MESH_BUS_TLS_CA").map(Into::into),
        };
        let prefix = self.get("MESH_BUS_PREFIX").unwrap_or_else(|| "mesh".to_owned());
        let config = bus.config(INGEST, &prefix);
        let config = config.map_err(|error| failed!("the bus's credentials: {error}"))?;
        let bus = Bus::connect(config).await.map_err(|error| Failure::configuration(error_chain(&error)))?;
        if timeout(CONNECT_WITHIN, bus.until_connected()).await.is_err() {
            let why = bus.check().err().unwrap_or_default();
            return Err(failed!("{why}; see `mesh doctor`"));
        }
        Ok(Decoder::Service(bus))
    }
}
