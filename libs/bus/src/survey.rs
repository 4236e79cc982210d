//! Who serves on this mesh right now: what the replicas answer to the service convention's `$SRV.STATS`, as
//! `nats micro stats` shows it.

use std::time::Duration;

use async_nats::Message;
use bytes::Bytes;
use futures_util::{Stream, StreamExt};
use serde::Deserialize;
use tokio::time::{Instant, timeout_at};

use crate::{
    connection::{Bus, BusError},
    permissions,
};

/// More replicas than this are not told of.
const REPLICAS_AT_MOST: usize = 512;

/// Answers looked at, those of other meshes on the same bus included.
const ANSWERS_AT_MOST: usize = 4096;

/// A longer answer is nobody's.
const ANSWER_AT_MOST: usize = 64 << 10;

/// What one replica says of itself.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct ReplicaStats {
    /// The workload.
    pub name: String,
    /// Its own name, new with every start.
    pub id: String,
    /// Of the program.
    pub version: String,
    /// When it began to serve, RFC 3339.
    pub started: String,
    /// By operation, since then.
    pub endpoints: Vec<EndpointStats>,
}

/// What a replica counted of one operation.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct EndpointStats {
    /// The operation.
    pub name: String,
    subject: String,
    /// Requests that were answered.
    pub num_requests: u64,
    /// Those of them that failed.
    pub num_errors: u64,
    /// Nanoseconds spent on all of them.
    pub processing_time: u64,
}

/// The replicas that answered in time.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Survey {
    /// In the order of their answers.
    pub replicas: Vec<ReplicaStats>,
    /// Whether there were more than are told of.
    pub is_cut: bool,
}

impl Bus {
    /// Asks every replica of this mesh for its counts, and takes what is answered within this time.
    ///
    /// # Errors
    /// When the bus cannot be asked.
    pub async fn survey(&self, within: Duration) -> Result<Survey, BusError> {
        let client = &self.shared.client;
        let closed = |error: Box<dyn std::error::Error + Send + Sync>| BusError::Closed(error);
        let deadline = Instant::now() + within;
        // An inbox of its own: one question has many answers, and nobody knows how many. Workloads are asked one by one,
        // because each may reply only where the asker expects it.
        let inbox = client.new_inbox();
        let answers = client.subscribe(format!("{inbox}.*.survey")).await;
        let answers = answers.map_err(|error| closed(error.into()))?;
        for workload in permissions::workloads() {
            let (subject, reply) = (format!("$SRV.STATS.{workload}"), format!("{inbox}.{workload}.survey"));
            let asked = client.publish_with_reply(subject, reply, Bytes::new()).await;
            asked.map_err(|error| closed(error.into()))?;
        }
        let answers = answers.map(|Message { payload, .. }| payload);
        Ok(gather(Box::pin(answers), &format!("{}.", self.shared.config.prefix), deadline).await)
    }
}

/// Takes the answers of one mesh, by what its subjects begin with.
async fn gather(
    mut answers: impl Stream<Item = Bytes> + Unpin,
    beginning: &str,
    deadline: Instant,
) -> Survey {
    let mut survey = Survey::default();
    for _ in 0..ANSWERS_AT_MOST {
        let Ok(Some(payload)) = timeout_at(deadline, answers.next()).await else { return survey };
        // Empty when nobody serves at all.
        if payload.is_empty() || payload.len() > ANSWER_AT_MOST {
            continue;
        }
        let Ok(replica) = serde_json::from_slice::<ReplicaStats>(&payload) else { continue };
        if !replica.endpoints.iter().any(|endpoint| endpoint.subject.starts_with(beginning)) {
            continue;
        }
        if survey.replicas.len() == REPLICAS_AT_MOST {
            break;
        }
        survey.replicas.push(replica);
    }
    survey.is_cut = true;
    survey
}

#[cfg(test)]
mod tests {
    use futures_util::stream;
    use serde_json::json;

    use super::*;

    fn answer(id: &str, subject: &str) -> Bytes {
        let endpoint = json!({
            "name": "GetWithdrawal", "subject": subject, "queue_group": "query", "num_requests": 7,
            "num_errors": 1, "last_error": "", "processing_time": 900, "average_processing_time": 128,
        });
        let stats = json!({
            "type": "io.nats.micro.v1.stats_response", "name": "query", "id": id, "version": "0.1.0",
            "metadata": {}, "started": "2026-01-01T00:00:00Z", "endpoints": [endpoint],
        });
        stats.to_string().into()
    }

    async fn gathered(answers: Vec<Bytes>) -> Survey {
        gather(stream::iter(answers), "mesh.", Instant::now() + Duration::from_secs(60)).await
    }

    #[tokio::test]
    async fn answers_of_this_mesh_are_counted_and_others_are_not() {
        let long = Bytes::from(vec![b' '; ANSWER_AT_MOST + 1]);
        let others = [answer("b", "mesh2.query.GetWithdrawal"), Bytes::new(), Bytes::from_static(b"{"), long];
        let mut answers = vec![answer("a", "mesh.query.GetWithdrawal")];
        answers.extend(others);
        let survey = gathered(answers).await;
        assert!(!survey.is_cut);
        let [replica] = survey.replicas.as_slice() else { panic!("{survey:?}") };
        assert_eq!((replica.name.as_str(), replica.id.as_str()), ("query", "a"));
        let [endpoint] = replica.endpoints.as_slice() else { panic!("{replica:?}") };
        assert_eq!((endpoint.num_requests, endpoint.num_errors, endpoint.processing_time), (7, 1, 900));
    }

    #[tokio::test]
    async fn too_many_are_cut_and_said_to_be() {
        let all = |count| (0..count).map(|id: usize| answer(&id.to_string(), "mesh.query.X")).collect();
        assert!(!gathered(all(REPLICAS_AT_MOST)).await.is_cut);
        let survey = gathered(all(REPLICAS_AT_MOST + 1)).await;
        assert_eq!((survey.replicas.len(), survey.is_cut), (REPLICAS_AT_MOST, true));
    }

    #[tokio::test]
    async fn silence_ends_in_time() {
        let silence = stream::pending::<Bytes>();
        let survey = gather(silence, "mesh.", Instant::now() + Duration::from_millis(1)).await;
        assert_eq!(survey, Survey::default());
    }
}
