//! A problem as a gRPC status (contract section 2), with all its reasons as details.

use http::Response;
use mesh_problem::{NOT_MAPPED, Problem};
use prost_reflect::prost::Message;
use tonic::{Code, Status, body::Body};

use crate::respond::{notes::ErrorNumbers, rpc_status};

/// The status of a problem.
pub(super) fn status(problem: &Problem) -> Status {
    let rich = rpc_status::message(problem);
    Status::with_details(Code::from(rich.code), rich.message.clone(), rich.encode_to_vec().into())
}

/// The problem of a stream whose client takes nothing.
pub(super) fn stalled() -> Problem {
    Problem::new(mesh_problem::Code::Canceled, NOT_MAPPED, "the client has read nothing for too long")
}

/// The answer to a call that failed.
pub(super) fn refused(problem: &Problem) -> Response<Body> {
    let mut response = status(problem).into_http();
    response.extensions_mut().insert(ErrorNumbers::of(problem));
    response
}
