//! Requests to services of users, by NATS's service convention and without the headers of the mesh.

use std::time::Duration;

use async_nats::{Request, RequestErrorKind};
use bytes::Bytes;

use crate::{
    connection::Bus,
    headers::{ERROR, ERROR_CODE},
};

/// Why a service has not replied with a result.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ServiceCallError {
    /// No server is connected.
    #[error("the message bus is not connected")]
    NotConnected,
    /// No replica of the service is subscribed.
    #[error("no replica of the service {0} is on the bus")]
    NoReplica(String),
    /// No reply within the time.
    #[error("no reply from the service {0} in time")]
    Late(String),
    /// The request is longer than a message may be.
    #[error("a request of {bytes} bytes, more than the {most} of a message")]
    TooLarge {
        /// Its length.
        bytes: usize,
        /// The limit of the server.
        most: usize,
    },
    /// The service replied with an error.
    #[error("the service failed: {code} {text}")]
    Failed {
        /// Its number.
        code: String,
        /// Its text.
        text: String,
    },
}

impl Bus {
    /// Sends a request to any replica of the service that answers `mesh.<service>.<operation>`, and returns
    /// its reply.
    ///
    /// # Errors
    /// See [`ServiceCallError`].
    pub async fn call_service(
        &self,
        [service, operation]: [&str; 2],
        request: Vec<u8>,
        limit: Duration,
    ) -> Result<Bytes, ServiceCallError> {
        if !self.is_connected() {
            return Err(ServiceCallError::NotConnected);
        }
        let client = &self.shared.client;
        let (bytes, most) = (request.len(), client.server_info().max_payload);
        if bytes > most {
            return Err(ServiceCallError::TooLarge { bytes, most });
        }
        let request = Request::new().payload(request.into()).timeout(Some(limit));
        let reply = client.send_request(self.subject(service, operation), request).await;
        let reply = reply.map_err(|error| match error.kind() {
            RequestErrorKind::NoResponders => ServiceCallError::NoReplica(service.to_owned()),
            _ => ServiceCallError::Late(service.to_owned()),
        })?;
        let header = |name| reply.headers.as_ref().and_then(|headers| headers.get(name));
        let text = |name| header(name).map(ToString::to_string).unwrap_or_default();
        if header(ERROR).is_some() || header(ERROR_CODE).is_some() {
            return Err(ServiceCallError::Failed { code: text(ERROR_CODE), text: text(ERROR) });
        }
        Ok(reply.payload)
    }
}
