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

#[cfg(test)]
mod tests {
    use mesh_problem::Detail;
    use proto_msgs::{google::rpc, v2::ErrorDetail};

    use super::*;

    #[test]
    fn a_problem_keeps_its_number_its_reasons_and_its_code() {
        let mut problem =
            Problem::not_found(150_001, "no such withdrawal").with_inner("ab").caused_by("secret");
        problem.details.push(Detail { number: 10_015, ..Detail::default() });
        let status = status(&problem);
        assert_eq!((status.code(), status.message()), (Code::NotFound, "no such withdrawal"));
        let rich = rpc::Status::decode(status.details()).unwrap();
        assert_eq!((rich.code, rich.message.as_str()), (5, "no such withdrawal"));
        let details: Vec<_> =
            rich.details.iter().map(|any| ErrorDetail::decode(any.value.as_slice()).unwrap()).collect();
        let first =
            ErrorDetail { code: 150_001, message: "no such withdrawal".to_owned(), inner: "ab".to_owned() };
        assert_eq!(details, [first, ErrorDetail { code: 10_015, ..Default::default() }]);
    }
}
