//! Required parameters (rule `missing` of the contract), in order of declaration.

use mesh_problem::Problem;
use prost_reflect::{DynamicMessage, ReflectMessage};
use proto_msgs::Contract;

/// Refuses a message that lacks a required field. The default of a field without presence counts as absent:
/// an empty id, an unspecified table.
pub(super) fn check(message: &DynamicMessage) -> Result<(), Problem> {
    for field in message.descriptor().fields() {
        let rule = Contract::get().rule(&field);
        if let Some(number) = rule.missing.filter(|_| !message.has_field(&field)) {
            let called = rule.called.unwrap_or_else(|| field.json_name().to_owned());
            return Err(Problem::invalid(number, format!("{called} is missing")));
        }
    }
    Ok(())
}
