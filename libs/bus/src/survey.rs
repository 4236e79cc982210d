//! Surveys of the replicas on this mesh: their replies to `$SRV.STATS` of the NATS service convention, as in `nats
//! micro stats`. A replica that replies late is included with its last reply.

use std::{
    collections::HashMap,
    sync::{Arc, Weak},
    time::Duration,
};

use async_nats::{Message, Subscriber};
use bytes::Bytes;
use futures_util::StreamExt;
use serde::Deserialize;
use tokio::{
    sync::watch,
    time::{Instant, timeout_at},
};

use crate::{connection::Bus, error::BusError, permissions, replicas::PRESENCE};

/// Most replicas of a survey.
const MAX_REPLICAS: usize = 512;

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

/// The replicas that answered, now or a moment ago.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Survey {
    /// In no order.
    pub replicas: Vec<ReplicaStats>,
    /// Whether there were more replicas than these.
    pub is_cut: bool,
}

/// Surveys the replicas of this mesh.
#[derive(Debug)]
pub struct Surveyor {
    bus: Bus,
    inbox: String,
    answers: Arc<watch::Sender<Answers>>,
}

/// The latest answers.
#[derive(Debug, Default)]
struct Answers {
    /// By the id of the replica, with the time of its answer.
    replicas: HashMap<String, (Instant, ReplicaStats)>,
    /// When there was last no room for an answer.
    cut: Option<Instant>,
}

impl Surveyor {
    /// Starts to listen for answers, for as long as the surveyor exists.
    ///
    /// # Errors
    /// When the bus cannot be listened to.
    pub async fn start(bus: Bus) -> Result<Self, BusError> {
        let client = &bus.shared.client;
        // An inbox of its own, because the number of answers is unknown, and late ones count, too.
        let inbox = client.new_inbox();
        let messages = client.subscribe(format!("{inbox}.*.survey")).await.map_err(BusError::closed)?;
        let answers = Arc::<watch::Sender<Answers>>::default();
        tokio::spawn(listen(messages, format!("{}.", bus.shared.config.prefix), Arc::downgrade(&answers)));
        bus.listen_for_replicas();
        Ok(Self { bus, inbox, answers })
    }

    /// Requests the statistics of every replica of this mesh, until all live ones have replied, at most for
    /// `limit`. A replica that has not replied is included with its last reply, unless that is old or the replica
    /// has disconnected.
    ///
    /// # Errors
    /// When the request cannot be sent.
    pub async fn survey(&self, limit: Duration) -> Result<Survey, BusError> {
        let Self { bus, inbox, answers } = self;
        let asked = Instant::now();
        // Workloads are asked one by one, because each may reply only to inboxes with its own name.
        for workload in permissions::workloads() {
            let (subject, reply) = (format!("$SRV.STATS.{workload}"), format!("{inbox}.{workload}.survey"));
            let sent = bus.shared.client.publish_with_reply(subject, reply, Bytes::new()).await;
            sent.map_err(BusError::closed)?;
        }
        let replicas = &bus.shared.replicas;
        let alive = replicas.alive(asked);
        let mut changes = answers.subscribe();
        let all = changes.wait_for(|answers| {
            !alive.is_empty() && alive.iter().all(|id| answers.has_answered_since(id, asked))
        });
        let _ = timeout_at(asked + limit, all).await;
        Ok(answers.borrow().survey(asked, |id| replicas.is_known(id)))
    }
}

/// Collects the answers of the mesh whose subjects begin so.
async fn listen(mut messages: Subscriber, beginning: String, answers: Weak<watch::Sender<Answers>>) {
    while let Some(message) = messages.next().await {
        let Some(answers) = answers.upgrade() else { return };
        if let Some(replica) = read(&message, &beginning) {
            answers.send_modify(|answers| answers.add(replica, Instant::now()));
        }
    }
}

/// An answer, when it is one of this mesh, and of the workload that may publish to its subject.
fn read(Message { subject, payload, .. }: &Message, beginning: &str) -> Option<ReplicaStats> {
    // Empty when there is no replica at all.
    if payload.is_empty() || payload.len() > MAX_ANSWER_BYTES {
        return None;
    }
    let replica: ReplicaStats = serde_json::from_slice(payload).ok()?;
    let is_own = subject.rsplit('.').nth(1) == Some(&replica.name);
    let is_of_mesh = replica.endpoints.iter().any(|endpoint| endpoint.subject.starts_with(beginning));
    (is_own && is_of_mesh).then_some(replica)
}

impl Answers {
    fn add(&mut self, replica: ReplicaStats, now: Instant) {
        if self.replicas.len() >= MAX_REPLICAS && !self.replicas.contains_key(&replica.id) {
            self.replicas.retain(|_, (at, _)| now.duration_since(*at) < PRESENCE);
            if self.replicas.len() >= MAX_REPLICAS {
                self.cut = Some(now);
                return;
            }
        }
        self.replicas.insert(replica.id.clone(), (now, replica));
    }

    fn has_answered_since(&self, id: &str, asked: Instant) -> bool {
        self.replicas.get(id).is_some_and(|(at, _)| *at >= asked)
    }

    /// The replicas that have answered since, and those that answered shortly before and are still known.
    fn survey(&self, asked: Instant, is_known: impl Fn(&str) -> bool) -> Survey {
        let is_there = |(id, (at, _)): &(&String, &(Instant, ReplicaStats))| {
            *at >= asked || asked.duration_since(*at) < PRESENCE && is_known(id)
        };
        let there = self.replicas.iter().filter(is_there);
        Survey {
            replicas: there.map(|(_, (_, replica))| replica.clone()).collect(),
            is_cut: self.cut.is_some_and(|at| at >= asked),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn message(subject: &str, payload: Bytes) -> Message {
        let (subject, length) = (subject.into(), payload.len());
        Message { subject, reply: None, payload, headers: None, status: None, description: None, length }
    }

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

    fn replica(id: &str) -> ReplicaStats {
        read(&message("inbox.query.survey", answer(id, "mesh.query.X")), "mesh.").unwrap()
    }

    fn ids(survey: &Survey) -> Vec<&str> {
        let mut ids: Vec<_> = survey.replicas.iter().map(|replica| replica.id.as_str()).collect();
        ids.sort_unstable();
        ids
    }

    #[test]
    fn answers_of_this_mesh_are_read_and_others_are_not() {
        let own = answer("a", "mesh.query.GetWithdrawal");
        let replica = read(&message("inbox.query.survey", own.clone()), "mesh.").unwrap();
        assert_eq!((replica.name.as_str(), replica.id.as_str()), ("query", "a"));
        let [endpoint] = replica.endpoints.as_slice() else { panic!("{replica:?}") };
        assert_eq!((endpoint.num_requests, endpoint.num_errors, endpoint.processing_time), (7, 1, 900));
        let long = Bytes::from(vec![b' '; MAX_ANSWER_BYTES + 1]);
        let others = [answer("b", "mesh2.query.GetWithdrawal"), Bytes::new(), Bytes::from_static(b"{"), long];
        assert!(
            others.into_iter().all(|other| read(&message("inbox.query.survey", other), "mesh.").is_none())
        );
        assert!(
            read(&message("inbox.export.survey", own), "mesh.").is_none(),
            "published by another workload"
        );
    }

    #[test]
    fn a_replica_that_answers_late_is_shown_as_it_was_heard_last_and_one_that_is_gone_is_not() {
        let (mut answers, before) = (Answers::default(), Instant::now());
        for id in ["late", "gone", "prompt"] {
            answers.add(replica(id), before);
        }
        let asked = before + Duration::from_secs(1);
        answers.add(ReplicaStats { version: "0.2.0".to_owned(), ..replica("prompt") }, asked);
        assert!(answers.has_answered_since("prompt", asked) && !answers.has_answered_since("late", asked));
        let survey = answers.survey(asked, |id| id != "gone");
        assert_eq!(ids(&survey), ["late", "prompt"]);
        assert!(survey.replicas.iter().any(|replica| replica.version == "0.2.0"), "the newest answer counts");
        assert_eq!(
            ids(&answers.survey(before + PRESENCE, |_| true)),
            ["prompt"],
            "it was silent for too long"
        );
    }

    #[test]
    fn a_survey_of_too_many_replicas_is_cut_and_says_so() {
        let (mut answers, asked) = (Answers::default(), Instant::now());
        for id in 0..MAX_REPLICAS {
            answers.add(replica(&id.to_string()), asked);
        }
        assert!(!answers.survey(asked, |_| true).is_cut);
        answers.add(replica("0"), asked);
        assert!(!answers.survey(asked, |_| true).is_cut, "it is known already");
        answers.add(replica("one more"), asked);
        let survey = answers.survey(asked, |_| true);
        assert_eq!((survey.replicas.len(), survey.is_cut), (MAX_REPLICAS, true));
        let later = asked + PRESENCE;
        answers.add(replica("one more"), later);
        let survey = answers.survey(later, |_| true);
        assert_eq!(
            (ids(&survey), survey.is_cut),
            (vec!["one more"], false),
            "those of long ago leave their room"
        );
    }
}
