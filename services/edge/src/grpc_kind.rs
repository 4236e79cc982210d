//! The forms of gRPC, by the media type of a request.

use http::{HeaderMap, Method, StatusCode, header::CONTENT_TYPE};
use mesh_problem::{NOT_MAPPED, Problem};

use crate::admission::head::HttpError;

/// The media type, which may be followed by `+proto` and by parameters.
pub(crate) const MEDIA_TYPE: &str = "application/grpc";

/// The forms of gRPC, over any HTTP version.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum GrpcKind {
    /// gRPC with protobuf messages.
    Protobuf,
    /// gRPC with another codec, such as `application/grpc+json`.
    OtherCodec,
    /// gRPC-Web, in whichever encoding.
    Web,
}

impl GrpcKind {
    /// The form of a request by its media type, if it is gRPC.
    pub(crate) fn of_request(method: &Method, headers: &HeaderMap) -> Option<Self> {
        let text = headers.get(CONTENT_TYPE).filter(|_| method == Method::POST)?.to_str().ok()?;
        let text = text.split(';').next().unwrap_or(text).trim();
        let start = text.get(..MEDIA_TYPE.len())?;
        if !start.eq_ignore_ascii_case(MEDIA_TYPE) {
            return None;
        }
        match text[MEDIA_TYPE.len()..].to_ascii_lowercase().as_str() {
            "" | "+proto" => Some(Self::Protobuf),
            other if other.starts_with('+') => Some(Self::OtherCodec),
            other if other.starts_with("-web") => Some(Self::Web),
            _ => None,
        }
    }

    /// The refusal of a request of this form that does not come as HTTP/2 with protobuf messages.
    pub(crate) fn refusal(self) -> HttpError {
        let reason = match self {
            Self::Protobuf => "gRPC is spoken over HTTP/2",
            Self::OtherCodec => "gRPC is spoken with protobuf messages",
            Self::Web => "gRPC-Web is not spoken: use JSON over HTTP, or gRPC over HTTP/2",
        };
        HttpError::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, Problem::invalid(NOT_MAPPED, reason))
    }
}

/// Whether a request is gRPC with protobuf messages, over any HTTP version.
pub(crate) fn is_grpc(method: &Method, headers: &HeaderMap) -> bool {
    GrpcKind::of_request(method, headers) == Some(GrpcKind::Protobuf)
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    #[test]
    fn a_request_is_grpc_by_its_media_type() {
        for (kind, texts) in [
            (
                Some(GrpcKind::Protobuf),
                &["application/grpc", "Application/gRPC+PROTO", "application/grpc; charset=utf-8"][..],
            ),
            (Some(GrpcKind::OtherCodec), &["application/grpc+json", "application/grpc+proto+x"]),
            (Some(GrpcKind::Web), &["application/grpc-web", "Application/gRPC-Web-Text+proto ;x"]),
            (None, &["application/json", "application/grpcx", "application/grp", ""]),
        ] {
            for text in texts {
                let headers = HeaderMap::from_iter([(CONTENT_TYPE, HeaderValue::from_static(text))]);
                assert_eq!(GrpcKind::of_request(&Method::POST, &headers), kind, "{text}");
                assert_eq!(GrpcKind::of_request(&Method::GET, &headers), None, "{text}");
            }
        }
    }
}
