//! A problem as `google.rpc.Status`: its code's number, the first reason as the message, and all of them with
//! the contract's detail objects.

use mesh_problem::{Detail, Problem};
use prost_reflect::{prost::Message, prost_types::Any};
use proto_msgs::{google::rpc::Status, v2::ErrorDetail};

const DETAIL_TYPE: &str = "type.googleapis.com/api.v2.ErrorDetail";

/// The message of a problem.
pub(crate) fn message(problem: &Problem) -> Status {
    Status {
        code: i32::from(problem.code.number()),
        message: problem.details.first().map(|detail| detail.message.clone()).unwrap_or_default(),
        details: problem.details.iter().map(detail).collect(),
    }
}

fn detail(detail: &Detail) -> Any {
    let Detail { number, message, inner } = detail.clone();
    let detail = ErrorDetail { code: i32::try_from(number).unwrap_or(i32::MAX), message, inner };
    Any { type_url: DETAIL_TYPE.to_owned(), value: detail.encode_to_vec() }
}
