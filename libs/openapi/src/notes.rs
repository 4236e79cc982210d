//! The options of the contract that only the document uses.

use prost::Message;
use prost_reflect::{DynamicMessage, FieldDescriptor, MethodDescriptor, OneofDescriptor, Value};
use proto_msgs::{
    Contract,
    v2::{FieldNote, OperationNote},
};

/// The options of an operation.
pub(crate) fn of_operation(method: &MethodDescriptor) -> OperationNote {
    message(&method.options(), "api.v2.operation")
}

/// The options of a field.
pub(crate) fn of_field(field: &FieldDescriptor) -> FieldNote {
    message(&field.options(), "api.v2.note")
}

/// Whether a response may have none of the fields.
pub(crate) fn may_be_empty(one_of: &OneofDescriptor) -> bool {
    option(&one_of.options(), "api.v2.may_be_empty").and_then(|value| value.as_bool()).unwrap_or_default()
}

fn message<M: Message + Default>(options: &DynamicMessage, name: &str) -> M {
    let value = option(options, name);
    let note = value.as_ref().and_then(|value| value.as_message()?.transcode_to().ok());
    note.unwrap_or_default()
}

fn option(options: &DynamicMessage, name: &str) -> Option<Value> {
    let extension = Contract::get().pool().get_extension_by_name(name)?;
    options.has_extension(&extension).then(|| options.get_extension(&extension).into_owned())
}
