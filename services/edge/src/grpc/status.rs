//! A problem as a gRPC status (contract section 2): its code's number, the first reason as the message, and
//! all of them as `google.rpc.Status` with the contract's detail objects.

use http::Response;
use mesh_problem::{Detail, Problem};
use prost_reflect::{prost::Message, prost_types::Any};
use proto_msgs::{google::rpc, v2::ErrorDetail};
use tonic::{Code, Status, body::Body};

use crate::respond::notes::ErrorNumbers;

const DETAIL_TYPE: &str = "type.googleapis.com/api.v2.ErrorDetail";

/// The status of a problem.
pub(super) fn status(problem: &Problem) -> Status {
    let code = i32::from(problem.code.number());
    let message = problem.details.first().map(|detail| detail.message.clone()).unwrap_or_default();
    let details = problem.details.iter().map(detail).collect();
    let rich = rpc::Status { code, message: message.clone(), details };
    Status::with_details(Code::from(code), message, rich.encode_to_vec().into())
}

fn detail(detail: &Detail) -> Any {
    let Detail { number, message, inner } = detail.clone();
    let detail = ErrorDetail { code: i32::try_from(number).unwrap_or(i32::MAX), message, inner };
    Any { type_url: DETAIL_TYPE.to_owned(), value: detail.encode_to_vec() }
}

/// The answer to a call that failed.
pub(super) fn refused(problem: &Problem) -> Response<Body> {
    let mut response = status(problem).into_http();
    response.extensions_mut().insert(ErrorNumbers::of(problem));
    response
}

#[cfg(test)]
mod tests {
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
