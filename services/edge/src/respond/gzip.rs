//! Gzip at the edge: of downloads whose length is not known in advance (contract J15), and of short answers for
//! clients that do not accept an unencoded one.

use std::io::{self, Write};

use bytes::Bytes;
use flate2::{Compression, write::GzEncoder};
use futures_util::{Stream, StreamExt, stream};
use http::{
    HeaderValue,
    header::{CONTENT_ENCODING, CONTENT_LENGTH},
};
use http_body_util::{BodyExt, Collected};
use hyper::body::Body;
use mesh_bus::GZIP_LEVEL;
use tokio::task::spawn_blocking;
use warp::reply::Response;

/// Answers of at least this many bytes are compressed (J15).
pub(crate) const MIN_GZIPPED: usize = 1 << 10;

/// Whether it is an error that is long enough to be compressed.
pub(crate) fn is_long_error(response: &Response) -> bool {
    let length = Body::size_hint(response.body()).exact();
    !response.status().is_success() && length.is_some_and(|length| length >= MIN_GZIPPED as u64)
}

/// Compresses a body that is all there, for a client that takes no plain one, or because it is long. Downloads, which
/// come in pieces, are left as they are.
pub(crate) async fn compress_whole(response: Response) -> Response {
    let length = Body::size_hint(response.body()).exact().filter(|length| *length > 0);
    if length.is_none() || response.headers().contains_key(CONTENT_ENCODING) {
        return response;
    }
    let (mut head, body) = response.into_parts();
    let plain = body.collect().await.map(Collected::to_bytes).unwrap_or_default();
    let body = mesh_bus::gzip(&plain);
    head.headers.insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
    head.headers.insert(CONTENT_LENGTH, body.len().into());
    Response::from_parts(head, body.into())
}

/// Compresses a stream on blocking threads. A failure of the input leaves the gzip stream without its end.
pub(crate) fn compress(
    pieces: impl Stream<Item = io::Result<Bytes>> + Send + 'static,
) -> impl Stream<Item = io::Result<Bytes>> + Send + 'static {
    let encoder = GzEncoder::new(Vec::new(), Compression::new(GZIP_LEVEL));
    stream::try_unfold(Some((Box::pin(pieces), encoder)), |state| async move {
        let Some((mut pieces, mut encoder)) = state else { return Ok(None) };
        let Some(piece) = pieces.next().await.transpose()? else {
            let end = blocking(move || encoder.finish()).await?;
            return Ok(Some((end.into(), None)));
        };
        let (compressed, encoder) = blocking(move || {
            encoder.write_all(&piece)?;
            Ok((std::mem::take(encoder.get_mut()), encoder))
        })
        .await?;
        Ok(Some((compressed.into(), Some((pieces, encoder)))))
    })
}

async fn blocking<T: Send + 'static>(work: impl FnOnce() -> io::Result<T> + Send + 'static) -> io::Result<T> {
    spawn_blocking(work).await.map_err(io::Error::other)?
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use flate2::read::GzDecoder;

    use super::*;

    async fn roundtrip(pieces: Vec<io::Result<Bytes>>) -> io::Result<Vec<u8>> {
        let mut whole = Vec::new();
        let mut compressed = Box::pin(compress(stream::iter(pieces)));
        while let Some(piece) = compressed.next().await {
            // The bytes before a failure count.
            let Ok(piece) = piece else { break };
            whole.extend_from_slice(&piece);
        }
        let mut plain = Vec::new();
        GzDecoder::new(whole.as_slice()).read_to_end(&mut plain)?;
        Ok(plain)
    }

    #[tokio::test]
    async fn compressed_bytes_are_the_same_and_a_broken_stream_is_not_whole() {
        let pieces = || (0..20_u8).map(|piece| Ok(Bytes::from(vec![piece; 70_000])));
        let plain: Vec<u8> = (0..20_u8).flat_map(|piece| vec![piece; 70_000]).collect();
        assert_eq!(roundtrip(pieces().collect()).await.unwrap(), plain);
        assert_eq!(roundtrip(Vec::new()).await.unwrap(), b"");
        let broken = pieces().chain([Err(io::Error::other("broken"))]).collect();
        assert!(roundtrip(broken).await.is_err());
    }
}
