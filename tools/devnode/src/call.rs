//! Parses calls of the RPC as CometBFT does: JSON-RPC 2.0 in a POST, or method and parameters in a URI. Error
//! texts and codes are CometBFT's.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use bytes::Bytes;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// The id in the answer to a URI call.
pub(crate) const URI_ID: i64 = -1;

/// A call that came in a POST.
#[derive(Debug, Deserialize)]
pub(crate) struct Posted {
    /// `None` is a notification, which gets no answer.
    #[serde(default)]
    pub(crate) id: Option<Value>,
    #[serde(default)]
    pub(crate) method: String,
    #[serde(default)]
    params: Option<Value>,
}

/// One call or several, as they are posted.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
pub(crate) enum Body {
    Several(Vec<Posted>),
    One(Posted),
}

/// Why a call fails.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct RpcError {
    code: i32,
    message: &'static str,
    #[serde(skip_serializing_if = "String::is_empty")]
    data: String,
}

impl RpcError {
    pub(crate) fn parse(error: &serde_json::Error) -> Self {
        let data = format!("error unmarshaling request: {error}");
        Self { code: -32700, message: "Parse error. Invalid JSON", data }
    }

    pub(crate) fn invalid_request(data: impl Into<String>) -> Self {
        Self { code: -32600, message: "Invalid Request", data: data.into() }
    }

    pub(crate) fn method_not_found() -> Self {
        Self { code: -32601, message: "Method not found", data: String::new() }
    }

    pub(crate) fn invalid_params(data: impl Into<String>) -> Self {
        Self { code: -32602, message: "Invalid params", data: data.into() }
    }

    pub(crate) fn internal(data: &impl ToString) -> Self {
        Self { code: -32603, message: "Internal error", data: data.to_string() }
    }
}

/// The parameters of one call by name.
#[derive(Debug)]
pub(crate) enum Params {
    Json(Map<String, Value>),
    Uri(Vec<(String, String)>),
}

impl Posted {
    /// The parameters by name; positional ones are in the order of `names`.
    pub(crate) fn params(&mut self, names: &[&str]) -> Result<Params, RpcError> {
        let named = match self.params.take() {
            None | Some(Value::Null) => Map::new(),
            Some(Value::Object(named)) => named,
            Some(Value::Array(values)) if values.len() == names.len() => {
                names.iter().map(|name| (*name).to_owned()).zip(values).collect()
            }
            Some(Value::Array(values)) => {
                let (wanted, given) = (names.len(), values.len());
                return Err(unconverted(&format!(
                    "expected {wanted} parameters ({}), got {given}",
                    names.join(" ")
                )));
            }
            Some(_) => return Err(unconverted("unknown type for JSON params. Expected map or array")),
        };
        Ok(Params::Json(named))
    }
}

impl Params {
    /// The parameters of a URI's query.
    pub(crate) fn of_query(query: Option<&str>) -> Self {
        let pairs = form_urlencoded::parse(query.unwrap_or_default().as_bytes());
        Self::Uri(pairs.map(|(name, value)| (name.into_owned(), value.into_owned())).collect())
    }

    /// Bytes: base64 in JSON; in a URI `0x` and hex, or a text in quotes. Empty when missing.
    pub(crate) fn bytes(&self, name: &str) -> Result<Bytes, RpcError> {
        match self {
            Self::Json(named) => match named.get(name) {
                None | Some(Value::Null) => Ok(Bytes::new()),
                Some(Value::String(text)) => {
                    STANDARD.decode(text).map(Bytes::from).map_err(|_| unconverted("illegal base64 data"))
                }
                Some(_) => Err(unconverted(&format!("{name} must be a string in base64"))),
            },
            Self::Uri(pairs) => match value_of(pairs, name) {
                "" => Ok(Bytes::new()),
                text if is_hex(text) => hex::decode(&text[2..])
                    .map(Bytes::from)
                    .map_err(|error| unconverted_uri(&error.to_string())),
                text if text.starts_with('"') => serde_json::from_str::<String>(text)
                    .map(Bytes::from)
                    .map_err(|error| unconverted_uri(&error.to_string())),
                _ => Err(unconverted_uri("bytes are written as 0x and hex, or as text in quotes")),
            },
        }
    }

    /// A required text.
    pub(crate) fn text(&self, name: &str) -> Result<String, RpcError> {
        let value = match self {
            Self::Json(named) => named.get(name).and_then(Value::as_str),
            Self::Uri(pairs) => pairs.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str()),
        };
        value.map(str::to_owned).ok_or_else(|| unconverted(&format!("{name} must be a string")))
    }

    /// A whole number, as number or text; in a URI with or without quotes.
    pub(crate) fn number(&self, name: &str) -> Result<Option<i64>, RpcError> {
        let wrong = |value: &str| format!("{name} must be a whole number, got {value}");
        match self {
            Self::Json(named) => match named.get(name) {
                None | Some(Value::Null) => Ok(None),
                Some(Value::Number(number)) if number.is_i64() => Ok(number.as_i64()),
                Some(Value::String(text)) => text.parse().map(Some).map_err(|_| unconverted(&wrong(text))),
                Some(other) => Err(unconverted(&wrong(&other.to_string()))),
            },
            Self::Uri(pairs) => match value_of(pairs, name) {
                "" => Ok(None),
                text => text.trim_matches('"').parse().map(Some).map_err(|_| unconverted_uri(&wrong(text))),
            },
        }
    }
}

/// The first value of a name, or an empty text.
fn value_of<'a>(pairs: &'a [(String, String)], name: &str) -> &'a str {
    pairs.iter().find(|(key, _)| key == name).map_or("", |(_, value)| value)
}

fn is_hex(text: &str) -> bool {
    text.get(..2).is_some_and(|start| start.eq_ignore_ascii_case("0x"))
}

fn unconverted(what: &str) -> RpcError {
    RpcError::invalid_params(format!("error converting json params to arguments: {what}"))
}

fn unconverted_uri(what: &str) -> RpcError {
    RpcError::invalid_params(format!("error converting http params to arguments: {what}"))
}

/// The JSON-RPC answer.
#[derive(Debug, Serialize)]
pub(crate) struct Answer {
    jsonrpc: &'static str,
    /// `None` when the call could not be parsed.
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    result: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<RpcError>,
}

impl Answer {
    pub(crate) fn new(id: Option<Value>, outcome: Result<Value, RpcError>) -> Self {
        let (result, error) = match outcome {
            Ok(result) => (Some(result), None),
            Err(error) => (None, Some(error)),
        };
        Self { jsonrpc: "2.0", id, result, error }
    }

    /// The answer as JSON.
    pub(crate) fn json(answers: &impl Serialize) -> Vec<u8> {
        serde_json::to_vec(answers).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn posted(params: &Value) -> Result<Params, RpcError> {
        let mut posted: Posted = serde_json::from_value(json!({"id": 1, "params": params})).unwrap();
        posted.params(&["tx", "height"])
    }

    fn uri(query: &str) -> Params {
        Params::of_query(Some(query))
    }

    #[test]
    fn parameters_come_by_name_or_in_order() {
        for given in [json!({"tx": "aGk=", "height": "7"}), json!(["aGk=", 7])] {
            let params = posted(&given).unwrap();
            assert_eq!(params.bytes("tx").unwrap(), "hi");
            assert_eq!(params.number("height").unwrap(), Some(7));
        }
        let none = posted(&Value::Null).unwrap();
        assert_eq!((none.bytes("tx").unwrap(), none.number("height").unwrap()), (Bytes::new(), None));
        for wrong in [json!(["aGk="]), json!("aGk="), json!(1)] {
            assert_eq!(posted(&wrong).unwrap_err().code, -32602);
        }
        let wrong = posted(&json!({"tx": "a", "height": 1.5})).unwrap();
        assert_eq!(wrong.bytes("tx").unwrap_err().code, -32602);
        assert_eq!(wrong.number("height").unwrap_err().code, -32602);
    }

    #[test]
    fn in_a_uri_bytes_are_hex_or_quoted_and_numbers_plain_or_quoted() {
        assert_eq!(uri("tx=0x6869").bytes("tx").unwrap(), "hi");
        assert_eq!(uri("tx=0X6869").bytes("tx").unwrap(), "hi");
        assert_eq!(uri("tx=%22hi%22").bytes("tx").unwrap(), "hi");
        assert_eq!(uri("").bytes("tx").unwrap(), "");
        for wrong in ["tx=hi", "tx=0x6", "tx=%22hi", "tx=0xé"] {
            assert_eq!(uri(wrong).bytes("tx").unwrap_err().code, -32602, "{wrong}");
        }
        assert_eq!(uri("height=7").number("height").unwrap(), Some(7));
        assert_eq!(uri("height=%227%22").number("height").unwrap(), Some(7));
        assert_eq!(uri("height=x").number("height").unwrap_err().code, -32602);
    }
}
