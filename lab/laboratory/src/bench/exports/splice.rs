//! Section "splice": a stored export through edge and bus, compared with the bus server alone, and with
//! deflating its CSV again.

use std::time::Duration;

use bytes::Bytes;
use flate2::{Compress, Compression, FlushCompress};
use mesh::{
    failure::{Failure, cannot},
    processes::NATS,
    terminal::print_line,
};
use mesh_history::DEFAULT_LEVEL;

use super::{
    super::{
        comparison::{self, BYTES, Side, run_blocking},
        cost,
        meter::{Meter, Round},
        section::Section,
        sections::SectionName,
    },
    Fixture, drain, path, raw,
};
use crate::synthetic::{LargeTable, Synthetic};

/// Bytes of messages that are published repeatedly.
const PUBLISHED: u64 = 64 << 20;
/// Rows of the CSV that is deflated repeatedly.
const DEFLATED_ROWS: u64 = 40_000;

/// Runs the comparison.
pub(crate) async fn measure(fixture: &Fixture<'_>) -> Result<Section, Failure> {
    print_line("downloading a stored export");
    let (few, many) = (path(fixture.history.few, 0), path(fixture.history.many, 0));
    let (edge, length, bus) = (fixture.edges.cached, fixture.length, fixture.servers.bus.clone());
    let (messages, text) = (messages(fixture)?, csv()?);
    let asked = few.clone();
    let (stored, _) = run_blocking(move || drain::first_byte(edge, &asked)).await?;
    // CSV bytes per byte of the download.
    let inflation = fixture.history.few.plain as f64 / stored as f64;
    let export = |name, path: String| {
        let watched = fixture.on_the_way();
        Side::blocking(name, BYTES, move || drain::drain(edge, std::slice::from_ref(&path), &watched, length))
    };
    let nats = fixture.mesh.watch(&[NATS]);
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
    let found = [
        (format!("{} / {}", product.name(), raw.name()), product.rate() / raw.rate()),
        (
            format!("CSV of {} / {}", product.name(), deflate.name()),
            product.rate() * inflation / deflate.rate(),
        ),
    ];
    let title = format!(
        "{:.0} MB of trades in {} segments and in 1000, a byte of the export worth {inflation:.2} of CSV",
        stored as f64 / 1e6,
        fixture.history.few_segments.segments,
    );
    Ok(comparison::section(SectionName::Splice, &title, &sides, &found))
}

/// The content of stored segments, split into messages of the size of chunks.
fn messages(fixture: &Fixture<'_>) -> Result<Vec<Bytes>, Failure> {
    let unreadable = |error: std::io::Error| cannot("read the stored segments", &error);
    let mut bytes = Vec::new();
    for file in std::fs::read_dir(fixture.mesh.home.root().join("segments")).map_err(unreadable)? {
        bytes.extend(std::fs::read(file.map_err(unreadable)?.path()).map_err(unreadable)?);
        if bytes.len() as u64 > PUBLISHED {
            break;
        }
    }
    let bytes = Bytes::from(bytes);
    let whole = bytes.len() / raw::MESSAGE;
    Ok((0..whole).map(|index| bytes.slice(index * raw::MESSAGE..(index + 1) * raw::MESSAGE)).collect())
}

fn csv() -> Result<Bytes, Failure> {
    let mut text = Vec::new();
    let rows = Synthetic { table: LargeTable::Trades, segments: 1, blocks: 1, rows: DEFLATED_ROWS };
    rows.text(|piece| {
        text.extend_from_slice(piece);
        Ok(())
    })?;
    Ok(text.into())
}

/// Deflates the text repeatedly in one stream, as a member of a segment is deflated.
fn deflate(text: &[u8], length: Duration) -> Result<Round, String> {
    let mut deflate = Compress::new(Compression::new(DEFAULT_LEVEL), false);
    let mut out = vec![0; 64 << 10];
    let (meter, begun_us, mut amount) = (Meter::start(&[]), cost::thread_cpu_us(), 0);
    let until = std::time::Instant::now() + length;
    'time: loop {
        for piece in text.chunks(128 << 10) {
            let mut left = piece;
            loop {
                let (taken, given) = (deflate.total_in(), deflate.total_out());
                deflate.compress(left, &mut out, FlushCompress::None).map_err(|error| error.to_string())?;
                left = &left[(deflate.total_in() - taken) as usize..];
                if left.is_empty() && deflate.total_out() - given < out.len() as u64 {
                    break;
                }
            }
            amount += piece.len() as u64;
            if std::time::Instant::now() >= until {
                break 'time;
            }
        }
    }
    let own_us = cost::thread_cpu_us() - begun_us;
    let own = vec![("deflate", own_us)];
    Ok(Round { amount, spent: meter.stop(own_us), own_us: own, ..Round::default() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_deflated_for_the_given_time() {
        let moved = deflate(&csv().unwrap()[..300_000], Duration::from_millis(20)).unwrap();
        assert!(moved.amount > 0 && moved.spent.seconds >= 0.02);
    }
}
