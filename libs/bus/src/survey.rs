//! A survey of the replicas on this mesh: their answers to the service convention's `$SRV.STATS`, as `nats
//! micro stats` shows them.

use std::time::Duration;

use async_nats::Message;
use bytes::Bytes;
use futures_util::{Stream, StreamExt};
use serde::Deserialize;
use tokio::time::{Instant, timeout_at};

use crate::{connection::Bus, error::BusError, permissions};

/// Most replicas of a survey.
const MAX_REPLICAS: usize = 512;

/// Most answers that are read, including those of other meshes on the same bus.
const MAX_ANSWERS: usize = 4096;

/// Longest answer that is read, bytes.
const MAX_ANSWER_BYTES: usize = 64 << 10;

/// The statistics of one replica.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct ReplicaStats {
    /// The workload.
    pub name: String,
    /// Name of the replica, new with every start.
    pub id: String,
    /// Version of the program.
    pub version: String,
    /// When it was started, RFC 3339.
    pub started: String,
    /// Its operations.
    pub endpoints: Vec<EndpointStats>,
}

/// Counts of one operation since the replica was started.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct EndpointStats {
    /// The operation.
    pub name: String,
    subject: String,
    /// Requests that were answered.
    pub num_requests: u64,
    /// Requests that failed.
    pub num_errors: u64,
    /// Nanoseconds spent on all of them.
    pub processing_time: u64,
}

/// The replicas that answered in time.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Survey {
    /// In the order of their answers.
    pub replicas: Vec<ReplicaStats>,
    /// Whether there were more replicas than these.
    pub is_cut: bool,
}

impl Bus {
    /// Asks every replica of this mesh for its statistics, and collects the answers for `duration`.
    ///
    /// # Errors
    /// When the bus cannot be asked.
    pub async fn survey(&self, duration: Duration) -> Result<Survey, BusError> {
        let client = &self.shared.client;
        let deadline = Instant::now() + duration;
        // An inbox of its own, because the number of answers is unknown. Workloads are asked one by one,
        // because each may reply only to inboxes with its own name.
        let inbox = client.new_inbox();
        let answers = client.subscribe(format!("{inbox}.*.survey")).await;
        let answers = answers.map_err(BusError::closed)?;
        for workload in permissions::workloads() {
            let (subject, reply) = (format!("$SRV.STATS.{workload}"), format!("{inbox}.{workload}.survey"));
            client.publish_with_reply(subject, reply, Bytes::new()).await.map_err(BusError::closed)?;
        }
        let answers = answers.map(|Message { payload, .. }| payload);
        Ok(gather(Box::pin(answers), &format!("{}.", self.shared.config.prefix), deadline).await)
    }
}

/// Collects the answers of one mesh, by the beginning of its subjects.
async fn gather(
    mut answers: impl Stream<Item = Bytes> + Unpin,
    beginning: &str,
    deadline: Instant,
) -> Survey {
    let mut survey = Survey::default();
    for _ in 0..MAX_ANSWERS {
        let Ok(Some(payload)) = timeout_at(deadline, answers.next()).await else { return survey };
        // Empty when there is no replica at all.
        if payload.is_empty() || payload.len() > MAX_ANSWER_BYTES {
            continue;
        }
        let Ok(replica) = serde_json::from_slice::<ReplicaStats>(&payload) else { continue };
        if !replica.endpoints.iter().any(|endpoint| endpoint.subject.starts_with(beginning)) {
            continue;
        }
        if survey.replicas.len() == MAX_REPLICAS {
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
        let long = Bytes::from(vec![b' '; MAX_ANSWER_BYTES + 1]);
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
    async fn a_survey_of_too_many_replicas_is_cut_and_says_so() {
        let all = |count| (0..count).map(|id: usize| answer(&id.to_string(), "mesh.query.X")).collect();
        assert!(!gathered(all(MAX_REPLICAS)).await.is_cut);
        let survey = gathered(all(MAX_REPLICAS + 1)).await;
        assert_eq!((survey.replicas.len(), survey.is_cut), (MAX_REPLICAS, true));
    }

    #[tokio::test]
    async fn a_survey_without_answers_ends_in_time() {
        let silence = stream::pending::<Bytes>();
        let survey = gather(silence, "mesh.", Instant::now() + Duration::from_millis(1)).await;
        assert_eq!(survey, Survey::default());
    }
}
