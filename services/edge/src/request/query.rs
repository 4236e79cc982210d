//! Parameters of path and query into the request message.

use std::collections::HashMap;

use form_urlencoded::parse;
use mesh_problem::{MALFORMED, Problem};
use prost_reflect::{DynamicMessage, FieldDescriptor, Kind, MessageDescriptor, ReflectMessage, Value};
use proto_msgs::Contract;

use super::{
    format, scalar,
    way::{self, Way, shown, shown_way},
};

/// Fills the message. Unknown parameters are ignored (J11).
pub(super) fn fill(
    message: &mut DynamicMessage,
    path: &[(&str, String)],
    query: &str,
) -> Result<(), Problem> {
    let descriptor = message.descriptor();
    for (name, text) in path.iter().filter(|(_, text)| !text.is_empty()) {
        let way: Way = descriptor.get_field_by_name(name).into_iter().collect();
        let value = value(&way, text)?;
        set(message, &way, value);
    }
    for (way, texts) in collected(&descriptor, query)? {
        let Some(field) = way.last() else { continue };
        if field.is_list() {
            way::check_length(&way, texts.len())?;
            let values: Result<_, _> = texts.iter().map(|text| value(&way, text)).collect();
            set(message, &way, Value::List(values?));
        } else if let [text] = texts.as_slice() {
            let value = value(&way, text)?;
            set(message, &way, value);
        }
    }
    Ok(())
}

/// Whether the answer is to be indented: `?pretty`, `?pretty=true` (J12).
pub(crate) fn pretty(query: &str) -> Result<bool, Problem> {
    let mut given = parse(query.as_bytes()).filter(|(name, _)| name == "pretty").map(|(_, text)| text);
    let Some(text) = given.next() else { return Ok(false) };
    if given.next().is_some() {
        return Err(twice("pretty"));
    }
    match text.as_ref() {
        "" | "true" | "1" => Ok(true),
        "false" | "0" => Ok(false),
        _ => Err(Problem::invalid(MALFORMED, "pretty must be true, false, 1 or 0").with_inner(shown(&text))),
    }
}

/// The texts of each known parameter, in order of appearance. Empty texts are dropped: an empty optional
/// parameter counts as absent. A singular parameter given twice, in whichever spelling, is refused first.
fn collected(descriptor: &MessageDescriptor, query: &str) -> Result<Vec<(Way, Vec<String>)>, Problem> {
    let mut found: Vec<(Way, Vec<String>)> = Vec::new();
    let mut places: HashMap<Vec<u32>, usize> = HashMap::new();
    for (name, text) in parse(query.as_bytes()) {
        let Some(way) = way(descriptor, &name) else { continue };
        let numbers = way.iter().map(FieldDescriptor::number).collect();
        let first_time = !places.contains_key(&numbers);
        let place = *places.entry(numbers).or_insert(found.len());
        if first_time {
            found.push((way, Vec::new()));
        } else if !found[place].0.last().is_some_and(FieldDescriptor::is_list) {
            return Err(twice(&shown_way(&found[place].0)));
        }
        if !text.is_empty() {
            found[place].1.push(text.into_owned());
        }
    }
    found.retain(|(_, texts)| !texts.is_empty());
    Ok(found)
}

/// The field of a dotted name in either spelling (J2), or nothing when it names none.
fn way(descriptor: &MessageDescriptor, name: &str) -> Option<Way> {
    let mut way = Way::new();
    let mut inside = Some(descriptor.clone());
    for part in name.split('.') {
        let message = inside?;
        let field = message.get_field_by_json_name(part).or_else(|| message.get_field_by_name(part))?;
        inside = match field.kind() {
            Kind::Message(message) if !field.is_list() => Some(message),
            _ => None,
        };
        way.push(field);
    }
    // A sub-message itself has no text form.
    (inside.is_none()).then_some(way)
}

fn value(way: &[FieldDescriptor], text: &str) -> Result<Value, Problem> {
    let Some(field) = way.last() else { return Err(Problem::invalid(MALFORMED, "no such parameter")) };
    let expected = match scalar::from_text(&field.kind(), text) {
        Ok(value) => match format::checked(value, &Contract::get().rule(field)) {
            Ok(value) => return Ok(value),
            Err(expected) => expected,
        },
        Err(expected) => expected.to_owned(),
    };
    Err(way::malformed(way, &expected, text))
}

fn twice(name: &str) -> Problem {
    Problem::invalid(MALFORMED, "a parameter is given twice").with_inner(name)
}

fn set(message: &mut DynamicMessage, way: &[FieldDescriptor], value: Value) {
    match way {
        [] => {}
        [field] => message.set_field(field, value),
        [field, rest @ ..] => {
            if let Some(inner) = message.get_field_mut(field).as_message_mut() {
                set(inner, rest, value);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use prost_reflect::prost::Message;
    use proto_msgs::v2::{ListDelegationsRequest, ListEpochRewardSummariesRequest};

    use super::*;

    const HEX: &str = "00AB00000000000000000000000000000000000000000000000000000000000F";

    fn filled<M: Message + Default>(name: &str, query: &str) -> Result<M, Problem> {
        let descriptor = Contract::get().pool().get_message_by_name(&format!("api.v2.{name}")).unwrap();
        let mut message = DynamicMessage::new(descriptor);
        fill(&mut message, &[], query)?;
        Ok(M::decode(message.encode_to_vec().as_slice()).unwrap())
    }

    fn delegations(query: &str) -> Result<ListDelegationsRequest, Problem> {
        filled("ListDelegationsRequest", query)
    }

    fn refused(query: &str) -> u32 {
        delegations(query).unwrap_err().number()
    }

    #[test]
    fn both_spellings_of_a_name_are_taken() {
        for query in
            ["partyId=&nodeId={}&pagination.newestFirst=0", "node_id={}&pagination.newest_first=false&x.y=1"]
        {
            let request = delegations(&query.replace("{}", HEX)).unwrap();
            assert_eq!(request.party_id, None);
            assert_eq!(request.node_id, Some(HEX.to_lowercase()));
            assert_eq!(request.pagination.unwrap().newest_first, Some(false));
        }
    }

    #[test]
    fn a_parameter_given_twice_is_malformed_whatever_its_values() {
        assert_eq!(refused("epochId=1&epoch_id=1"), MALFORMED);
        assert_eq!(refused("epochId=&epochId="), MALFORMED);
        assert_eq!(refused("partyId=x&partyId=y"), MALFORMED);
        assert_eq!(refused("pagination.first=1&pagination.first=2"), MALFORMED);
        assert!(delegations("unknown=1&unknown=2").is_ok());
    }

    #[test]
    fn every_malformed_parameter_has_its_number() {
        assert_eq!(refused("partyId=x"), 10_013);
        assert_eq!(refused("nodeId=x"), 10_034);
        assert_eq!(refused("epochId=-1"), 10_036);
        assert_eq!(refused("epochId=9223372036854775808"), 10_036);
        assert_eq!(refused("pagination.first=x"), 10_028);
        assert_eq!(refused("pagination.newestFirst=yes"), 10_028);
    }

    #[test]
    fn lists_repeat_drop_empty_elements_and_have_a_limit() {
        let list =
            |query: &str| filled::<ListEpochRewardSummariesRequest>("ListEpochRewardSummariesRequest", query);
        let filter = list("filter.assetIds=A&filter.asset_ids=&filter.assetIds=B").unwrap().filter.unwrap();
        assert_eq!(filter.asset_ids, ["A", "B"]);
        assert_eq!(list("filter.marketIds=nope").unwrap_err().number(), 10_029);
        assert!(list(&"filter.assetIds=A&".repeat(50)).is_ok());
        assert_eq!(list(&"filter.assetIds=A&".repeat(51)).unwrap_err().number(), 10_029);
    }

    #[test]
    fn pretty_is_a_switch() {
        for (query, expected) in
            [("", false), ("pretty", true), ("a=1&pretty=true", true), ("pretty=0", false)]
        {
            assert_eq!(pretty(query), Ok(expected), "{query}");
        }
        assert_eq!(pretty("pretty=x").unwrap_err().number(), MALFORMED);
        assert_eq!(pretty("pretty&pretty").unwrap_err().number(), MALFORMED);
    }
}
