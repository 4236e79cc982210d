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

#[cfg(test)]
mod tests {
    use proto_msgs::Contract;

    use super::*;

    fn operation(name: &str) -> &'static OperationInfo {
        Contract::get().operations().iter().find(|row| row.name == name).unwrap()
    }

    #[test]
    fn a_query_knows_the_fields_that_are_not_in_the_path() {
        let names = [
            "party", "market", "pagination.first", "pagination.after", "pagination.last",
            "pagination.before", "pagination.newestFirst", "atBlock", "chainId", "pretty",
        ];
        assert_eq!(of_query(operation("ListAccounts")), names);
        assert_eq!(of_query(operation("GetWithdrawal")), ["atBlock", "chainId", "pretty"]);
        assert_eq!(of_query(operation("CheckTransaction")), ["pretty"]);
        let ledger = of_query(operation("ExportLedgerEntries"));
        assert!(ledger.contains(&"dateRange.startTimestamp".to_owned()), "{ledger:?}");
        assert!(!ledger.contains(&"dateRange".to_owned()), "{ledger:?}");
    }

    #[test]
    fn a_body_knows_its_objects_and_their_fields() {
        let names = of_body(operation("SubmitTransaction"));
        for name in ["tx", "tx.inputData", "tx.pow", "tx.pow.nonce", "type"] {
            assert!(names.contains(&name.to_owned()), "{name}: {names:?}");
        }
    }
}
