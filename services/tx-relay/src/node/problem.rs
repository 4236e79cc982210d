//! The problem for a client when a call to the node failed.

use mesh_node_rpc::foreign_answer;
use mesh_problem::{Code, Problem};
use proto_msgs::numbers::submit_transaction::{NODE, REFUSED};

use super::{CallError, Refusal};

impl CallError {
    /// The problem for a client.
    pub(crate) fn problem(self) -> Problem {
        let open = |what| Problem::new(Code::DeadlineExceeded, NODE, what);
        let refusal = match self {
            CallError::NotSent(why) => {
                return Problem::new(Code::Unavailable, NODE, "the consensus node cannot be reached")
                    .caused_by(why);
            }
            CallError::Late => return open("the node did not answer in time"),
            CallError::Broken(why) => return open("the connection to the node was lost").caused_by(why),
            CallError::TooLong => return open("the node's answer is too long"),
            CallError::Foreign(status) => {
                return open("another server answered instead of the node").caused_by(foreign_answer(status));
            }
            CallError::Refused(refusal) => refusal,
        };
        let (code, what) = match &refusal {
            Refusal::Full => (Code::ResourceExhausted, "the node's mempool is full"),
            Refusal::TooManyWaiting => {
                (Code::ResourceExhausted, "too many transactions wait for a block at the node")
            }
            Refusal::Throttled(_) => {
                (Code::ResourceExhausted, "a proxy of the node limits the rate of requests")
            }
            Refusal::Forbidden => (Code::PermissionDenied, "a proxy of the node does not allow the request"),
            Refusal::TooLarge => (Code::InvalidArgument, "the transaction is too large for the node"),
            Refusal::CatchingUp => (Code::Unavailable, "the node is catching up"),
            Refusal::InCache => (Code::AlreadyExists, "the node has seen this transaction before"),
            Refusal::NoBlockYet => {
                (Code::DeadlineExceeded, "the transaction is in no block so far; it may still be included")
            }
            Refusal::NotFound => (Code::Internal, "the node knows no such transaction"),
            Refusal::NoIndex => (Code::Internal, "the node keeps no transaction index"),
            Refusal::Invalid(..) | Refusal::Other(_) => {
                (Code::Internal, "the node could not answer the request")
            }
        };
        let retry_after = match refusal {
            Refusal::Throttled(seconds) => seconds,
            _ => None,
        };
        Problem::new(code, REFUSED, what).retry_after(retry_after).caused_by(format!("{refusal:?}"))
    }
}
