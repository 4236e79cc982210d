//! The schedule of faults, computed from the seed before the run, so that a run can be repeated.

use std::{fmt, time::Duration};

use mesh::processes::{DEVNODE, NATS};
use mesh_launcher::services::{Need, SERVICES};
use mesh_proxy::Cut;
use rand::{
    Rng as _,
    rngs::SmallRng,
    seq::{IndexedRandom as _, SliceRandom as _},
};

use crate::rig::ground::REPLICAS;

/// A process: a replica of a service, the node or the bus.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Party {
    pub(super) name: &'static str,
    pub(super) replica: u32,
}

/// The server end of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    Bus,
    Database,
    Node,
    /// The edges, as the servers of clients.
    Edges,
}

/// A link from a replica to one of its servers, or from the clients to the edges.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct LineName {
    /// `None` stands for the clients.
    pub(super) from: Option<Party>,
    pub(super) to: End,
}

/// A fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fault {
    /// Killed by SIGKILL.
    Kill(Party),
    /// Stopped for a time by SIGSTOP.
    Freeze(Party),
    /// The bus server stops gracefully and starts again.
    RestartBus,
    /// The database server stops gracefully and starts again.
    RestartDatabase,
    /// Data is delayed for a time, in both directions.
    Delay(LineName),
    /// All open connections are cut.
    Cut(LineName, Cut),
}

/// A fault and its time from the beginning of the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Act {
    pub(super) at: Duration,
    pub(super) fault: Fault,
}

impl fmt::Display for Party {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.name, self.replica)
    }
}

impl fmt::Display for LineName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.from {
            Some(party) => write!(f, "{party} to {:?}", self.to),
            None => write!(f, "clients to {:?}", self.to),
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Kill(party) => write!(f, "kill {party}"),
            Self::Freeze(party) => write!(f, "freeze {party}"),
            Self::RestartBus => f.write_str("restart the bus"),
            Self::RestartDatabase => f.write_str("restart the database"),
            Self::Delay(line) => write!(f, "delay {line}"),
            Self::Cut(line, Cut::Reset) => write!(f, "reset {line}"),
            Self::Cut(line, Cut::Close) => write!(f, "close {line}"),
        }
    }
}

impl Fault {
    /// The process that must not be hit again during this fault.
    fn holds(self) -> Option<Party> {
        match self {
            Self::Kill(party) | Self::Freeze(party) => Some(party),
            Self::RestartBus => Some(BUS),
            Self::RestartDatabase | Self::Delay(_) | Self::Cut(..) => None,
        }
    }
}

const BUS: Party = Party { name: NATS, replica: 0 };
const NODE: Party = Party { name: DEVNODE, replica: 0 };

/// Every replica of every service.
fn replicas() -> impl Iterator<Item = Party> {
    SERVICES.iter().flat_map(|service| (0..REPLICAS).map(|replica| Party { name: service.name, replica }))
}

/// All links of the mesh.
pub(super) fn lines() -> Vec<LineName> {
    let mut lines = vec![LineName { from: None, to: End::Edges }];
    for service in SERVICES {
        for need in service.needs {
            let to = match need {
                Need::Bus => End::Bus,
                Need::Database => End::Database,
                Need::Node | Need::NodeIfAny => End::Node,
                Need::History | Need::Sockets => continue,
            };
            let replicas = (0..REPLICAS).map(|replica| Party { name: service.name, replica });
            lines.extend(replicas.map(|party| LineName { from: Some(party), to }));
        }
    }
    lines
}

/// The faults of a run: one each `every`, all kinds equally often. After a process was hit, it is not killed or
/// frozen again for `busy`.
pub(super) fn acts(length: Duration, every: Duration, busy: Duration, random: &mut SmallRng) -> Vec<Act> {
    let (lines, mut kinds) = (lines(), Vec::new());
    let mut acts: Vec<Act> = Vec::new();
    let mut at = Duration::ZERO;
    while at < length {
        if kinds.is_empty() {
            kinds = (0..6).collect();
            kinds.shuffle(random);
        }
        let held: Vec<Party> = acts
            .iter()
            .rev()
            .take_while(|act| act.at + busy > at)
            .filter_map(|act| act.fault.holds())
            .collect();
        let mut parties: Vec<Party> = replicas().chain([NODE, BUS]).collect();
        parties.retain(|party| !held.contains(party));
        let mortal = || parties.iter().copied().filter(|party| *party != BUS).collect::<Vec<_>>();
        let line = lines.choose(random).copied();
        let fault = match kinds.pop() {
            Some(0) => mortal().choose(random).copied().map(Fault::Kill),
            Some(1) => parties.choose(random).copied().map(Fault::Freeze),
            // A frozen bus cannot be stopped gracefully.
            Some(2) => Some(if held.contains(&BUS) { Fault::RestartDatabase } else { Fault::RestartBus }),
            Some(3) => Some(Fault::RestartDatabase),
            Some(4) => line.map(Fault::Delay),
            _ => {
                let how = if random.random() { Cut::Reset } else { Cut::Close };
                line.map(|line| Fault::Cut(line, how))
            }
        };
        acts.extend(fault.map(|fault| Act { at, fault }));
        at += every;
    }
    acts
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use rand::SeedableRng as _;

    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn of_seed(seed: u64) -> Vec<Act> {
        acts(1200 * SECOND, 3 * SECOND, 8 * SECOND, &mut SmallRng::seed_from_u64(seed))
    }

    #[test]
    fn a_seed_gives_one_plan_that_leaves_nobody_out() {
        let acts = of_seed(3);
        assert_eq!(acts, of_seed(3));
        assert_ne!(acts, of_seed(4));
        assert_eq!((acts.len(), acts[399].at), (400, 1197 * SECOND));
        let seen: HashSet<String> = (0..20).flat_map(of_seed).map(|act| act.fault.to_string()).collect();
        for party in replicas().chain([NODE]) {
            assert!(
                seen.contains(&format!("kill {party}")) && seen.contains(&format!("freeze {party}")),
                "{party}"
            );
        }
        for line in lines() {
            for what in ["delay", "reset", "close"] {
                assert!(seen.contains(&format!("{what} {line}")), "{what} {line}");
            }
        }
        assert!(seen.contains("restart the bus") && seen.contains("restart the database"));
        assert_eq!(lines().len(), 1 + 2 * (1 + 2 + 3 + 2 + 2));
        // The short form meets every kind.
        let short = super::acts(6 * SECOND, SECOND, SECOND, &mut SmallRng::seed_from_u64(1));
        let kinds: HashSet<_> = short.iter().map(|act| std::mem::discriminant(&act.fault)).collect();
        assert_eq!((short.len(), kinds.len()), (6, 6));
    }

    #[test]
    fn nobody_is_hit_while_he_is_down() {
        for act in (0..20).map(of_seed).collect::<Vec<_>>().iter().flat_map(|acts| acts.windows(3)) {
            let [first, others @ ..] = act else { continue };
            for other in others.iter().filter(|other| other.at < first.at + 8 * SECOND) {
                let (one, other) = (first.fault.holds(), other.fault.holds());
                assert!(one.is_none() || one != other, "{act:?}");
            }
        }
    }
}
