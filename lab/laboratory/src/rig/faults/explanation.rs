//! Decides which faults explain a failed request. No I/O.

use std::time::Duration;

use mesh::processes::{DEVNODE, NATS, POSTGRES};
use tokio::time::Instant;

use super::schedule::{Fault, Link, LinkEnd, Target};
use crate::rig::clients::{load::Load, samples::ReadResult};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RequestKind {
    Read,
    /// A stream of events, or the request for one.
    Watch,
    Submission,
    /// A download of the sealed history.
    History,
    /// A download of the ledger, which is read from the database.
    Ledger,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FailureKind {
    /// 429, 503 or 504 with `Retry-After`.
    Refused,
    /// The connection broke, or a transfer ended with an error.
    Broken,
    /// A stream ended regularly, which only its edge's stop may cause.
    Ended,
    /// Anything else, which no fault explains.
    Other,
}

#[derive(Clone, Debug)]
pub(crate) struct FailedRequest {
    pub(crate) kind: RequestKind,
    pub(crate) failure: FailureKind,
    /// When it was sent, and when its failure was known.
    pub(crate) when: (Instant, Instant),
    pub(crate) message: String,
}

/// A fault with its beginning and the end of its repair.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FaultSpan {
    pub(crate) fault: Fault,
    pub(crate) when: (Instant, Instant),
}

/// The requests of a load that did not get a correct answer so far.
pub(crate) fn failed_reads(load: &Load) -> Vec<FailedRequest> {
    let failed = load.failed().into_iter().map(|sample| {
        let failure = match sample.result {
            ReadResult::Status { status: 429 | 503 | 504, has_retry_after: true } => FailureKind::Refused,
            ReadResult::Broken => FailureKind::Broken,
            ReadResult::Status { .. } | ReadResult::Wrong | ReadResult::Silence => FailureKind::Other,
        };
        let when = (load.moment(sample.due), load.moment(sample.due + sample.took));
        let message = sample.message.unwrap_or_default();
        FailedRequest { kind: RequestKind::Read, failure, when, message }
    });
    failed.collect()
}

/// Whether a fault explains a failed request: it affects this kind of request and this kind of failure, and
/// had ended at most `after` before the request was sent.
pub(crate) fn is_explained(miss: &FailedRequest, spans: &[FaultSpan], after: Duration) -> bool {
    let (asked, knew) = miss.when;
    miss.failure != FailureKind::Other
        && spans.iter().any(|FaultSpan { fault, when: (begun, ended) }| {
            *begun <= knew && asked <= *ended + after && can(*fault, miss.kind, miss.failure)
        })
}

/// The time from the end of the nearest fault that could explain the failure to the request; `None` when
/// there is none.
pub(crate) fn asked_after(miss: &FailedRequest, spans: &[FaultSpan]) -> Option<Duration> {
    let (asked, knew) = miss.when;
    let explaining =
        spans.iter().filter(|span| span.when.0 <= knew && can(span.fault, miss.kind, miss.failure));
    explaining.map(|span| asked.saturating_duration_since(span.when.1)).min()
}

/// Whether a fault can cause this failure of this kind of request.
fn can(fault: Fault, kind: RequestKind, failure: FailureKind) -> bool {
    if failure == FailureKind::Ended {
        return matches!(fault, Fault::Stop(Target { name: "edge", .. }) | Fault::Restart("edge"));
    }
    let is_download = matches!(kind, RequestKind::History | RequestKind::Ledger);
    // Only an edge or the link to it can break a client's connection; a download also breaks when it cannot
    // continue.
    if failure == FailureKind::Broken && !is_download {
        return match fault {
            Fault::Kill(target) => target.name == "edge",
            Fault::Block(link, ..) | Fault::Cut(link, _) => link.to == LinkEnd::Edges,
            _ => false,
        };
    }
    match fault {
        Fault::Restart(NATS) => true,
        // The development node writes its blocks to the database: without it a commit gets no block.
        Fault::Restart(POSTGRES) => kind != RequestKind::History,
        // Services are replaced one replica at a time, which no client may notice.
        Fault::Restart(_) => false,
        Fault::Kill(target) | Fault::Stop(target) | Fault::Freeze(target, _) => concerns(target, kind),
        Fault::Delay(link, _) | Fault::Block(link, ..) | Fault::Cut(link, _) => match link {
            Link { to: LinkEnd::Edges, .. } => true,
            Link { from: Some(target), to } => {
                concerns(target, kind) && (to != LinkEnd::Database || kind != RequestKind::History)
            }
            Link { from: None, to } => to != LinkEnd::Database || kind != RequestKind::History,
        },
    }
}

/// Whether a process takes part in serving this kind of request.
fn concerns(target: Target, kind: RequestKind) -> bool {
    match target.name {
        "edge" | NATS => true,
        "query" | "node-info" => matches!(kind, RequestKind::Read | RequestKind::Watch),
        "tx-relay" => kind == RequestKind::Submission,
        "export" => matches!(kind, RequestKind::History | RequestKind::Ledger),
        DEVNODE => matches!(kind, RequestKind::Submission | RequestKind::Read | RequestKind::Watch),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use mesh_proxy::Cut;

    use super::*;

    #[test]
    fn a_fault_explains_what_it_can_do_while_it_lasts_and_a_little_longer() {
        use FailureKind::{Broken, Ended, Other, Refused};
        use RequestKind::{History, Ledger, Read, Submission, Watch};
        let begun = Instant::now();
        let at = |seconds| begun + Duration::from_secs(seconds);
        let after = Duration::from_secs(5);
        let query = Target { name: "query", replica: 1 };
        let miss = |kind, failure, asked, knew| FailedRequest {
            kind,
            failure,
            when: (at(asked), at(knew)),
            message: String::new(),
        };
        let spans = [FaultSpan { fault: Fault::Kill(query), when: (at(10), at(12)) }];
        let is = |miss: &FailedRequest| is_explained(miss, &spans, after);
        assert!(is(&miss(Read, Refused, 9, 10)) && is(&miss(Read, Refused, 17, 18)));
        assert!(!is(&miss(Read, Refused, 8, 9)) && !is(&miss(Read, Refused, 18, 19)));
        for other in [Broken, Other] {
            assert!(!is(&miss(Read, other, 11, 11)));
        }
        assert!(!is(&miss(Submission, Refused, 11, 11)) && !is(&miss(History, Broken, 11, 11)));
        let late = miss(Read, Refused, 15, 16);
        assert_eq!(asked_after(&late, &spans), Some(Duration::from_secs(3)));
        let clients = Link { from: None, to: LinkEnd::Edges };
        let cut = [FaultSpan { fault: Fault::Cut(clients, Cut::Reset), when: (at(10), at(10)) }];
        assert!(is_explained(&miss(Submission, Broken, 9, 10), &cut, after));
        let database = [FaultSpan { fault: Fault::Restart(POSTGRES), when: (at(10), at(10)) }];
        let stop =
            [FaultSpan { fault: Fault::Stop(Target { name: "edge", replica: 0 }), when: (at(10), at(12)) }];
        let ended = miss(Watch, Ended, 11, 11);
        assert!(is_explained(&ended, &stop, after) && !is_explained(&ended, &cut, after));
        assert!(is_explained(&miss(Ledger, Broken, 9, 10), &database, after));
        assert!(!is_explained(&miss(History, Broken, 9, 10), &database, after));
    }
}
