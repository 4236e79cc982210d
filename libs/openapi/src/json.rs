//! JSON with members in the order of insertion, because people read the document, too.

use serde::{Serialize, Serializer};
use serde_json::value::RawValue;

/// A JSON value.
#[derive(Debug, Clone, Serialize)]
#[serde(untagged)]
pub(crate) enum Json {
    Bool(bool),
    Number(u64),
    Text(String),
    List(Vec<Json>),
    #[serde(serialize_with = "in_order")]
    Object(Vec<(String, Json)>),
    /// A value that is JSON text already.
    Raw(Box<RawValue>),
}

/// An object of these members.
macro_rules! object {
    ($($name:expr => $value:expr),* $(,)?) => {
        $crate::json::Json::Object(vec![$(($name.into(), $crate::json::Json::from($value))),*])
    };
}

pub(crate) use object;

impl Json {
    /// Adds a member to an object.
    pub(crate) fn put(&mut self, name: &str, value: impl Into<Json>) {
        if let Self::Object(members) = self {
            members.push((name.to_owned(), value.into()));
        }
    }

    /// An object with a member more.
    #[must_use]
    pub(crate) fn with(mut self, name: &str, value: impl Into<Json>) -> Self {
        self.put(name, value);
        self
    }

    /// An object with a member more, when there is one.
    #[must_use]
    pub(crate) fn with_some(self, name: &str, value: Option<impl Into<Json>>) -> Self {
        match value {
            Some(value) => self.with(name, value),
            None => self,
        }
    }

    /// Adds a member in front of those of an object inside of this one.
    pub(crate) fn prepend(&mut self, inside: &str, name: &str, value: Json) {
        if let Some(Self::Object(members)) = self.member(inside) {
            members.insert(0, (name.to_owned(), value));
        }
    }

    /// Makes a property of a schema required.
    pub(crate) fn require(&mut self, name: &str) {
        match self.member("required") {
            Some(Self::List(names)) => names.insert(0, name.into()),
            _ => self.put("required", vec![name]),
        }
    }

    fn member(&mut self, name: &str) -> Option<&mut Json> {
        let Self::Object(members) = self else { return None };
        members.iter_mut().find(|(member, _)| member == name).map(|(_, value)| value)
    }

    /// An object without a member.
    #[must_use]
    pub(crate) fn without(mut self, name: &str) -> Self {
        if let Self::Object(members) = &mut self {
            members.retain(|(member, _)| member != name);
        }
        self
    }
}

fn in_order<S: Serializer>(members: &[(String, Json)], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_map(members.iter().map(|(name, value)| (name, value)))
}

impl From<bool> for Json {
    fn from(value: bool) -> Self {
        Self::Bool(value)
    }
}

impl From<u32> for Json {
    fn from(value: u32) -> Self {
        Self::Number(value.into())
    }
}

impl From<usize> for Json {
    fn from(value: usize) -> Self {
        Self::Number(value as u64)
    }
}

impl From<&str> for Json {
    fn from(value: &str) -> Self {
        Self::Text(value.to_owned())
    }
}

impl From<String> for Json {
    fn from(value: String) -> Self {
        Self::Text(value)
    }
}

impl<T: Into<Json>> From<Vec<T>> for Json {
    fn from(values: Vec<T>) -> Self {
        Self::List(values.into_iter().map(Into::into).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_stay_in_order_and_raw_json_stays_as_it_is() {
        let raw = RawValue::from_string(r#"{"b":1, "a":2}"#.to_owned()).unwrap();
        let json = object! { "z" => true, "a" => vec!["x"], "n" => 7_u32, "raw" => Json::Raw(raw) };
        let json = json.with("m", object! {}).with_some("none", None::<bool>).without("a");
        assert_eq!(serde_json::to_string(&json).unwrap(), r#"{"z":true,"n":7,"raw":{"b":1, "a":2},"m":{}}"#);
    }
}
