//! Which replicas of each workload are alive. The bus does not detect a frozen replica and keeps sending it
//! its share of the requests, so replicas send heartbeats. While one of them is silent, requests go to the
//! others by name instead of to the queue group, until its next heartbeat or until a probe shows that it is
//! gone.

use std::{
    collections::HashMap,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering},
    },
    time::Duration,
};

use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use tokio::time::Instant;

use crate::activity::Activity;

/// Shortest interval between two probes of a silent replica.
pub(crate) const PROBE_INTERVAL: Duration = Duration::from_secs(1);

/// After listening for this long, the replicas of a workload of which one is known have all sent a heartbeat.
const INFORMED_AFTER: Duration = Duration::from_secs(1);

/// After listening for this long, every live replica has sent a heartbeat, even if none was woken.
const FULLY_INFORMED_AFTER: Duration = Duration::from_millis(2500);

/// A replica counts as present for this long after a heartbeat, unless the bus reports that it has disconnected: a
/// slow replica sends late heartbeats.
pub(crate) const PRESENCE: Duration = Duration::from_secs(5);

/// The heartbeat of a replica.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Heartbeat {
    pub(crate) id: String,
    /// Whether it takes new requests; a draining replica does not.
    pub(crate) is_taking: bool,
    /// How often it has connected to the bus.
    #[serde(default)]
    pub(crate) connects: u64,
}

/// The replicas of every workload, by their heartbeats.
#[derive(Debug)]
pub(crate) struct Replicas {
    /// The requests to all of them.
    pub(crate) activity: Arc<Activity>,
    groups: Mutex<HashMap<String, Arc<ReplicaGroup>>>,
    listening_since: OnceLock<Instant>,
}

/// The replicas of one workload.
#[derive(Debug, Default)]
pub(crate) struct ReplicaGroup {
    activity: Arc<Activity>,
    members: Mutex<Vec<Member>>,
    /// Whether a replica is silent while others take requests.
    has_silent: AtomicBool,
    /// Whether a replica has ever sent a heartbeat.
    was_known: AtomicBool,
    /// How often what a replica was asked was lost: with the replica, or with its connection.
    losses: AtomicU64,
    turn: AtomicUsize,
    /// Whether this client sends requests to the workload. The bus lets it probe no other one.
    is_asked: AtomicBool,
}

#[derive(Debug, Clone)]
struct Member {
    id: Arc<str>,
    is_taking: bool,
    connects: u64,
    last_heartbeat: Instant,
    last_probe: Instant,
}

impl Member {
    fn is_alive(&self, activity: &Activity, now: Instant) -> bool {
        activity.is_alive(self.last_heartbeat, now)
    }

    fn is_long_silent(&self, now: Instant) -> bool {
        now.duration_since(self.last_heartbeat) >= PROBE_INTERVAL
    }
}

impl Replicas {
    pub(crate) fn new() -> Self {
        Self { activity: Arc::default(), groups: Mutex::default(), listening_since: OnceLock::new() }
    }

    pub(crate) fn group(&self, workload: &str) -> Arc<ReplicaGroup> {
        let mut groups = self.groups.lock();
        if let Some(group) = groups.get(workload) {
            return Arc::clone(group);
        }
        let group = ReplicaGroup { activity: Arc::clone(&self.activity), ..ReplicaGroup::default() };
        Arc::clone(groups.entry(workload.to_owned()).or_insert_with(|| Arc::new(group)))
    }

    /// Records that listening for heartbeats starts now; `false` when it has started before.
    pub(crate) fn start_listening(&self) -> bool {
        self.listening_since.set(Instant::now()).is_ok()
    }

    /// Whether every replica of a group is known to be gone, and not only silent or draining: none is left
    /// that could answer an earlier request.
    pub(crate) fn are_gone(&self, group: &ReplicaGroup) -> bool {
        let Some(since) = self.listening_since.get() else { return false };
        let was_known = group.was_known.load(Ordering::Relaxed);
        let informed_after = if was_known { INFORMED_AFTER } else { FULLY_INFORMED_AFTER };
        since.elapsed() > informed_after && group.members.lock().is_empty()
    }

    /// The replicas that are alive and take requests.
    pub(crate) fn alive(&self, now: Instant) -> Vec<Arc<str>> {
        let is_alive = |member: &&Member| member.is_taking && member.is_alive(&self.activity, now);
        let groups = self.groups.lock();
        let alive_of = |group: &Arc<ReplicaGroup>| -> Vec<Arc<str>> {
            group.members.lock().iter().filter(is_alive).map(|member| Arc::clone(&member.id)).collect()
        };
        groups.values().flat_map(alive_of).collect()
    }

    /// Whether a replica has sent a heartbeat and is not known to be gone.
    pub(crate) fn is_known(&self, id: &str) -> bool {
        let groups = self.groups.lock();
        groups.values().any(|group| group.members.lock().iter().any(|member| &*member.id == id))
    }

    /// All groups with their workloads.
    pub(crate) fn groups(&self) -> Vec<(String, Arc<ReplicaGroup>)> {
        self.groups.lock().iter().map(|(workload, group)| (workload.clone(), Arc::clone(group))).collect()
    }
}

impl ReplicaGroup {
    /// Records that this client sends requests to the workload.
    pub(crate) fn mark_asked(&self) {
        self.is_asked.store(true, Ordering::Relaxed);
    }

    /// A live replica to send to by name while another one is silent; `None` = send to the queue group.
    pub(crate) fn pick_around_silent(&self) -> Option<Arc<str>> {
        if !self.has_silent() {
            return None;
        }
        self.pick_excluding(&[], Instant::now())
    }

    /// Whether a replica is silent while others take requests.
    pub(crate) fn has_silent(&self) -> bool {
        self.has_silent.load(Ordering::Relaxed)
    }

    /// How many replicas have gone or have connected again so far. What they were asked before is never answered.
    pub(crate) fn losses(&self) -> u64 {
        self.losses.load(Ordering::Relaxed)
    }

    /// Whether there is no second replica that could have room when the first is full.
    pub(crate) fn has_one(&self) -> bool {
        self.members.lock().len() < 2
    }

    /// Whether no replica is known.
    pub(crate) fn has_none(&self) -> bool {
        self.members.lock().is_empty()
    }

    /// The replicas that take requests, also those that are silent.
    pub(crate) fn names(&self) -> Vec<String> {
        let members = self.members.lock();
        members.iter().filter(|member| member.is_taking).map(|member| member.id.to_string()).collect()
    }

    /// Adds replicas that another one knows. They are silent until their first heartbeat here, or until a probe shows
    /// that they are gone.
    pub(crate) fn learn(&self, names: &[String], now: Instant) {
        let mut members = self.members.lock();
        for name in names {
            if !members.iter().any(|member| *member.id == **name) {
                let long_ago = now.checked_sub(PRESENCE).unwrap_or(now);
                let id = name.as_str().into();
                let (last_heartbeat, last_probe) = (long_ago, long_ago);
                members.push(Member { id, is_taking: true, connects: 0, last_heartbeat, last_probe });
            }
        }
    }

    /// Whether any replica is there and takes requests; it may be slow to answer.
    pub(crate) fn is_taking(&self, now: Instant) -> bool {
        let is_there = |member: &Member| now.duration_since(member.last_heartbeat) < PRESENCE;
        self.members.lock().iter().any(|member| member.is_taking && is_there(member))
    }

    /// The next live replica in turn that is none of `excluded`.
    pub(crate) fn pick_excluding(&self, excluded: &[Box<str>], now: Instant) -> Option<Arc<str>> {
        let members = self.members.lock();
        let is_candidate = |member: &&Member| {
            member.is_taking
                && member.is_alive(&self.activity, now)
                && !excluded.iter().any(|id| **id == *member.id)
        };
        let candidates: Vec<&Member> = members.iter().filter(is_candidate).collect();
        let turn = self.turn.fetch_add(1, Ordering::Relaxed);
        candidates.get(turn % candidates.len().max(1)).map(|member| Arc::clone(&member.id))
    }

    /// The replicas but `own` that are alive and take requests, and the number of those that are silent but not
    /// known to be gone. A draining replica is neither.
    pub(crate) fn others_taking(&self, own: &str, now: Instant) -> (Vec<Arc<str>>, usize) {
        let members = self.members.lock();
        let (alive, silent): (Vec<&Member>, Vec<&Member>) = members
            .iter()
            .filter(|member| member.is_taking && *member.id != *own)
            .partition(|member| member.is_alive(&self.activity, now));
        (alive.into_iter().map(|member| Arc::clone(&member.id)).collect(), silent.len())
    }

    /// The replica with the latest heartbeat: the one to hedge with, since a frozen one cannot have sent it.
    pub(crate) fn pick_most_recent(&self, now: Instant) -> Option<Arc<str>> {
        let members = self.members.lock();
        let taking = members.iter().filter(|member| member.is_taking);
        let latest = taking.max_by_key(|member| member.last_heartbeat)?;
        latest.is_alive(&self.activity, now).then(|| Arc::clone(&latest.id))
    }

    /// Marks a replica that did not listen as draining, until its next heartbeat.
    pub(crate) fn mark_draining(&self, id: &str) {
        for member in self.members.lock().iter_mut().filter(|member| &*member.id == id) {
            member.is_taking = false;
        }
    }

    /// Removes a replica that is gone.
    pub(crate) fn remove(&self, id: &str) {
        self.members.lock().retain(|member| &*member.id != id);
        self.losses.fetch_add(1, Ordering::Relaxed);
        self.check(Instant::now());
    }

    /// Takes a heartbeat into account.
    pub(crate) fn record(&self, heartbeat: &Heartbeat, now: Instant) {
        let Heartbeat { id, is_taking, connects } = heartbeat;
        self.was_known.store(true, Ordering::Relaxed);
        let mut members = self.members.lock();
        match members.iter_mut().find(|member| *member.id == **id) {
            Some(member) => {
                (member.last_heartbeat, member.is_taking) = (now, *is_taking);
                if std::mem::replace(&mut member.connects, *connects) != *connects {
                    self.losses.fetch_add(1, Ordering::Relaxed);
                }
            }
            None => members.push(Member {
                id: id.as_str().into(),
                is_taking: *is_taking,
                connects: *connects,
                last_heartbeat: now,
                last_probe: now,
            }),
        }
    }

    /// Updates which replicas are silent and returns those to be probed. Without requests to the workload those that
    /// are not present are forgotten.
    pub(crate) fn check(&self, now: Instant) -> Vec<Arc<str>> {
        let mut members = self.members.lock();
        if !self.is_asked.load(Ordering::Relaxed) {
            members.retain(|member| now.duration_since(member.last_heartbeat) < PRESENCE);
            return Vec::new();
        }
        let is_silent = members.iter().any(|member| !member.is_alive(&self.activity, now));
        let others_take =
            members.iter().any(|member| member.is_taking && member.is_alive(&self.activity, now));
        self.has_silent.store(is_silent && others_take, Ordering::Relaxed);
        let mut doubtful = Vec::new();
        for member in members.iter_mut() {
            // A draining replica does not listen any more, and its heartbeat may only be late.
            let is_doubtful = if member.is_taking {
                !member.is_alive(&self.activity, now)
            } else {
                member.is_long_silent(now)
            };
            if is_doubtful && now.duration_since(member.last_probe) >= PROBE_INTERVAL {
                member.last_probe = now;
                doubtful.push(Arc::clone(&member.id));
            }
        }
        doubtful
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::activity::SILENCE;

    fn record(group: &ReplicaGroup, id: &str, is_taking: bool, now: Instant) {
        group.activity.record(now, true);
        group.record(&Heartbeat { id: id.to_owned(), is_taking, connects: 1 }, now);
    }

    /// Records heartbeats of these replicas and checks the group.
    fn beat(group: &ReplicaGroup, ids: &[&str], now: Instant) -> Vec<Arc<str>> {
        for id in ids {
            record(group, id, true, now);
        }
        group.check(now)
    }

    fn asked() -> ReplicaGroup {
        ReplicaGroup { is_asked: AtomicBool::new(true), ..ReplicaGroup::default() }
    }

    fn queue_chooses(group: &ReplicaGroup) -> bool {
        !group.has_silent()
    }

    #[test]
    fn a_silent_replica_is_passed_over_until_its_next_heartbeat_or_its_end() {
        let (group, mut now) = (asked(), Instant::now());
        beat(&group, &["a", "b"], now);
        assert!(queue_chooses(&group), "all are alive: the queue group chooses");
        assert!(group.is_taking(now + SILENCE), "a late heartbeat does not mean a missing replica");
        assert!(!group.is_taking(now + PRESENCE));
        now += SILENCE;
        beat(&group, &["a"], now);
        assert!(!queue_chooses(&group));
        assert_eq!(
            (group.pick_excluding(&[], now), group.pick_most_recent(now)),
            (Some("a".into()), Some("a".into()))
        );
        now += PROBE_INTERVAL;
        assert_eq!(beat(&group, &["a"], now), ["b".into()], "it is asked whether it listens");
        assert!(beat(&group, &["a"], now).is_empty(), "not again at once");
        beat(&group, &["a", "b"], now);
        assert!(queue_chooses(&group), "it is back");
        now += SILENCE;
        beat(&group, &["a"], now);
        assert!(!queue_chooses(&group));
        group.remove("b");
        group.check(now);
        assert!(queue_chooses(&group), "it is gone");
        group.remove("a");
        assert!(!group.is_taking(now), "all have disconnected, even with recent heartbeats");
    }

    #[test]
    fn replicas_of_a_workload_without_requests_are_forgotten_instead_of_probed() {
        let (group, now) = (ReplicaGroup::default(), Instant::now());
        beat(&group, &["a", "b"], now);
        let now = now + PRESENCE - PROBE_INTERVAL;
        assert!(beat(&group, &["a"], now).is_empty(), "a probe of this client is refused by the bus");
        assert!(beat(&group, &["a"], now + PROBE_INTERVAL).is_empty());
        assert!(group.has_one());
    }

    #[test]
    fn a_draining_replica_is_alive_but_not_asked() {
        let (group, now) = (asked(), Instant::now());
        record(&group, "a", false, now);
        assert_eq!((group.pick_excluding(&[], now), group.pick_most_recent(now)), (None, None));
        assert!(!group.is_taking(now));
        let replicas = Replicas {
            activity: Arc::default(),
            groups: Mutex::default(),
            listening_since: OnceLock::from(now - INFORMED_AFTER * 2),
        };
        assert!(!replicas.are_gone(&group));
        assert!(
            group.check(now + SILENCE).is_empty() && group.check(now + PROBE_INTERVAL) == ["a".into()],
            "its heartbeat may be late"
        );
        group.remove("a");
        assert!(replicas.are_gone(&group));
    }

    #[test]
    fn a_replica_that_did_not_listen_is_asked_again_after_its_next_heartbeat() {
        let (group, now) = (ReplicaGroup::default(), Instant::now());
        beat(&group, &["a"], now);
        group.mark_draining("a");
        assert_eq!(group.pick_excluding(&[], now), None);
        beat(&group, &["a"], now);
        assert_eq!(group.pick_excluding(&[], now), Some("a".into()));
    }

    #[test]
    fn what_a_replica_was_asked_is_lost_with_the_replica_and_with_its_connection() {
        let (group, now) = (ReplicaGroup::default(), Instant::now());
        for (connects, losses) in [(1, 0), (1, 0), (2, 1)] {
            group.record(&Heartbeat { id: "a".to_owned(), is_taking: true, connects }, now);
            assert_eq!(group.losses(), losses);
        }
        group.remove("a");
        assert_eq!(group.losses(), 2);
    }

    #[test]
    fn replicas_that_are_not_excluded_take_turns() {
        let (group, now) = (ReplicaGroup::default(), Instant::now());
        beat(&group, &["a", "b", "c"], now);
        record(&group, "d", false, now);
        let mut named: Vec<_> = (0..4).filter_map(|_| group.pick_excluding(&["a".into()], now)).collect();
        named.sort();
        assert_eq!(named, ["b", "b", "c", "c"].map(Arc::from));
        assert_eq!(group.pick_excluding(&["a", "b", "c"].map(Into::into), now), None);
    }

    #[test]
    fn without_heartbeats_the_queue_group_chooses() {
        let (group, now) = (ReplicaGroup::default(), Instant::now());
        assert_eq!((group.pick_around_silent(), group.pick_most_recent(now)), (None, None));
        record(&group, "a", true, now);
        group.check(now + SILENCE);
        assert_eq!((queue_chooses(&group), group.pick_most_recent(now + SILENCE)), (true, None));
    }
}
