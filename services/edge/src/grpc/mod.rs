//! gRPC: the same operations by their names, as protobuf. A request's bytes are checked and a reply's handed on as
//! they are; which names there are is read off the contract. Everything else of gRPC (health, reflection) is
//! served beside them.

mod call;
mod export;
mod framing;
mod health;
mod standard;
mod standing;
mod status;
mod timeout;

use http::{HeaderMap, Method, header::CONTENT_TYPE};

pub(crate) use call::{Call, answer};
pub(crate) use standard::{Grpc, standard_service};

/// The media type, which may be followed by `+proto` and by parameters.
const MEDIA_TYPE: &str = "application/grpc";

/// Whether a request is meant to be gRPC in protobuf, over whichever HTTP. gRPC-Web and other forms of messages are
/// not.
pub(crate) fn is_meant(method: &Method, headers: &HeaderMap) -> bool {
    let media_type = || {
        let text = headers.get(CONTENT_TYPE)?.to_str().ok()?;
        Some(text.split(';').next().unwrap_or(text).trim())
    };
    let is_protobuf = |text: &str| {
        let form = text.get(..MEDIA_TYPE.len()).filter(|start| start.eq_ignore_ascii_case(MEDIA_TYPE));
        form.is_some() && matches!(&text[MEDIA_TYPE.len()..], "" | "+proto")
    };
    method == Method::POST && media_type().is_some_and(is_protobuf)
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    #[test]
    fn a_request_is_grpc_by_its_media_type() {
        let is_meant = |text: &'static str| {
            let headers = HeaderMap::from_iter([(CONTENT_TYPE, HeaderValue::from_static(text))]);
            super::is_meant(&Method::POST, &headers) && !super::is_meant(&Method::GET, &headers)
        };
        for text in ["application/grpc", "Application/gRPC+proto", "application/grpc; charset=utf-8"] {
            assert!(is_meant(text), "{text}");
        }
        for text in
            ["application/json", "application/grpc-web", "application/grpc+json", "application/grp", "", "x"]
        {
            assert!(!is_meant(text), "{text}");
        }
    }
}
