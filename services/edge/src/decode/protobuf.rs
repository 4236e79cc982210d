//! The message of a gRPC call, checked by the rules for parameters of path and query, so that equal requests
//! over HTTP and gRPC have equal bytes.

use mesh_problem::Problem;
use prost_reflect::{DynamicMessage, Kind, Value};
use proto_msgs::Contract;

use crate::decode::{
    field_path::{self, FieldPath},
    value,
};

/// Checks all fields that are set, and removes unknown ones and those that count as absent (J11).
///
/// # Errors
/// At the first field that is malformed.
pub(super) fn check(message: &mut DynamicMessage) -> Result<(), Problem> {
    check_fields(message, &mut FieldPath::new())
}

fn check_fields(message: &mut DynamicMessage, path: &mut FieldPath) -> Result<(), Problem> {
    message.take_unknown_fields().for_each(drop);
    let given: Vec<_> = message.take_fields().collect();
    for (field, value) in given {
        path.push(field.clone());
        let checked = match value {
            Value::List(elements) => {
                Some(Value::List(check_list(elements, path)?)).filter(|list| !is_empty(list))
            }
            value => check_value(value, path)?,
        };
        path.pop();
        if let Some(value) = checked {
            message.set_field(&field, value);
        }
    }
    Ok(())
}

fn check_list(elements: Vec<Value>, path: &mut FieldPath) -> Result<Vec<Value>, Problem> {
    let elements: Vec<Value> = elements.into_iter().filter(|element| !is_empty(element)).collect();
    field_path::check_length(path, elements.len())?;
    elements.into_iter().filter_map(|element| check_value(element, path).transpose()).collect()
}

/// The checked value; `None` when it counts as absent.
fn check_value(value: Value, path: &mut FieldPath) -> Result<Option<Value>, Problem> {
    let Some(field) = path.last() else { return Ok(None) };
    match (value, field.kind()) {
        (value, _) if is_empty(&value) => Ok(None),
        (Value::EnumNumber(number), Kind::Enum(names)) if names.get_value(number).is_none() => {
            Err(field_path::malformed(path, "a known number", &number.to_string()))
        }
        (Value::Message(mut message), _) => {
            check_fields(&mut message, path)?;
            // Parameters cannot express an empty one.
            let is_empty = message.fields().next().is_none();
            Ok((!is_empty).then_some(Value::Message(message)))
        }
        (value, _) => {
            let given = value.as_str().map(str::to_owned);
            let given = given.or_else(|| value.as_i64().map(|number| number.to_string()));
            let given = given.or_else(|| value.as_u64().map(|number| number.to_string()));
            let checked = value::check(value, Contract::get().rule(field));
            checked
                .map(Some)
                .map_err(|expected| field_path::malformed(path, &expected, &given.unwrap_or_default()))
        }
    }
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::String(text) => text.is_empty(),
        Value::List(elements) => elements.is_empty(),
        _ => false,
    }
}
