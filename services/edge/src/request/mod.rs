//! From a request off the wire to the bytes of its message: parameters of path and query, or a JSON body, turned
//! by reflection into the request message, or a message as gRPC brings it; checked by the contract's rules (J2-J6,
//! J11, section 2.3).

mod body;
mod format;
mod message;
mod query;
mod required;
mod scalar;
mod way;

pub(crate) use query::pretty;

use bytes::Bytes;
use mesh_problem::{MALFORMED, Problem};
use prost_reflect::{DynamicMessage, prost::Message};
use proto_msgs::{Method, OperationInfo};

/// A checked request.
#[derive(Debug, Clone)]
pub(crate) struct Checked {
    /// The request message, encoded. Equal requests have equal bytes.
    pub(crate) message: Bytes,
    /// Whether the answer is to be indented (J12).
    pub(crate) pretty: bool,
}

/// Makes the request message of an operation.
///
/// # Errors
/// The first failure in the order of contract section 2.3: syntax of each parameter, then required parameters.
pub(crate) fn read(
    operation: &OperationInfo,
    path: &[(&str, String)],
    query: &str,
    body: &[u8],
) -> Result<Checked, Problem> {
    let mut message = DynamicMessage::new(operation.request.clone());
    let pretty = query::pretty(query)?;
    match operation.method {
        Method::Get => query::fill(&mut message, path, query)?,
        Method::Post => body::fill(&mut message, body)?,
    }
    required::check(&message)?;
    Ok(Checked { message: message.encode_to_vec().into(), pretty })
}

/// Checks the request message of an operation that came as such.
///
/// # Errors
/// As [`read`], in the order of declaration.
pub(crate) fn check(operation: &OperationInfo, message: &[u8]) -> Result<Bytes, Problem> {
    let mut message = DynamicMessage::decode(operation.request.clone(), message).map_err(|error| {
        let problem = Problem::invalid(MALFORMED, "the message is malformed");
        problem.with_inner(operation.request.full_name()).caused_by(error.to_string())
    })?;
    message::check(&mut message)?;
    required::check(&message)?;
    Ok(message.encode_to_vec().into())
}
