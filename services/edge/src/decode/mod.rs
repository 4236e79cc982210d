//! From a request to the question that a service is asked: parameters of path and query, a JSON body, or a
//! protobuf message become the request message, by reflection and checked by the contract's rules (J2-J6,
//! J11, section 2.3).

pub(crate) mod body;
mod field_path;
mod json;
mod protobuf;
pub(crate) mod query;
mod time;
mod value;

use bytes::Bytes;
use mesh_bus::{Encoding, Format};
use mesh_problem::{MALFORMED, Problem};
use prost_reflect::{DynamicMessage, ReflectMessage, prost::Message};
use proto_msgs::{Contract, Method, OperationInfo};

use crate::{ask::cache::Question, decode::query::Parameters};

/// Decodes an HTTP request. Equal requests have equal messages, byte by byte.
///
/// # Errors
/// The first failure in the order of contract section 2.3: syntax of each parameter, then required
/// parameters.
pub(crate) fn from_http(
    operation: &'static OperationInfo,
    path: &[(&str, String)],
    query: &str,
    body: &[u8],
    gzip: bool,
) -> Result<Question, Problem> {
    let mut message = DynamicMessage::new(operation.request.clone());
    let parameters = Parameters::parse(query);
    let format = if parameters.pretty()? { Format::PrettyJson } else { Format::Json };
    match operation.method {
        Method::Get => query::fill(&mut message, path, &parameters)?,
        Method::Post => json::fill(&mut message, body)?,
    }
    check_required(&message)?;
    let encoding = Encoding { format, gzip };
    Ok(Question { operation: &operation.name, encoding, message: message.encode_to_vec().into() })
}

/// Decodes the message of a gRPC call.
///
/// # Errors
/// As [`from_http`], in the order of declaration.
pub(crate) fn from_grpc(operation: &'static OperationInfo, message: &[u8]) -> Result<Question, Problem> {
    let message = check_message(operation, message)?;
    let encoding = Encoding { format: Format::Protobuf, gzip: false };
    Ok(Question { operation: &operation.name, encoding, message })
}

fn check_message(operation: &OperationInfo, message: &[u8]) -> Result<Bytes, Problem> {
    let mut message = DynamicMessage::decode(operation.request.clone(), message).map_err(|error| {
        let problem = Problem::invalid(MALFORMED, "the message is malformed");
        problem.with_inner(operation.request.full_name()).caused_by(error.to_string())
    })?;
    protobuf::check(&mut message)?;
    check_required(&message)?;
    Ok(message.encode_to_vec().into())
}

/// Refuses a message that lacks a required field (rule `missing` of the contract), in order of declaration.
/// The default of a field without presence counts as absent: an empty id, an unspecified table.
fn check_required(message: &DynamicMessage) -> Result<(), Problem> {
    for field in message.descriptor().fields() {
        let rule = Contract::get().rule(&field);
        if let Some(number) = rule.missing.filter(|_| !message.has_field(&field)) {
            let name = rule.called.as_deref().unwrap_or(field.json_name());
            return Err(Problem::invalid(number, format!("{name} is missing")));
        }
    }
    Ok(())
}
