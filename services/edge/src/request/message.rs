//! A request message as a gRPC client made it: held to the rules that hold for parameters of path and query, so that
//! the same request has the same bytes whichever way it came.

use mesh_problem::Problem;
use prost_reflect::{DynamicMessage, Kind, Value};
use proto_msgs::Contract;

use super::{
    format,
    way::{self, Way},
};

/// Checks all fields that are set; what counts as absent (J11) is taken out, and so is what the contract does not know.
pub(super) fn check(message: &mut DynamicMessage) -> Result<(), Problem> {
    fields(message, &mut Way::new())
}

fn fields(message: &mut DynamicMessage, way: &mut Way) -> Result<(), Problem> {
    message.take_unknown_fields().for_each(drop);
    let given: Vec<_> = message.fields().map(|(field, value)| (field, value.clone())).collect();
    for (field, value) in given {
        way.push(field.clone());
        let checked = match value {
            Value::List(elements) => Some(Value::List(list(elements, way)?)).filter(|list| !is_empty(list)),
            value => one(value, way)?,
        };
        way.pop();
        match checked {
            Some(value) => message.set_field(&field, value),
            None => message.clear_field(&field),
        }
    }
    Ok(())
}

fn list(elements: Vec<Value>, way: &mut Way) -> Result<Vec<Value>, Problem> {
    let elements: Vec<Value> = elements.into_iter().filter(|element| !is_empty(element)).collect();
    way::check_length(way, elements.len())?;
    elements.into_iter().filter_map(|element| one(element, way).transpose()).collect()
}

/// The value as it is handed on; nothing when it counts as absent.
fn one(value: Value, way: &mut Way) -> Result<Option<Value>, Problem> {
    let Some(field) = way.last() else { return Ok(None) };
    match (value, field.kind()) {
        (value, _) if is_empty(&value) => Ok(None),
        (Value::EnumNumber(number), Kind::Enum(names)) if names.get_value(number).is_none() => {
            Err(way::malformed(way, "a known number", &number.to_string()))
        }
        (Value::Message(mut message), _) => {
            fields(&mut message, way)?;
            Ok(Some(Value::Message(message)))
        }
        (value, _) => {
            let given = value.as_str().map(str::to_owned).or_else(|| value.as_i64().map(|it| it.to_string()));
            let checked = format::checked(value, &Contract::get().rule(field));
            checked.map(Some).map_err(|expected| way::malformed(way, &expected, &given.unwrap_or_default()))
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

#[cfg(test)]
mod tests {
    use prost_reflect::prost::{Message, bytes::BufMut};
    use proto_msgs::v2::{
        GetWithdrawalRequest, ListDelegationsRequest, ListEpochRewardSummariesRequest, Pagination,
        RewardSummaryFilter,
    };

    use super::*;
    use crate::request;

    const HEX: &str = "00AB00000000000000000000000000000000000000000000000000000000000F";

    fn checked<M: Message + Default>(operation: &str, request: &M) -> Result<M, Problem> {
        let row = Contract::get().operations().iter().find(|row| row.name == operation).unwrap();
        let bytes = request::check(row, &request.encode_to_vec())?;
        Ok(M::decode(bytes).unwrap())
    }

    #[test]
    fn a_message_is_handed_on_as_its_parameters_would_be() {
        let request = ListDelegationsRequest {
            party_id: Some(String::new()),
            node_id: Some(HEX.to_owned()),
            pagination: Some(Pagination { newest_first: Some(false), ..Default::default() }),
            ..Default::default()
        };
        let checked = checked("ListDelegations", &request).unwrap();
        let expected =
            ListDelegationsRequest { party_id: None, node_id: Some(HEX.to_lowercase()), ..request };
        assert_eq!(checked, expected);
    }

    #[test]
    fn a_field_out_of_form_has_its_number() {
        let party =
            |party: &str| ListDelegationsRequest { party_id: Some(party.to_owned()), ..Default::default() };
        assert_eq!(checked("ListDelegations", &party("x")).unwrap_err().number(), 10_013);
        let epoch = ListDelegationsRequest { epoch_id: Some(-1), ..Default::default() };
        assert_eq!(checked("ListDelegations", &epoch).unwrap_err().number(), 10_036);
        let id = |id: &str| checked("GetWithdrawal", &GetWithdrawalRequest { id: id.to_owned() });
        assert_eq!(id("").unwrap_err().number(), 80_003);
        assert_eq!(id("y").unwrap_err().number(), 80_005);
        assert_eq!(id(HEX).unwrap().id, HEX.to_lowercase());
    }

    #[test]
    fn lists_drop_empty_elements_and_have_a_limit() {
        let list = |asset_ids: Vec<String>| ListEpochRewardSummariesRequest {
            filter: Some(RewardSummaryFilter { asset_ids, ..Default::default() }),
            ..Default::default()
        };
        let checked = |asset_ids| checked("ListEpochRewardSummaries", &list(asset_ids));
        let some = checked(vec!["A".to_owned(), String::new(), "B".to_owned()]).unwrap();
        assert_eq!(some.filter.unwrap().asset_ids, ["A", "B"]);
        assert!(checked(vec!["A".to_owned(); 50]).is_ok());
        assert_eq!(checked(vec!["A".to_owned(); 51]).unwrap_err().number(), 10_029);
        assert_eq!(checked(vec!["a b".to_owned()]).unwrap_err().number(), 10_029);
    }

    #[test]
    fn what_the_contract_does_not_know_is_left_out_and_what_is_no_message_refused() {
        let row = Contract::get().operations().iter().find(|row| row.name == "GetWithdrawal").unwrap();
        let known = GetWithdrawalRequest { id: HEX.to_lowercase() }.encode_to_vec();
        let mut more = known.clone();
        more.put_slice(&[0xf8, 0x01, 5]);
        assert_eq!(request::check(row, &more).unwrap(), known);
        for wrong in [&known[..9], &[0x0a, 1, 0xff], &[0x07]] {
            assert_eq!(request::check(row, wrong).unwrap_err().number(), 10_015, "{wrong:?}");
        }
        let table =
            Contract::get().operations().iter().find(|row| row.name == "ExportNetworkHistory").unwrap();
        assert_eq!(request::check(table, &[0x18, 99]).unwrap_err().number(), 10_015);
    }
}
