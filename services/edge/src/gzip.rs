//! Gzip on the way, for downloads that have no length in advance (contract J15).

use std::io::{self, Write};

use bytes::Bytes;
use flate2::{Compression, write::GzEncoder};
use futures_util::{Stream, StreamExt, stream};
use tokio::task::spawn_blocking;

/// One gzip stream of these bytes, made beside the thread that serves the connections. It has no end when they break
/// off.
pub(crate) fn packed(
    pieces: impl Stream<Item = io::Result<Bytes>> + Send + 'static,
) -> impl Stream<Item = io::Result<Bytes>> + Send + 'static {
    let encoder = GzEncoder::new(Vec::new(), Compression::fast());
    stream::try_unfold(Some((Box::pin(pieces), encoder)), |left| async move {
        let Some((mut pieces, mut encoder)) = left else { return Ok(None) };
        let Some(piece) = pieces.next().await.transpose()? else {
            let end = beside(move || encoder.finish()).await?;
            return Ok(Some((end.into(), None)));
        };
        let (packed, encoder) = beside(move || {
            encoder.write_all(&piece)?;
            Ok((std::mem::take(encoder.get_mut()), encoder))
        })
        .await?;
        Ok(Some((packed.into(), Some((pieces, encoder)))))
    })
}

async fn beside<T: Send + 'static>(work: impl FnOnce() -> io::Result<T> + Send + 'static) -> io::Result<T> {
    spawn_blocking(work).await.map_err(io::Error::other)?
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use flate2::read::GzDecoder;

    use super::*;

    async fn unpacked(pieces: Vec<io::Result<Bytes>>) -> io::Result<Vec<u8>> {
        let mut whole = Vec::new();
        let mut packed = Box::pin(packed(stream::iter(pieces)));
        while let Some(piece) = packed.next().await {
            // What came before a failure counts.
            let Ok(piece) = piece else { break };
            whole.extend_from_slice(&piece);
        }
        let mut plain = Vec::new();
        GzDecoder::new(whole.as_slice()).read_to_end(&mut plain)?;
        Ok(plain)
    }

    #[tokio::test]
    async fn what_is_packed_is_the_same_and_what_breaks_off_is_not_whole() {
        let pieces = || (0..20_u8).map(|piece| Ok(Bytes::from(vec![piece; 70_000])));
        let plain: Vec<u8> = (0..20_u8).flat_map(|piece| vec![piece; 70_000]).collect();
        assert_eq!(unpacked(pieces().collect()).await.unwrap(), plain);
        assert_eq!(unpacked(Vec::new()).await.unwrap(), b"");
        let broken = pieces().chain([Err(io::Error::other("broken"))]).collect();
        assert!(unpacked(broken).await.is_err());
    }
}
