//! Which faults explain that a client was not served. Pure.

use std::time::Duration;

use mesh::processes::{DEVNODE, NATS};
use tokio::time::Instant;

use super::plan::{End, Fault, LineName, Party};

/// What a client wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wish {
    Read,
    Submission,
    /// A download of the sealed history.
    History,
    /// A download of the ledger, which needs the database.
    Ledger,
}

/// How a client was let down.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Letdown {
    /// 429, 503 or 504, and when to come again.
    Refused,
    /// Its connection broke, or a transfer did visibly.
    Broken,
    /// Anything else, which no fault explains.
    Other,
}

/// A client that was not served.
#[derive(Clone, Debug)]
pub(super) struct Miss {
    pub(super) wish: Wish,
    pub(super) letdown: Letdown,
    /// From when it asked to when it knew.
    pub(super) when: (Instant, Instant),
    /// What it was told.
    pub(super) said: String,
}

/// A fault as it happened: until everything about it was mended.
#[derive(Clone, Copy, Debug)]
pub(super) struct Happened {
    pub(super) fault: Fault,
    pub(super) when: (Instant, Instant),
}

/// Whether one of the faults explains a miss: it concerns what was wished, could do this, and was not over
/// for longer than `after` when the client asked.
pub(super) fn is_explained(miss: &Miss, happened: &[Happened], after: Duration) -> bool {
    let (asked, knew) = miss.when;
    miss.letdown != Letdown::Other
        && happened.iter().any(|Happened { fault, when: (begun, ended) }| {
            *begun <= knew && asked <= *ended + after && can(*fault, miss.wish, miss.letdown)
        })
}

/// How long after the end of the last fault that explains it a client asked in vain.
pub(super) fn asked_after(miss: &Miss, happened: &[Happened]) -> Option<Duration> {
    let (asked, knew) = miss.when;
    let explaining = happened
        .iter()
        .filter(|happened| happened.when.0 <= knew && can(happened.fault, miss.wish, miss.letdown));
    explaining.map(|happened| asked.saturating_duration_since(happened.when.1)).min()
}

/// Whether a fault can let a client down like that.
fn can(fault: Fault, wish: Wish, letdown: Letdown) -> bool {
    let is_download = matches!(wish, Wish::History | Wish::Ledger);
    // An answer that has begun, or that nobody began, breaks only with the edge or on the way to it; a
    // download also when it cannot go on.
    if letdown == Letdown::Broken && !is_download {
        return match fault {
            Fault::Kill(party) => party.name == "edge",
            Fault::Cut(line, _) => line.to == End::Edges,
            _ => false,
        };
    }
    match fault {
        Fault::RestartBus => true,
        // The node writes its blocks there: without it a commit waits in vain.
        Fault::RestartDatabase => wish != Wish::History,
        Fault::Kill(party) | Fault::Freeze(party) => concerns(party, wish),
        Fault::Delay(line) | Fault::Cut(line, _) => match line {
            LineName { to: End::Edges, .. } => true,
            LineName { from: Some(party), to } => {
                concerns(party, wish) && (to != End::Database || wish != Wish::History)
            }
            LineName { from: None, .. } => false,
        },
    }
}

/// Whether a process has to do with a wish.
fn concerns(party: Party, wish: Wish) -> bool {
    match party.name {
        "edge" | NATS => true,
        "query" | "node-info" => wish == Wish::Read,
        "tx-relay" => wish == Wish::Submission,
        "export" => matches!(wish, Wish::History | Wish::Ledger),
        DEVNODE => matches!(wish, Wish::Submission | Wish::Read),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use mesh_proxy::Cut;

    use super::*;

    #[test]
    fn a_fault_explains_what_it_can_do_while_it_lasts_and_a_little_longer() {
        let begun = Instant::now();
        let at = |seconds| begun + Duration::from_secs(seconds);
        let after = Duration::from_secs(5);
        let query = Party { name: "query", replica: 1 };
        let miss = |wish, letdown, asked, knew| Miss {
            wish,
            letdown,
            when: (at(asked), at(knew)),
            said: String::new(),
        };
        let happened = [Happened { fault: Fault::Kill(query), when: (at(10), at(12)) }];
        let is = |miss: &Miss| is_explained(miss, &happened, after);
        assert!(
            is(&miss(Wish::Read, Letdown::Refused, 9, 10)) && is(&miss(Wish::Read, Letdown::Refused, 17, 18))
        );
        assert!(
            !is(&miss(Wish::Read, Letdown::Refused, 8, 9))
                && !is(&miss(Wish::Read, Letdown::Refused, 18, 19))
        );
        for other in [Letdown::Broken, Letdown::Other] {
            assert!(!is(&miss(Wish::Read, other, 11, 11)));
        }
        assert!(
            !is(&miss(Wish::Submission, Letdown::Refused, 11, 11))
                && !is(&miss(Wish::History, Letdown::Broken, 11, 11))
        );
        let late = miss(Wish::Read, Letdown::Refused, 15, 16);
        assert_eq!(asked_after(&late, &happened), Some(Duration::from_secs(3)));
        let clients = LineName { from: None, to: End::Edges };
        let cut = [Happened { fault: Fault::Cut(clients, Cut::Reset), when: (at(10), at(10)) }];
        assert!(is_explained(&miss(Wish::Submission, Letdown::Broken, 9, 10), &cut, after));
        let database = [Happened { fault: Fault::RestartDatabase, when: (at(10), at(10)) }];
        assert!(is_explained(&miss(Wish::Ledger, Letdown::Broken, 9, 10), &database, after));
        assert!(!is_explained(&miss(Wish::History, Letdown::Broken, 9, 10), &database, after));
    }
}
