//! Calls of the RPC: JSON-RPC 2.0 in a POST, or method and parameters in a URI. Codes and messages of errors are
//! CometBFT's.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use bytes::Bytes;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

/// The id in the answer to a URI call.
const URI_ID: i64 = -1;

#[derive(Debug, Deserialize)]
pub(crate) struct Call {
    #[serde(default)]
    pub(crate) id: Value,
    #[serde(default)]
    pub(crate) method: String,
    #[serde(default)]
    params: Option<Map<String, Value>>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct RpcError {
    pub(crate) code: i32,
    message: &'static str,
    #[serde(skip_serializing_if = "String::is_empty")]
    data: String,
}

impl RpcError {
    pub(crate) const METHOD_NOT_FOUND: Self =
        Self { code: -32601, message: "Method not found", data: String::new() };

    pub(crate) fn parse(error: &serde_json::Error) -> Self {
        let data = format!("error unmarshaling request: {error}");
        Self { code: -32700, message: "Parse error. Invalid JSON", data }
    }

    pub(crate) fn invalid_request(data: String) -> Self {
        Self { code: -32600, message: "Invalid Request", data }
    }

    pub(crate) fn invalid_params(name: &str, expected: &str) -> Self {
        Self { code: -32602, message: "Invalid params", data: format!("{name} must be {expected}") }
    }

    pub(crate) fn internal(data: &impl ToString) -> Self {
        Self { code: -32603, message: "Internal error", data: data.to_string() }
    }
}

impl Call {
    /// The call of a URI. Bytes are written as `0x` and hex there, other values with or without quotes.
    pub(crate) fn of_uri(method: &str, query: Option<&str>) -> Result<Self, RpcError> {
        let pairs = form_urlencoded::parse(query.unwrap_or_default().as_bytes());
        let read = |(name, value): (std::borrow::Cow<'_, str>, std::borrow::Cow<'_, str>)| {
            let value = match value.strip_prefix("0x").map(hex::decode) {
                Some(Ok(bytes)) => STANDARD.encode(bytes),
                Some(Err(_)) => return Err(RpcError::invalid_params(&name, "0x and hex digits")),
                None => value.trim_matches('"').to_owned(),
            };
            Ok((name.into_owned(), Value::from(value)))
        };
        let params = Some(pairs.map(read).collect::<Result<_, _>>()?);
        Ok(Self { id: URI_ID.into(), method: method.to_owned(), params })
    }

    fn value(&self, name: &str) -> Option<&Value> {
        self.params.as_ref()?.get(name).filter(|value| !value.is_null())
    }

    /// A text; empty when missing.
    pub(crate) fn text(&self, name: &str) -> Result<&str, RpcError> {
        let text = self.value(name).map_or(Some(""), Value::as_str);
        text.ok_or_else(|| RpcError::invalid_params(name, "a string"))
    }

    /// Bytes in base64; empty when missing.
    pub(crate) fn bytes(&self, name: &str) -> Result<Bytes, RpcError> {
        let decoded = STANDARD.decode(self.text(name)?).map(Bytes::from);
        decoded.map_err(|_| RpcError::invalid_params(name, "a string in base64"))
    }

    /// A whole number, as number or text.
    pub(crate) fn number(&self, name: &str) -> Result<Option<i64>, RpcError> {
        let number = |value: &Value| value.as_i64().or_else(|| value.as_str()?.parse().ok());
        let read = |value| number(value).ok_or_else(|| RpcError::invalid_params(name, "a whole number"));
        self.value(name).map(read).transpose()
    }
}

pub(crate) fn answer(id: &Value, outcome: &Result<Value, RpcError>) -> Value {
    match outcome {
        Ok(result) => json!({"jsonrpc": "2.0", "id": id, "result": result}),
        Err(error) => json!({"jsonrpc": "2.0", "id": id, "error": error}),
    }
}
