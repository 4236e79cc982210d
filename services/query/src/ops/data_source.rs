//! The stored JSON of a data source (DATA_MODEL 3.1) in the form of the API. Enums are read by name or number. What
//! has no form is left out or unspecified, and noted (contract 2.4).

use proto_msgs::v2::{
    Condition, EthAddress, Filter, PropertyKey, PubKey, Signer, condition::Operator, property_key::Type,
    signer::Signer as Kind,
};
use serde_json::{Map, Value};

/// A JSON object.
type Object = Map<String, Value>;

/// Reads JSON; gives what has no form to `note`.
pub(super) struct JsonReader<'a>(&'a dyn Fn(&Value));

impl<'a> JsonReader<'a> {
    pub(super) fn new(note: &'a dyn Fn(&Value)) -> Self {
        Self(note)
    }

    /// The elements of a list; those that are no objects, or that `read` cannot show, are left out.
    pub(super) fn list<T>(
        &self,
        list: &Value,
        read: impl Fn(&JsonReader<'_>, &Object) -> Option<T>,
    ) -> Vec<T> {
        match list {
            Value::Null => Vec::new(),
            Value::Array(items) => {
                let item =
                    |item: &Value| self.known(item, item.as_object().and_then(|item| read(self, item)));
                items.iter().filter_map(item).collect()
            }
            other => {
                (self.0)(other);
                Vec::new()
            }
        }
    }

    /// A text; a number or boolean as it is written, empty when absent.
    fn text(&self, object: &Object, name: &str) -> String {
        match object.get(name) {
            None | Some(Value::Null) => String::new(),
            Some(Value::String(text)) => text.clone(),
            Some(other) if other.is_number() || other.is_boolean() => other.to_string(),
            Some(other) => self.known(other, None).unwrap_or_default(),
        }
    }

    /// The number of an enum; 0 when absent.
    fn number<E: TryFrom<i32> + Into<i32>>(
        &self,
        object: &Object,
        name: &str,
        named: impl Fn(&str) -> Option<E>,
    ) -> i32 {
        let stored = match object.get(name) {
            None | Some(Value::Null) => return 0,
            Some(stored) => stored,
        };
        let known = match stored {
            Value::String(name) => named(name),
            other => other.as_i64().and_then(|number| E::try_from(i32::try_from(number).ok()?).ok()),
        };
        self.known(stored, known).map_or(0, Into::into)
    }

    /// A number of decimal places. `None` when absent, and when it is no whole number; the greatest one for those
    /// above.
    fn places(&self, stored: Option<&Value>) -> Option<u64> {
        let stored = stored.filter(|stored| !stored.is_null())?;
        let text = stored.as_str().map_or_else(|| stored.to_string(), str::to_owned);
        let number = text.parse();
        let is_too_great =
            number.is_err() && text.bytes().all(|byte| byte.is_ascii_digit()) && !text.is_empty();
        self.known(stored, number.ok()).or(is_too_great.then_some(u64::MAX))
    }

    /// Notes a value that is not known.
    fn known<T>(&self, stored: &Value, known: Option<T>) -> Option<T> {
        if known.is_none() {
            (self.0)(stored);
        }
        known
    }
}

pub(super) fn signer(json: &JsonReader<'_>, signer: &Object) -> Option<Signer> {
    let kind = |names: [&str; 2]| names.iter().find_map(|name| signer.get(*name)?.as_object());
    let kind = match (kind(["pubKey", "pub_key"]), kind(["ethAddress", "eth_address"])) {
        (Some(key), _) => Kind::PubKey(PubKey { key: json.text(key, "key") }),
        (None, Some(address)) => Kind::EthAddress(EthAddress { address: json.text(address, "address") }),
        (None, None) => return None,
    };
    Some(Signer { signer: Some(kind) })
}

/// A filter without a key has one of no name.
pub(super) fn filter(json: &JsonReader<'_>, filter: &Object) -> Option<Filter> {
    let none = Object::new();
    let stored = filter.get("key").unwrap_or(&Value::Null);
    let key = json.known(stored, stored.as_object()).unwrap_or(&none);
    let places = key.get("numberDecimalPlaces").or_else(|| key.get("number_decimal_places"));
    let key = PropertyKey {
        name: json.text(key, "name"),
        r#type: json.number(key, "type", Type::from_str_name),
        number_decimal_places: json.places(places),
    };
    let conditions = json.list(filter.get("conditions").unwrap_or(&Value::Null), condition);
    Some(Filter { key: Some(key), conditions })
}

pub(super) fn condition(json: &JsonReader<'_>, condition: &Object) -> Option<Condition> {
    Some(Condition {
        operator: json.number(condition, "operator", Operator::from_str_name),
        value: json.text(condition, "value"),
    })
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use serde_json::json;

    use super::*;

    /// What `read` makes of stored JSON, as JSON, and what it noted.
    fn read<T: serde::Serialize>(
        stored: &Value,
        read: impl Fn(&JsonReader<'_>, &Object) -> Option<T>,
    ) -> (Value, Vec<String>) {
        let noted = RefCell::new(Vec::new());
        let note = |value: &Value| noted.borrow_mut().push(value.to_string());
        let shown = JsonReader::new(&note).list(stored, read);
        (serde_json::to_value(shown).unwrap(), noted.into_inner())
    }

    #[test]
    fn what_has_no_form_is_left_out_or_unspecified_and_noted() {
        let empty = json!({"name": "", "type": "TYPE_UNSPECIFIED"});
        for (stored, shown, noted) in [
            (json!("x"), json!([]), vec!["\"x\""]),
            (json!([null, 1, {"key": {}}]), json!([{"key": empty, "conditions": []}]), vec!["null", "1"]),
            (json!([{"conditions": 7}]), json!([{"key": empty, "conditions": []}]), vec!["null", "7"]),
            (
                json!([{"key": {"name": {}, "type": "TYPE_NEW_KIND", "numberDecimalPlaces": -1}}]),
                json!([{"key": empty, "conditions": []}]),
                vec!["{}", "\"TYPE_NEW_KIND\"", "-1"],
            ),
            (
                json!([{"key": {"type": 99, "numberDecimalPlaces": "99999999999999999999"}}]),
                json!([{
                    "key": {"name": "", "type": "TYPE_UNSPECIFIED", "numberDecimalPlaces": u64::MAX.to_string()},
                    "conditions": [],
                }]),
                vec!["99", "\"99999999999999999999\""],
            ),
        ] {
            let noted = noted.into_iter().map(str::to_owned).collect();
            assert_eq!(read(&stored, filter), (shown, noted), "{stored}");
        }
        let operator = json!([{"operator": 1.5, "value": "1"}, {"operator": "OPERATOR_NEW"}]);
        let unspecified = "OPERATOR_UNSPECIFIED";
        let shown = json!([{"operator": unspecified, "value": "1"}, {"operator": unspecified, "value": ""}]);
        let noted = ["1.5", "\"OPERATOR_NEW\""].map(str::to_owned).to_vec();
        assert_eq!(read(&operator, condition), (shown, noted));
        let noted = [r#"{"newKey":{}}"#, r#"{"pubKey":"ab"}"#].map(str::to_owned).to_vec();
        let signers = json!([{"newKey": {}}, {"pubKey": "ab"}]);
        assert_eq!(read(&signers, signer), (json!([]), noted));
    }
}
