//! Section "splice": a stored export through edge and bus, compared with the bus server alone, and with
//! deflating its CSV again.

use std::time::{Duration, Instant};

use bytes::Bytes;
use flate2::{Compress, Compression, FlushCompress};
use mesh::{failure::Failure, processes::NATS};
use mesh_history::DEFAULT_LEVEL;

use super::{
    super::{
        comparison::{self, BYTES, Side},
        cost,
        meter::Round,
        section::Figures,
        world::World,
    },
    drain, path, raw,
};
use crate::synthetic::Synthetic;

/// Bytes of messages that are published repeatedly: more than the caches of a processor hold.
const PUBLISHED: usize = 64 << 20;
/// Rows of the CSV that is deflated repeatedly.
const DEFLATED_ROWS: u64 = 40_000;

/// Runs the comparison.
pub(crate) async fn measure(world: &World<'_>) -> Result<Figures, Failure> {
    let history = world.history().await?;
    let (few, many) = (path(history.few, 0), path(history.many, 0));
    let (edge, length, bus) = (world.edges().await?.cached, world.length(), world.servers.bus.clone());
    let (text, asked) = (csv()?, few.clone());
    let published = Bytes::from(vec![1; PUBLISHED]);
    let message = |number: usize| published.slice(number * raw::MESSAGE..(number + 1) * raw::MESSAGE);
    let messages: Vec<Bytes> = (0..PUBLISHED / raw::MESSAGE).map(message).collect();
    let stored = drain::first_byte(edge, &asked).await.map_err(Failure::failed)?;
    // CSV bytes per byte of the download.
    let inflation = history.few.plain as f64 / stored as f64;
    let export = |name, path: String| {
        let watched = world.mesh.watch(&["export", NATS, "edge"]);
        Side::blocking(name, BYTES, move || drain::drain(edge, std::slice::from_ref(&path), &watched, length))
    };
    let nats = world.mesh.watch(&[NATS]);
    let sides = comparison::run_rounds([
        export("export of large segments", few),
        export("export of 1000 segments", many),
        Side::blocking("raw NATS, 512 KiB messages", BYTES, move || {
            raw::publish(&bus, &messages, &nats, length)
        }),
        Side::blocking("one-stream deflate (CSV bytes)", BYTES, move || deflate(&text, length)),
    ])
    .await?;
    let [product, _, raw, deflate] = &sides;
    let found = vec![product.rate() / raw.rate(), product.rate() * inflation / deflate.rate()];
    let title = format!(
        "{:.0} MB of trades in {} segments and in 1000, a byte of the export worth {inflation:.2} of CSV",
        stored as f64 / 1e6,
        history.few_segments,
    );
    Ok(comparison::figures(&title, &sides, found))
}

fn csv() -> Result<Bytes, Failure> {
    let mut text = Vec::new();
    let rows = Synthetic { segments: 1, blocks: 1, rows: DEFLATED_ROWS };
    rows.text(|piece| {
        text.extend_from_slice(piece);
        Ok(())
    })?;
    Ok(text.into())
}

/// Deflates the text repeatedly in one stream, as a member of a segment is deflated.
fn deflate(text: &[u8], length: Duration) -> Result<Round, String> {
    let mut deflate = Compress::new(Compression::new(DEFAULT_LEVEL), false);
    let (mut out, until) = (vec![0; 64 << 10], Instant::now() + length);
    Round::of(("deflate", cost::thread_us), &[], || {
        for piece in text.chunks(128 << 10).cycle() {
            let mut left = piece;
            loop {
                let (taken, given) = (deflate.total_in(), deflate.total_out());
                deflate.compress(left, &mut out, FlushCompress::None).map_err(|error| error.to_string())?;
                left = &left[(deflate.total_in() - taken) as usize..];
                if left.is_empty() && deflate.total_out() - given < out.len() as u64 {
                    break;
                }
            }
            if Instant::now() >= until {
                break;
            }
        }
        Ok(deflate.total_in())
    })
}
