//! From a request to the question that a service is asked: parameters of path and query, a JSON body, or a
//! protobuf message become the request message, by reflection and checked by the contract's rules (J2-J6,
//! J11, section 2.3).

pub(crate) mod body;
mod field_path;
mod json;
mod known_names;
pub(crate) mod percent;
pub(crate) mod preferences;
mod protobuf;
pub(crate) mod query;
mod time;
pub(crate) mod unknown_names;
mod value;

use mesh_bus::{Encoding, Format};
use mesh_problem::{MALFORMED, Problem};
use prost_reflect::{DynamicMessage, ReflectMessage, prost::Message};
use proto_msgs::{Contract, Method, OperationInfo};

pub(crate) use field_path::quote;

use crate::{
    ask::cache::Question,
    decode::{percent::PathField, preferences::Handling, query::Parameters, unknown_names::UnknownNames},
};

/// The fields of a read as of a block.
const AT_BLOCK: &str = "at_block";
const CHAIN_ID: &str = "chain_id";

/// An HTTP request, decoded.
pub(crate) struct Decoded {
    /// What the service is asked, or the first failure in the order of contract section 2.3: syntax of each
    /// parameter, then unknown ones where they are refused (`atBlock` always), then required ones.
    pub(crate) question: Result<Question, Problem>,
    /// The names that were ignored (J11), also of a request that is refused.
    pub(crate) ignored: UnknownNames,
}

/// Decodes an HTTP request. Equal requests have equal messages, byte by byte.
pub(crate) fn from_http(
    operation: &'static OperationInfo,
    path: &[PathField],
    query: &str,
    body: &[u8],
    gzip: bool,
    handling: Handling,
) -> Decoded {
    let mut message = DynamicMessage::new(operation.request.clone());
    let parameters = match Parameters::parse(query) {
        Ok(parameters) => parameters,
        Err(problem) => return Decoded { question: Err(problem), ignored: UnknownNames::default() },
    };
    let (mut in_query, mut in_body) = (UnknownNames::default(), UnknownNames::default());
    let filled = match operation.method {
        Method::Get => query::fill(&mut message, path, &parameters, handling, &mut in_query),
        Method::Post => {
            parameters.add_unknown(&mut in_query);
            json::fill(&mut message, body, &mut in_body)
        }
    };
    let has_at_block = in_query.has_at_block() || in_body.has_at_block();
    let question = parameters.pretty().and_then(|is_pretty| {
        filled?;
        if has_at_block {
            return Err(unknown_names::no_at_block());
        }
        if handling == Handling::Strict {
            refuse_unknown(operation, &in_query, &in_body)?;
        }
        check_required(&message)?;
        let format = if is_pretty { Format::PrettyJson } else { Format::Json };
        Ok(question(operation, Encoding { format, gzip }, &message))
    });
    let mut ignored = UnknownNames::default();
    if handling == Handling::Lenient && !has_at_block {
        ignored.append(in_query);
        ignored.append(in_body);
    }
    Decoded { question, ignored }
}

/// The question of a checked message.
fn question(operation: &'static OperationInfo, encoding: Encoding, message: &DynamicMessage) -> Question {
    let at_block = message.get_field_by_name(AT_BLOCK).filter(|_| message.has_field_by_name(AT_BLOCK));
    Question {
        operation: &operation.name,
        encoding,
        message: message.encode_to_vec().into(),
        at_block: at_block.and_then(|height| height.as_u64()),
        names_chain: message.has_field_by_name(CHAIN_ID),
    }
}

/// Refuses a request with unknown names.
fn refuse_unknown(
    operation: &OperationInfo,
    in_query: &UnknownNames,
    in_body: &UnknownNames,
) -> Result<(), Problem> {
    if !in_query.is_empty() {
        let reason = match operation.method {
            Method::Get => "a parameter is unknown",
            Method::Post => "a parameter is unknown; what the operation takes belongs in the body",
        };
        return Err(in_query.refusal(reason, &known_names::of_query(operation)));
    }
    if !in_body.is_empty() {
        return Err(in_body.refusal("a field of the body is unknown", &known_names::of_body(operation)));
    }
    Ok(())
}

/// Decodes the message of a gRPC call.
///
/// # Errors
/// The first failure in the order of contract section 2.3, within it in the order of declaration. Unknown
/// fields are ignored.
pub(crate) fn from_grpc(operation: &'static OperationInfo, message: &[u8]) -> Result<Question, Problem> {
    let mut message = DynamicMessage::decode(operation.request.clone(), message).map_err(|error| {
        let problem = Problem::invalid(MALFORMED, "the message is malformed");
        problem.with_inner(operation.request.full_name()).caused_by(error.to_string())
    })?;
    // A submission is passed on unchanged: the hash of a transaction depends on each of its letters, and the relay
    // names all its mistakes together (2.3, 5.1).
    if operation.method == Method::Get {
        protobuf::check(&mut message)?;
    }
    check_required(&message)?;
    Ok(question(operation, Encoding { format: Format::Protobuf, gzip: false }, &message))
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
