//! Decides which faults explain a failed request. No I/O.

use std::time::Duration;

use mesh::processes::{DEVNODE, NATS};
use tokio::time::Instant;

use super::plan::{End, Fault, LineName, Party};

/// The kind of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wish {
    Read,
    Submission,
    /// A download of the sealed history.
    History,
    /// A download of the ledger, which is read from the database.
    Ledger,
}

/// How a request failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Letdown {
    /// 429, 503 or 504 with `Retry-After`.
    Refused,
    /// The connection broke, or a transfer ended with an error.
    Broken,
    /// Anything else, which no fault explains.
    Other,
}

/// A failed request.
#[derive(Clone, Debug)]
pub(super) struct Miss {
    pub(super) wish: Wish,
    pub(super) letdown: Letdown,
    /// When it was sent, and when its failure was known.
    pub(super) when: (Instant, Instant),
    /// The text of the failure.
    pub(super) said: String,
}

/// A fault with its beginning and the end of its repair.
#[derive(Clone, Copy, Debug)]
pub(super) struct Happened {
    pub(super) fault: Fault,
    pub(super) when: (Instant, Instant),
}

/// Whether a fault explains a failed request: it affects this kind of request and this kind of failure, and had
/// ended at most `after` before the request was sent.
pub(super) fn is_explained(miss: &Miss, happened: &[Happened], after: Duration) -> bool {
    let (asked, knew) = miss.when;
    miss.letdown != Letdown::Other
        && happened.iter().any(|Happened { fault, when: (begun, ended) }| {
            *begun <= knew && asked <= *ended + after && can(*fault, miss.wish, miss.letdown)
        })
}

/// The time from the end of the nearest fault that could explain the failure to the request; `None` when there is
/// none.
pub(super) fn asked_after(miss: &Miss, happened: &[Happened]) -> Option<Duration> {
    let (asked, knew) = miss.when;
    let explaining = happened
        .iter()
        .filter(|happened| happened.when.0 <= knew && can(happened.fault, miss.wish, miss.letdown));
    explaining.map(|happened| asked.saturating_duration_since(happened.when.1)).min()
}

/// Whether a fault can cause this failure of this kind of request.
fn can(fault: Fault, wish: Wish, letdown: Letdown) -> bool {
    let is_download = matches!(wish, Wish::History | Wish::Ledger);
    // Only an edge or the link to it can break a client's connection; a download also breaks when it cannot
    // continue.
    if letdown == Letdown::Broken && !is_download {
        return match fault {
            Fault::Kill(party) => party.name == "edge",
            Fault::Cut(line, _) => line.to == End::Edges,
            _ => false,
        };
    }
    match fault {
        Fault::RestartBus => true,
        // The development node writes its blocks to the database: without it a commit gets no block.
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

/// Whether a process takes part in serving this kind of request.
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
