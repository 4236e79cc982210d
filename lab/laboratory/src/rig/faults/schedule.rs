//! Schedules of faults. Every random choice comes from the seed, so that a run can be repeated. No I/O.

use std::{fmt, time::Duration};

use mesh::processes::{DEVNODE, NATS, POSTGRES};
use mesh_launcher::services::{Need, SERVICES};
use mesh_proxy::Cut;
use rand::{
    Rng as _,
    rngs::SmallRng,
    seq::{IndexedRandom as _, SliceRandom as _},
};

use crate::rig::world::REPLICAS;

/// A process: a replica of a service, the node or the bus.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Target {
    pub(crate) name: &'static str,
    pub(crate) replica: u32,
}

/// The server end of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LinkEnd {
    Bus,
    Database,
    Node,
    /// The edges, as the servers of clients.
    Edges,
}

/// A link from a replica to one of its servers, or from the clients to the edges.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Link {
    /// `None` stands for all that connect there: the clients, or every replica.
    pub(crate) from: Option<Target>,
    pub(crate) to: LinkEnd,
}

/// How a link carries nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Blockage {
    /// Open connections are reset, and new ones refused.
    Refused,
    /// Connections stay open.
    Silent,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// Killed by SIGKILL.
    Kill(Target),
    /// Stopped gracefully, and started again at once.
    Stop(Target),
    /// Stopped by SIGSTOP for this time.
    Freeze(Target, Duration),
    /// All processes of this name stop gracefully in turn, and start again.
    Restart(&'static str),
    /// Data is delayed in both directions for this time.
    Delay(Link, Duration),
    /// Nothing is carried for this time.
    Block(Link, Blockage, Duration),
    /// All open connections are cut.
    Cut(Link, Cut),
}

/// A fault and its time from the beginning of the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ScheduledFault {
    pub(crate) at: Duration,
    pub(crate) fault: Fault,
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.name, self.replica)
    }
}

impl fmt::Display for Link {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.from {
            Some(target) => write!(f, "{target} to {:?}", self.to),
            None if self.to == LinkEnd::Edges => f.write_str("clients to Edges"),
            None => write!(f, "all to {:?}", self.to),
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Kill(target) => write!(f, "kill {target}"),
            Self::Stop(target) => write!(f, "stop {target}"),
            Self::Freeze(target, _) => write!(f, "freeze {target}"),
            Self::Restart(NATS) => f.write_str("restart the bus"),
            Self::Restart(POSTGRES) => f.write_str("restart the database"),
            Self::Restart(service) => write!(f, "restart {service}"),
            Self::Delay(link, _) => write!(f, "delay {link}"),
            Self::Block(link, Blockage::Refused, _) => write!(f, "refuse {link}"),
            Self::Block(link, Blockage::Silent, _) => write!(f, "silence {link}"),
            Self::Cut(link, Cut::Reset) => write!(f, "reset {link}"),
            Self::Cut(link, Cut::Close) => write!(f, "close {link}"),
        }
    }
}

impl Fault {
    /// The process that must not be hit again during this fault.
    fn blocked_target(self) -> Option<Target> {
        match self {
            Self::Kill(target) | Self::Stop(target) | Self::Freeze(target, _) => Some(target),
            Self::Restart(NATS) => Some(BUS),
            Self::Restart(_) | Self::Delay(..) | Self::Block(..) | Self::Cut(..) => None,
        }
    }
}

pub(crate) const BUS: Target = Target { name: NATS, replica: 0 };
pub(crate) const NODE: Target = Target { name: DEVNODE, replica: 0 };

fn replicas() -> impl Iterator<Item = Target> {
    SERVICES.iter().flat_map(|service| (0..REPLICAS).map(|replica| Target { name: service.name, replica }))
}

pub(crate) fn links() -> Vec<Link> {
    let mut links = vec![Link { from: None, to: LinkEnd::Edges }];
    for service in SERVICES {
        for need in service.needs {
            let to = match need {
                Need::Bus => LinkEnd::Bus,
                Need::Database => LinkEnd::Database,
                Need::Node | Need::NodeIfAny => LinkEnd::Node,
                Need::History | Need::Sockets => continue,
            };
            let replicas = (0..REPLICAS).map(|replica| Target { name: service.name, replica });
            links.extend(replicas.map(|target| Link { from: Some(target), to }));
        }
    }
    links
}

/// Endless faults, one each `every`; the first after that time. Each is drawn when it is due.
pub(crate) fn repeated(
    every: Duration,
    mut draw: impl FnMut() -> Fault,
) -> impl Iterator<Item = ScheduledFault> {
    (1..).map(move |number| ScheduledFault { at: every * number, fault: draw() })
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct RandomSchedule {
    /// No fault begins later.
    pub(crate) length: Duration,
    /// Time between two faults.
    pub(crate) every: Duration,
    /// How long a freeze and a delay last.
    pub(crate) lasts: Duration,
    /// A process that was hit is not killed or frozen again for this long.
    pub(crate) busy: Duration,
}

impl RandomSchedule {
    /// Draws the faults, all kinds equally often.
    pub(crate) fn draw(self, random: &mut SmallRng) -> Vec<ScheduledFault> {
        let Self { length, every, lasts, busy } = self;
        let (links, mut kinds) = (links(), Vec::new());
        let mut schedule: Vec<ScheduledFault> = Vec::new();
        let mut at = Duration::ZERO;
        while at < length {
            if kinds.is_empty() {
                kinds = (0..6).collect();
                kinds.shuffle(random);
            }
            let recently_hit: Vec<Target> = schedule
                .iter()
                .rev()
                .take_while(|scheduled| scheduled.at + busy > at)
                .filter_map(|scheduled| scheduled.fault.blocked_target())
                .collect();
            let mut targets: Vec<Target> = replicas().chain([NODE, BUS]).collect();
            targets.retain(|target| !recently_hit.contains(target));
            let mortal = || targets.iter().copied().filter(|target| *target != BUS).collect::<Vec<_>>();
            let link = links.choose(random).copied();
            let fault = match kinds.pop() {
                Some(0) => mortal().choose(random).copied().map(Fault::Kill),
                Some(1) => targets.choose(random).copied().map(|target| Fault::Freeze(target, lasts)),
                // A frozen bus cannot be stopped gracefully.
                Some(2) => Some(Fault::Restart(if recently_hit.contains(&BUS) { POSTGRES } else { NATS })),
                Some(3) => Some(Fault::Restart(POSTGRES)),
                Some(4) => link.map(|link| Fault::Delay(link, lasts)),
                _ => {
                    let how = if random.random() { Cut::Reset } else { Cut::Close };
                    link.map(|link| Fault::Cut(link, how))
                }
            };
            schedule.extend(fault.map(|fault| ScheduledFault { at, fault }));
            at += every;
        }
        schedule
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use rand::SeedableRng as _;

    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn of_seed(seed: u64) -> Vec<ScheduledFault> {
        let plan =
            RandomSchedule { length: 1200 * SECOND, every: 3 * SECOND, lasts: 5 * SECOND, busy: 8 * SECOND };
        plan.draw(&mut SmallRng::seed_from_u64(seed))
    }

    #[test]
    fn a_seed_gives_one_schedule_that_covers_every_target_and_link() {
        let schedule = of_seed(3);
        assert_eq!(schedule, of_seed(3));
        assert_ne!(schedule, of_seed(4));
        assert_eq!((schedule.len(), schedule[399].at), (400, 1197 * SECOND));
        let seen: HashSet<String> =
            (0..20).flat_map(of_seed).map(|scheduled| scheduled.fault.to_string()).collect();
        for target in replicas().chain([NODE]) {
            assert!(
                seen.contains(&format!("kill {target}")) && seen.contains(&format!("freeze {target}")),
                "{target}"
            );
        }
        for link in links() {
            for what in ["delay", "reset", "close"] {
                assert!(seen.contains(&format!("{what} {link}")), "{what} {link}");
            }
        }
        assert!(seen.contains("restart the bus") && seen.contains("restart the database"));
        assert_eq!(links().len(), 1 + 2 * (1 + 2 + 3 + 2 + 2 + 3));
        // The short form meets every kind.
        let short = RandomSchedule { length: 6 * SECOND, every: SECOND, lasts: SECOND, busy: SECOND };
        let short = short.draw(&mut SmallRng::seed_from_u64(1));
        let kind = |fault: Fault| (std::mem::discriminant(&fault), fault == Fault::Restart(POSTGRES));
        let kinds: HashSet<_> = short.iter().map(|scheduled| kind(scheduled.fault)).collect();
        assert_eq!((short.len(), kinds.len()), (6, 6));
    }

    #[test]
    fn no_process_is_hit_again_while_it_is_busy() {
        for scheduled in
            (0..20).map(of_seed).collect::<Vec<_>>().iter().flat_map(|schedule| schedule.windows(3))
        {
            let [first, others @ ..] = scheduled else { continue };
            for other in others.iter().filter(|other| other.at < first.at + 8 * SECOND) {
                let (one, other) = (first.fault.blocked_target(), other.fault.blocked_target());
                assert!(one.is_none() || one != other, "{scheduled:?}");
            }
        }
    }
}
