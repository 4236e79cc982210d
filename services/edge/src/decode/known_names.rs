//! The known names of an operation; an error for an unknown name suggests one of them.

use prost_reflect::{Kind, MessageDescriptor};
use proto_msgs::{Method, OperationInfo, Segment};

use crate::decode::query::PRETTY;

/// The parameters of its query.
pub(super) fn of_query(operation: &OperationInfo) -> Vec<String> {
    let mut names = Vec::new();
    if operation.method == Method::Get {
        add_fields(&operation.request, "", false, &mut names);
        for segment in &operation.path {
            if let Segment::Field(name) = segment
                && let Some(field) = operation.request.get_field_by_name(name)
            {
                names.retain(|name| name != field.json_name());
            }
        }
    }
    names.push(PRETTY.to_owned());
    names
}

/// The fields of its body with their paths, objects included.
pub(super) fn of_body(operation: &OperationInfo) -> Vec<String> {
    let mut names = Vec::new();
    add_fields(&operation.request, "", true, &mut names);
    names
}

fn add_fields(message: &MessageDescriptor, prefix: &str, with_objects: bool, names: &mut Vec<String>) {
    for field in message.fields() {
        let name = format!("{prefix}{}", field.json_name());
        match field.kind() {
            Kind::Message(inner) if !field.is_list() => {
                let prefix = format!("{name}.");
                if with_objects {
                    names.push(name);
                }
                add_fields(&inner, &prefix, with_objects, names);
            }
            _ => names.push(name),
        }
    }
}
