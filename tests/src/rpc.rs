//! A gRPC client of the mesh. It takes requests as HTTP paths and returns replies as JSON, so that a test can
//! compare both protocols.

use std::time::Duration;

use bytes::Bytes;
use form_urlencoded::parse;
use http::{Uri, uri::PathAndQuery};
pub use mesh_testbed::grpc::Connection;
use mesh_testbed::{Mesh, grpc::Client};
use percent_encoding::percent_decode_str;
use prost_reflect::{DynamicMessage, FieldDescriptor, Kind, Value, prost::Message};
use proto_msgs::{Contract, Operation, OperationInfo, google, v2};
use tonic::{Request, Response, Status, Streaming};

use crate::problem::Problem;

/// Time limit for an answer.
const TIME_LIMIT: Duration = Duration::from_secs(60);

/// A client of one mesh. Every test makes its own, because connections live as long as a test's runtime.
#[derive(Debug, Clone)]
pub struct Rpc(Client);

/// A call of an operation.
#[derive(Debug, Clone)]
pub struct Call {
    /// The operation.
    pub operation: &'static OperationInfo,
    /// The request message.
    pub message: Bytes,
}

impl Call {
    /// The call that corresponds to a GET of this path; `None` where its parameters cannot be expressed in
    /// protobuf, or the path has no operation.
    pub fn from_path(target: &str) -> Option<Self> {
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        let (operation, fields) = mesh_oracles::operation_of(path)?;
        let mut message = DynamicMessage::new(operation.request.clone());
        for (name, text) in fields {
            set(&mut message, &name, &percent_decode_str(&text).decode_utf8().ok()?)?;
        }
        for (name, text) in parse(query.as_bytes()).filter(|(name, _)| name != "pretty") {
            set(&mut message, &name, &text)?;
        }
        Some(Self { operation, message: message.encode_to_vec().into() })
    }

    /// The call of an operation with a request message.
    pub fn new(name: &str, message: &impl Message) -> Self {
        let operation = Contract::get().operations().iter().find(|row| row.name == name);
        let operation = operation.unwrap_or_else(|| panic!("there is no operation {name}"));
        Self { operation, message: message.encode_to_vec().into() }
    }

    /// A reply to it in the JSON form of the contract.
    pub fn json(&self, reply: &[u8]) -> serde_json::Value {
        rendered(&self.operation.name, reply)
    }

    /// A request of it with these metadata.
    pub fn with_metadata(&self, metadata: &[(&'static str, &str)]) -> Request<Bytes> {
        let mut request = Request::new(self.message.clone());
        for (name, value) in metadata {
            request.metadata_mut().insert(*name, value.parse().unwrap_or_else(|_| panic!("{value:?}")));
        }
        request
    }

    fn path(&self) -> PathAndQuery {
        self.operation.rpc().parse().unwrap_or_else(|error| panic!("{}: {error}", self.operation.rpc()))
    }
}

impl Rpc {
    /// Connects to a mesh at its gRPC address.
    pub async fn connect(mesh: &Mesh) -> Self {
        Self::connect_to(&mesh.grpc_url()).await
    }

    /// Connects to a gRPC address.
    pub async fn connect_to(url: &str) -> Self {
        let client = Client::connect(url).await;
        Self(client.unwrap_or_else(|error| panic!("{url}: {error}")))
    }

    /// The connection and its address, for generated clients.
    pub fn connection(&self) -> (Connection, Uri) {
        (self.0.connection.clone(), self.0.origin.clone())
    }

    /// Calls a unary operation.
    ///
    /// # Errors
    /// The status, when it is not OK.
    pub async fn call(&self, called: &Call) -> Result<Response<Bytes>, Status> {
        self.call_with(called, Request::new(called.message.clone())).await
    }

    /// The same with request metadata.
    ///
    /// # Errors
    /// As [`Rpc::call`].
    pub async fn call_with(&self, called: &Call, request: Request<Bytes>) -> Result<Response<Bytes>, Status> {
        self.call_at(called.path(), request).await
    }

    /// Calls any path as a unary operation.
    ///
    /// # Errors
    /// As [`Rpc::call`].
    pub async fn call_at(
        &self,
        path: PathAndQuery,
        request: Request<Bytes>,
    ) -> Result<Response<Bytes>, Status> {
        let answered = tokio::time::timeout(TIME_LIMIT, self.0.unary(path, request));
        answered.await.unwrap_or_else(|_| panic!("there is no answer"))
    }

    /// Calls a unary operation; returns the reply as JSON.
    ///
    /// # Errors
    /// As [`Rpc::call`].
    pub async fn json(&self, called: &Call) -> Result<serde_json::Value, Status> {
        Ok(called.json(self.call(called).await?.get_ref()))
    }

    /// Calls a download; returns its stream of messages.
    ///
    /// # Errors
    /// The status, when it is refused.
    pub async fn stream(&self, called: &Call, request: Request<Bytes>) -> Result<Streaming<Bytes>, Status> {
        self.0.stream(called.path(), request).await
    }

    /// Calls any path with a stream of replies.
    ///
    /// # Errors
    /// The status, when it is refused.
    pub async fn stream_at(
        &self,
        path: PathAndQuery,
        request: Request<Bytes>,
    ) -> Result<Streaming<Bytes>, Status> {
        self.0.stream(path, request).await
    }

    /// Calls a download; returns all its messages.
    ///
    /// # Errors
    /// The status, when it is refused or does not end with OK.
    pub async fn download(&self, called: &Call) -> Result<Vec<google::api::HttpBody>, Status> {
        let mut stream = self.stream(called, Request::new(called.message.clone())).await?;
        let mut messages = Vec::new();
        while let Some(message) = stream.message().await? {
            let message = google::api::HttpBody::decode(message);
            messages.push(message.unwrap_or_else(|error| panic!("no google.api.HttpBody: {error}")));
        }
        Ok(messages)
    }

    /// The file that a download of this path gives.
    pub async fn download_file(&self, path: &str) -> Vec<u8> {
        let called = Call::from_path(path).unwrap_or_else(|| panic!("{path} is no call"));
        let messages = self.download(&called).await.unwrap_or_else(|status| panic!("{path}: {status:?}"));
        messages.into_iter().flat_map(|message| message.data).collect()
    }
}

/// Reads a status as an error of the contract.
///
/// # Errors
/// The first violation of the contract's form.
pub fn problem(status: &Status) -> Result<Problem, String> {
    let rich = google::rpc::Status::decode(status.details()).map_err(|error| error.to_string())?;
    if rich.code != i32::from(status.code()) || rich.message != status.message() {
        return Err(format!("the details say {} {:?}", rich.code, rich.message));
    }
    if status.metadata().get("x-request-id").is_none_or(|id| id.is_empty()) {
        return Err("there is no x-request-id".to_owned());
    }
    let detail = rich.details.first().ok_or("there are no details")?;
    if detail.type_url != "type.googleapis.com/api.v2.ErrorDetail" {
        return Err(format!("a detail is a {}", detail.type_url));
    }
    let detail = v2::ErrorDetail::decode(detail.value.as_slice()).map_err(|error| error.to_string())?;
    if detail.message != status.message() {
        return Err(format!("the first detail says {:?}", detail.message));
    }
    let (code, number) = (i64::from(rich.code), i64::from(detail.code));
    Ok(Problem { code, number, message: detail.message, inner: detail.inner })
}

/// Asserts that a status is an error of the contract's form with this code and application number.
#[track_caller]
pub fn assert_refused<T: std::fmt::Debug>(answered: Result<T, Status>, code: i64, number: i64) -> Problem {
    let status = answered.err().unwrap_or_else(|| panic!("it is not refused"));
    let problem = problem(&status).unwrap_or_else(|wrong| panic!("{wrong}: {status:?}"));
    assert_eq!((problem.code, problem.number), (code, number), "{status:?}");
    problem
}

/// Sets the field with this dotted name; unknown names are ignored.
fn set(message: &mut DynamicMessage, name: &str, text: &str) -> Option<()> {
    let (first, rest) = name.split_once('.').map_or((name, None), |(first, rest)| (first, Some(rest)));
    let descriptor = prost_reflect::ReflectMessage::descriptor(message);
    let field = descriptor.get_field_by_json_name(first).or_else(|| descriptor.get_field_by_name(first));
    let Some(field) = field else { return Some(()) };
    if let Some(rest) = rest {
        return match message.get_field_mut(&field).as_message_mut() {
            Some(inner) => set(inner, rest, text),
            None => Some(()),
        };
    }
    if text.is_empty() {
        return Some(());
    }
    let value = value(&field, text)?;
    if field.is_list() {
        message.get_field_mut(&field).as_list_mut()?.push(value);
        return Some(());
    }
    // A singular field given twice cannot be expressed.
    let is_first = !message.has_field(&field);
    message.set_field(&field, value);
    is_first.then_some(())
}

fn value(field: &FieldDescriptor, text: &str) -> Option<Value> {
    if text.starts_with('+') && field.kind() != Kind::String {
        return None;
    }
    Some(match field.kind() {
        Kind::String => Value::String(text.to_owned()),
        Kind::Bool => match text {
            "true" | "1" => Value::Bool(true),
            "false" | "0" => Value::Bool(false),
            _ => return None,
        },
        Kind::Int32 => Value::I32(text.parse().ok()?),
        Kind::Uint32 => Value::U32(text.parse().ok()?),
        Kind::Int64 => Value::I64(text.parse().ok()?),
        Kind::Uint64 => Value::U64(text.parse().ok()?),
        Kind::Enum(names) => Value::EnumNumber(
            names.get_value_by_name(text).map(|value| value.number()).or_else(|| text.parse().ok())?,
        ),
        _ => return None,
    })
}

fn json<M: Message + Default + serde::Serialize>(name: &str, message: &[u8]) -> serde_json::Value {
    let message = M::decode(message).unwrap_or_else(|error| panic!("{name}: {error}"));
    serde_json::to_value(message).unwrap_or_else(|error| panic!("{name}: {error}"))
}

/// The reply of an operation in the JSON form of the contract, converted through its generated type.
fn rendered(operation: &str, message: &[u8]) -> serde_json::Value {
    macro_rules! by_name {
        ($($request:ident),*) => {
            match operation {
                $(
                    <v2::$request as Operation>::NAME => {
                        json::<<v2::$request as Operation>::Reply>(operation, message)
                    }
                )*
                _ => panic!("{operation} has no reply message"),
            }
        };
    }
    proto_msgs::unary_requests!(by_name)
}
