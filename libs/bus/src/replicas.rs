//! Which replicas of a workload live. The bus tells nobody that a replica froze, and goes on giving it its share of
//! the requests. So every replica beats; while one that should beat is silent, asks go to the others by name instead
//! of to the queue group, until it beats again or is found to be gone.

use std::{
    collections::HashMap,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Duration,
};

use async_nats::Subject;
use futures_util::StreamExt;
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use tokio::time::{Instant, MissedTickBehavior, interval};

use crate::{
    connection::{Bus, Shared},
    inbox::Arrived,
};

/// Under which topic replicas say that they live; behind it comes their workload, for which nobody else may speak.
pub(crate) const BEATS: &str = "replicas";

/// How often a replica says that it lives.
pub(crate) const BEAT: Duration = Duration::from_millis(100);

/// A replica that has not been heard for this long is silent: frozen, gone, or cut off.
const SILENT: Duration = Duration::from_millis(350);

/// How often silence is looked for.
const LOOK: Duration = Duration::from_millis(50);

/// How often a silent replica is asked whether it still listens.
const PROBE: Duration = Duration::from_secs(1);

/// After listening for this long, every replica that lives has been heard.
const INFORMED: Duration = Duration::from_secs(1);

/// In place of an operation in the subject of that question. No operation has this name.
pub(crate) const PROBE_NAME: &str = "_";

/// What a replica says of itself.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Beat {
    pub(crate) id: String,
    /// Whether it takes requests; one that is stopping only finishes those that it has.
    pub(crate) is_taking: bool,
}

/// The replicas of every workload, as far as they were heard.
#[derive(Debug)]
pub(crate) struct Replicas {
    groups: Mutex<HashMap<String, Arc<Group>>>,
    listening_since: OnceLock<Instant>,
}

/// The replicas of one workload.
#[derive(Debug, Default)]
pub(crate) struct Group {
    members: Mutex<Vec<Member>>,
    /// Whether somebody who should beat does not, and others do.
    has_silent: AtomicBool,
    turn: AtomicUsize,
}

#[derive(Debug, Clone)]
struct Member {
    id: Arc<str>,
    is_taking: bool,
    heard: Instant,
    probed: Instant,
}

impl Member {
    fn lives(&self, now: Instant) -> bool {
        now.duration_since(self.heard) < SILENT
    }

    fn is_long_silent(&self, now: Instant) -> bool {
        now.duration_since(self.heard) >= PROBE
    }
}

impl Replicas {
    pub(crate) fn new() -> Self {
        Self { groups: Mutex::default(), listening_since: OnceLock::new() }
    }

    pub(crate) fn group(&self, workload: &str) -> Arc<Group> {
        let mut groups = self.groups.lock();
        if let Some(group) = groups.get(workload) {
            return Arc::clone(group);
        }
        Arc::clone(groups.entry(workload.to_owned()).or_default())
    }

    /// Whether this call is the one that begins to listen.
    fn begins(&self) -> bool {
        self.listening_since.set(Instant::now()).is_ok()
    }

    /// Whether every replica of the group is known to be gone, and not only silent or stopping: nobody is left who
    /// could answer what was asked before.
    pub(crate) fn have_left(&self, group: &Group) -> bool {
        let is_informed = self.listening_since.get().is_some_and(|since| since.elapsed() > INFORMED);
        is_informed && group.members.lock().is_empty()
    }

    fn all(&self) -> Vec<(String, Arc<Group>)> {
        self.groups.lock().iter().map(|(workload, group)| (workload.clone(), Arc::clone(group))).collect()
    }
}

impl Group {
    /// The replica to ask by name, when the queue group cannot be trusted to find one that lives.
    pub(crate) fn instead_of_queue(&self) -> Option<Arc<str>> {
        if !self.has_silent.load(Ordering::Relaxed) {
            return None;
        }
        self.other_than(&[], Instant::now())
    }

    /// Whether any replica lives and takes requests.
    fn is_taking(&self, now: Instant) -> bool {
        self.members.lock().iter().any(|member| member.is_taking && member.lives(now))
    }

    /// The next replica that lives and is none of these.
    pub(crate) fn other_than(&self, these: &[Box<str>], now: Instant) -> Option<Arc<str>> {
        let members = self.members.lock();
        let may_be_asked = |member: &&Member| {
            member.is_taking && member.lives(now) && !these.iter().any(|id| **id == *member.id)
        };
        let others: Vec<&Member> = members.iter().filter(may_be_asked).collect();
        let turn = self.turn.fetch_add(1, Ordering::Relaxed);
        others.get(turn % others.len().max(1)).map(|member| Arc::clone(&member.id))
    }

    /// The replica that gave the latest sign of life: the one to ask again, since a frozen one cannot have given it.
    pub(crate) fn liveliest(&self, now: Instant) -> Option<Arc<str>> {
        let members = self.members.lock();
        let liveliest = members.iter().filter(|member| member.is_taking).max_by_key(|member| member.heard)?;
        liveliest.lives(now).then(|| Arc::clone(&liveliest.id))
    }

    /// A replica did not listen: it is stopping or gone, unless its next beat says otherwise.
    pub(crate) fn takes_no_more(&self, id: &str) {
        for member in self.members.lock().iter_mut().filter(|member| &*member.id == id) {
            member.is_taking = false;
        }
    }

    /// Forgets a replica that is gone.
    fn forget(&self, id: &str) {
        self.members.lock().retain(|member| &*member.id != id);
        self.look(Instant::now());
    }

    fn heard(&self, id: &str, is_taking: bool, now: Instant) {
        let mut members = self.members.lock();
        match members.iter_mut().find(|member| &*member.id == id) {
            Some(member) => (member.heard, member.is_taking) = (now, is_taking),
            None => members.push(Member { id: id.into(), is_taking, heard: now, probed: now }),
        }
    }

    /// Sees who has fallen silent; gives those who should be asked whether they still listen.
    fn look(&self, now: Instant) -> Vec<Arc<str>> {
        let mut members = self.members.lock();
        let is_silent = members.iter().any(|member| !member.lives(now));
        let others_take = members.iter().any(|member| member.is_taking && member.lives(now));
        self.has_silent.store(is_silent && others_take, Ordering::Relaxed);
        let mut doubtful = Vec::new();
        for member in members.iter_mut() {
            // One that is stopping does not listen any more, and may only be late with its beat.
            let is_doubtful = if member.is_taking { !member.lives(now) } else { member.is_long_silent(now) };
            if is_doubtful && now.duration_since(member.probed) >= PROBE {
                member.probed = now;
                doubtful.push(Arc::clone(&member.id));
            }
        }
        doubtful
    }
}

/// Where one replica takes an operation.
pub(crate) fn direct_subject(queue_subject: &str, id: &str) -> Subject {
    format!("{queue_subject}.{id}").into()
}

impl Bus {
    /// Begins to listen for replicas, once.
    pub(crate) fn listen_for_replicas(&self) {
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        if self.shared.replicas.begins() {
            runtime.spawn(listen(Arc::downgrade(&self.shared)));
        }
    }

    /// Whether a replica of a workload takes requests, as far as was heard. Nothing is heard before the first
    /// [`Bus::target`], and a replica that has just come says so within 100 ms.
    pub fn has_replica(&self, workload: &str) -> bool {
        self.shared.replicas.group(workload).is_taking(Instant::now())
    }

    /// Says that a replica of a workload lives.
    pub(crate) async fn beat(&self, workload: &str, beat: &Beat) {
        self.tell(&format!("{BEATS}.{workload}"), beat).await;
    }

    /// Asks a silent replica whether it listens: the bus says at once when it does not. A frozen one says nothing.
    async fn probe(self, workload: String, id: Arc<str>, group: Arc<Group>) {
        let mut expected = self.shared.inbox.expect(&workload);
        let subject = direct_subject(&self.subject(&workload, PROBE_NAME), &id);
        let sent =
            self.shared.client.publish_with_reply(subject, expected.reply_to.clone(), Vec::new().into());
        if sent.await.is_err() {
            return;
        }
        if let Ok(Arrived::NoResponder) = tokio::time::timeout(PROBE, expected.arrive()).await {
            group.forget(&id);
        }
    }
}

async fn listen(shared: std::sync::Weak<Shared>) {
    let Some(bus) = shared.upgrade().map(|shared| Bus { shared }) else { return };
    let all = bus.topic(&format!("{BEATS}.*"));
    let mut beats = match bus.shared.client.subscribe(all).await {
        Ok(beats) => beats,
        Err(error) => {
            tracing::error!(error = &error as &dyn std::error::Error, "cannot listen for replicas");
            return;
        }
    };
    drop(bus);
    let mut looks = interval(LOOK);
    looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            beat = beats.next() => {
                let (Some(message), Some(shared)) = (beat, shared.upgrade()) else { return };
                let workload = message.subject.rsplit('.').next().unwrap_or_default();
                if let Ok(Beat { id, is_taking }) = serde_json::from_slice(&message.payload) {
                    shared.replicas.group(workload).heard(&id, is_taking, Instant::now());
                }
            }
            _ = looks.tick() => {
                let Some(bus) = shared.upgrade().map(|shared| Bus { shared }) else { return };
                for (workload, group) in bus.shared.replicas.all() {
                    for id in group.look(Instant::now()) {
                        tokio::spawn(bus.clone().probe(workload.clone(), id, Arc::clone(&group)));
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A group that was looked at when these replicas had just beaten.
    fn beaten(group: &Group, ids: &[&str], now: Instant) -> Vec<Arc<str>> {
        for id in ids {
            group.heard(id, true, now);
        }
        group.look(now)
    }

    fn is_trusted(group: &Group) -> bool {
        !group.has_silent.load(Ordering::Relaxed)
    }

    #[test]
    fn a_silent_replica_is_asked_no_more_until_it_beats_or_is_gone() {
        let (group, mut now) = (Group::default(), Instant::now());
        beaten(&group, &["a", "b"], now);
        assert!(is_trusted(&group), "all is well: the queue group decides");
        assert!(group.is_taking(now) && !group.is_taking(now + SILENT));
        now += SILENT;
        beaten(&group, &["a"], now);
        assert!(!is_trusted(&group));
        assert_eq!((group.other_than(&[], now), group.liveliest(now)), (Some("a".into()), Some("a".into())));
        now += PROBE;
        assert_eq!(beaten(&group, &["a"], now), ["b".into()], "it is asked whether it listens");
        assert!(beaten(&group, &["a"], now).is_empty(), "not again at once");
        beaten(&group, &["a", "b"], now);
        assert!(is_trusted(&group), "it is back");
        now += SILENT;
        beaten(&group, &["a"], now);
        assert!(!is_trusted(&group));
        group.members.lock().retain(|member| &*member.id != "b");
        group.look(now);
        assert!(is_trusted(&group), "it is gone");
    }

    #[test]
    fn one_that_is_stopping_lives_but_is_not_asked() {
        let (group, now) = (Group::default(), Instant::now());
        group.heard("a", false, now);
        assert_eq!((group.other_than(&[], now), group.liveliest(now)), (None, None));
        assert!(!group.is_taking(now));
        let replicas =
            Replicas { groups: Mutex::default(), listening_since: OnceLock::from(now - INFORMED * 2) };
        assert!(!replicas.have_left(&group));
        assert!(
            group.look(now + SILENT).is_empty() && group.look(now + PROBE) == ["a".into()],
            "it may be late"
        );
        group.forget("a");
        assert!(replicas.have_left(&group));
    }

    #[test]
    fn one_that_did_not_listen_is_asked_again_after_its_next_beat() {
        let (group, now) = (Group::default(), Instant::now());
        beaten(&group, &["a"], now);
        group.takes_no_more("a");
        assert_eq!(group.other_than(&[], now), None);
        beaten(&group, &["a"], now);
        assert_eq!(group.other_than(&[], now), Some("a".into()));
    }

    #[test]
    fn others_than_the_busy_ones_take_turns() {
        let (group, now) = (Group::default(), Instant::now());
        beaten(&group, &["a", "b", "c"], now);
        group.heard("d", false, now);
        let mut named: Vec<_> = (0..4).filter_map(|_| group.other_than(&["a".into()], now)).collect();
        named.sort();
        assert_eq!(named, ["b", "b", "c", "c"].map(Arc::from));
        assert_eq!(group.other_than(&["a", "b", "c"].map(Into::into), now), None);
    }

    #[test]
    fn when_nobody_is_heard_the_queue_group_decides() {
        let (group, now) = (Group::default(), Instant::now());
        assert_eq!((group.instead_of_queue(), group.liveliest(now)), (None, None));
        group.heard("a", true, now);
        group.look(now + SILENT);
        assert_eq!((is_trusted(&group), group.liveliest(now + SILENT)), (true, None));
    }
}
