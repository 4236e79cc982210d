//! Answers of a replica to PING, INFO and STATS of the bus's service convention (ADR-32), so that the tools
//! of NATS list the replicas.

use std::{cell::RefCell, rc::Rc, time::Duration};

use async_nats::Message;
use futures_util::{StreamExt, stream::select_all};
use serde::Serialize;

use crate::{config::BusConfig, connection::Bus, error::BusError, metrics::Outcome, subjects::SERVICE_VERBS};

/// Identity and counts of one replica.
#[derive(Debug)]
pub(crate) struct Stats {
    name: &'static str,
    id: String,
    version: String,
    started: String,
    endpoints: RefCell<Vec<Endpoint>>,
}

#[derive(Debug, Clone, Serialize)]
struct Endpoint {
    name: &'static str,
    subject: String,
    queue_group: &'static str,
    num_requests: u64,
    num_errors: u64,
    last_error: String,
    /// Nanoseconds.
    processing_time: u64,
    /// Nanoseconds.
    average_processing_time: u64,
}

#[derive(Serialize)]
struct Description<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    name: &'a str,
    id: &'a str,
    version: &'a str,
    metadata: serde_json::Map<String, serde_json::Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    description: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    started: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    endpoints: Option<Vec<Endpoint>>,
}

impl Stats {
    pub(crate) fn new(config: &BusConfig, name: &'static str) -> Self {
        Self {
            name,
            id: nuid::next().to_string(),
            version: config.version.clone(),
            started: jiff::Timestamp::now().to_string(),
            endpoints: RefCell::default(),
        }
    }

    /// The workload.
    pub(crate) fn name(&self) -> &'static str {
        self.name
    }

    /// The name of the replica, new with every start.
    pub(crate) fn id(&self) -> &str {
        &self.id
    }

    /// Adds an operation.
    pub(crate) fn add(&self, name: &'static str, subject: String, queue_group: &'static str) {
        self.endpoints.borrow_mut().push(Endpoint {
            name,
            subject,
            queue_group,
            num_requests: 0,
            num_errors: 0,
            last_error: String::new(),
            processing_time: 0,
            average_processing_time: 0,
        });
    }

    /// Counts a request that has ended.
    pub(crate) fn count(&self, name: &str, took: Duration, outcome: Outcome) {
        let mut endpoints = self.endpoints.borrow_mut();
        let Some(endpoint) = endpoints.iter_mut().find(|endpoint| endpoint.name == name) else { return };
        endpoint.num_requests += 1;
        endpoint.processing_time += u64::try_from(took.as_nanos()).unwrap_or(u64::MAX);
        endpoint.average_processing_time = endpoint.processing_time / endpoint.num_requests;
        if outcome == Outcome::Failed {
            endpoint.num_errors += 1;
            "failed".clone_into(&mut endpoint.last_error);
        }
    }

    fn describe(&self, verb: &str) -> Vec<u8> {
        let mut description = Description {
            kind: "io.nats.micro.v1.ping_response",
            name: self.name,
            id: &self.id,
            version: &self.version,
            metadata: serde_json::Map::new(),
            description: None,
            started: None,
            endpoints: None,
        };
        match verb {
            "INFO" => {
                description.kind = "io.nats.micro.v1.info_response";
                description.description = proto_msgs::description(self.name);
                description.endpoints = Some(self.endpoints.borrow().clone());
            }
            "STATS" => {
                description.kind = "io.nats.micro.v1.stats_response";
                description.started = Some(&self.started);
                description.endpoints = Some(self.endpoints.borrow().clone());
            }
            _ => {}
        }
        serde_json::to_vec(&description).expect("text and numbers")
    }
}

/// Answers the convention's requests to all services, to this workload, and to this replica, until the
/// process ends.
///
/// # Errors
/// When the connection is closed.
pub(crate) async fn answer(bus: &Bus, stats: &Rc<Stats>) -> Result<(), BusError> {
    let client = bus.shared.client.clone();
    let mut questions = Vec::new();
    for verb in SERVICE_VERBS {
        for subject in [
            format!("$SRV.{verb}"),
            format!("$SRV.{verb}.{}", stats.name),
            format!("$SRV.{verb}.{}.{}", stats.name, stats.id),
        ] {
            let messages = client.subscribe(subject).await.map_err(BusError::closed)?;
            questions.push(messages.map(move |message: Message| (verb, message)));
        }
    }
    let stats = Rc::clone(stats);
    actix::spawn(async move {
        let mut questions = select_all(questions);
        while let Some((verb, message)) = questions.next().await {
            if let Some(reply_to) = message.reply {
                let _ = client.publish(reply_to, stats.describe(verb).into()).await;
            }
        }
    });
    Ok(())
}
