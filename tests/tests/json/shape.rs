//! Whether a JSON value has the form that the contract gives a message: names, types, presence (J2-J5, J7).

use prost_reflect::{FieldDescriptor, Kind, MessageDescriptor};
use serde_json::Value;

/// Differences of a value from the JSON form of a message, each with its path.
pub(crate) fn complaints(message: &MessageDescriptor, value: &Value) -> Vec<String> {
    let mut wrong = Vec::new();
    object(message, value, "", &mut wrong);
    wrong
}

fn object(message: &MessageDescriptor, value: &Value, path: &str, wrong: &mut Vec<String>) {
    let Some(fields) = value.as_object() else {
        wrong.push(format!("{path} is no object: {value}"));
        return;
    };
    for name in fields.keys() {
        // Only the camel-case name counts here, although both are read on input.
        if message.fields().all(|field| field.json_name() != name) {
            wrong.push(format!("{path}.{name} is no field of {}", message.name()));
        }
    }
    for field in message.fields() {
        let path = format!("{path}.{}", field.json_name());
        match fields.get(field.json_name()) {
            Some(value) => present(&field, value, &path, wrong),
            None if may_be_absent(&field) => {}
            None => wrong.push(format!("{path} is missing")),
        }
    }
    for one_of in message.oneofs() {
        let given = one_of.fields().filter(|field| fields.contains_key(field.json_name())).count();
        if given > 1 {
            wrong.push(format!("{path} has {given} arms of {}", one_of.name()));
        }
    }
}

/// Unset arms of a "one of" and unset optional fields are left out.
fn may_be_absent(field: &FieldDescriptor) -> bool {
    field.containing_oneof().is_some()
}

fn present(field: &FieldDescriptor, value: &Value, path: &str, wrong: &mut Vec<String>) {
    if !field.is_list() {
        return one(field, value, path, wrong);
    }
    match value.as_array() {
        Some(values) => values
            .iter()
            .enumerate()
            .for_each(|(at, value)| one(field, value, &format!("{path}.{at}"), wrong)),
        None => wrong.push(format!("{path} is no list: {value}")),
    }
}

fn one(field: &FieldDescriptor, value: &Value, path: &str, wrong: &mut Vec<String>) {
    let fits = match field.kind() {
        Kind::Message(message) => return object(&message, value, path, wrong),
        Kind::String => value.is_string(),
        Kind::Bool => value.is_boolean(),
        Kind::Int32 => value.as_i64().is_some_and(|number| i32::try_from(number).is_ok()),
        Kind::Uint32 => value.as_u64().is_some_and(|number| u32::try_from(number).is_ok()),
        Kind::Int64 => value.as_str().is_some_and(is_decimal::<i64>),
        Kind::Uint64 => value.as_str().is_some_and(is_decimal::<u64>),
        Kind::Enum(names) => value.as_str().is_some_and(|name| names.get_value_by_name(name).is_some()),
        other => panic!("{path}: the contract has no {other:?} in answers"),
    };
    if !fits {
        wrong.push(format!("{path} is {value}, not a {:?}", field.kind()));
    }
}

/// Whether a text is exactly how a number of this type prints.
fn is_decimal<T: std::str::FromStr + ToString>(text: &str) -> bool {
    text.parse::<T>().is_ok_and(|number| number.to_string() == text)
}

/// All values of an answer by the name of their field, however deep.
pub(crate) fn values<'a>(value: &'a Value, found: &mut Vec<(&'a str, &'a Value)>) {
    match value {
        Value::Object(fields) => {
            for (name, value) in fields {
                found.push((name, value));
                values(value, found);
            }
        }
        Value::Array(items) => items.iter().for_each(|item| values(item, found)),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use proto_msgs::Contract;
    use serde_json::json;

    use super::*;

    #[test]
    fn every_kind_of_fault_is_found() {
        let withdrawal = Contract::get().pool().get_message_by_name("api.v2.Withdrawal").expect("declared");
        let good = json!({"id": "", "partyId": "", "amount": "", "asset": "", "status": "STATUS_OPEN", "ref": "",
            "txHash": "", "createdTimestamp": "0", "withdrawnTimestamp": "-1", "ext": {}});
        assert_eq!(complaints(&withdrawal, &good), Vec::<String>::new());
        for (name, value) in [
            ("id", Value::Null),
            ("partyId", json!(1)),
            ("status", json!("STATUS_FOO")),
            ("status", json!(1)),
            ("createdTimestamp", json!(0)),
            ("createdTimestamp", json!("00")),
            ("ext", json!({"other": {}})),
            ("party_id", json!("")),
        ] {
            let mut bad = good.clone();
            bad[name] = value;
            assert_eq!(complaints(&withdrawal, &bad).len(), 1, "{bad}");
        }
        let mut lacking = good;
        lacking.as_object_mut().expect("an object").remove("amount");
        assert_eq!(complaints(&withdrawal, &lacking), [".amount is missing"]);
    }
}
