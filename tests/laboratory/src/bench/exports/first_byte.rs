//! Section "first-byte": an export of a thousand segments, from the request to the first byte of its body.

use std::{net::SocketAddr, time::Duration};

use mesh::{failure::Failure, terminal::print_line};
use serde_json::json;

use super::{
    super::{
        Section,
        bar::{Bar, Bound},
        comparison::{median, rounded},
    },
    Fixture, drain, path, run_blocking,
};
use crate::table;

const RUNS: u64 = 20;
/// Pause between two runs, so that data prefetched for the earlier one has arrived.
const PAUSE: Duration = Duration::from_millis(30);

/// Measures ranges that were requested before, and ranges that were not.
pub(super) async fn measure(fixture: &Fixture<'_>) -> Result<Section, Failure> {
    print_line("asking for an export of 1000 segments");
    let many = fixture.history.many;
    let edge = fixture.edges.cached;
    // Each range has one segment less than the one before.
    let cold: Vec<String> = (1..=RUNS).map(|less| path(many, less)).collect();
    let warm = vec![path(many, 0); RUNS as usize];
    let cold = run_blocking(move || times(edge, &cold)).await?;
    let warm = run_blocking(move || {
        drain::first_byte(edge, &warm[0])?;
        times(edge, &warm)
    })
    .await?;
    let bar = Bar {
        what: "warm layout, ms to the first byte".to_owned(),
        found: median(warm.clone()),
        bound: Bound::AtMost(5.0),
        aim: 1.0,
    };
    let (mut rows, mut sides) = (Vec::new(), Vec::new());
    for (name, times) in [("warm layout", warm), ("range never asked for", cold)] {
        let least = times.iter().copied().fold(f64::INFINITY, f64::min);
        let most = times.iter().copied().fold(0.0, f64::max);
        let middle = median(times);
        rows.push(vec![name.to_owned(), format!("{middle:.2}"), format!("{least:.2}"), format!("{most:.2}")]);
        sides.push(json!({
            "side": name, "medianMs": rounded(middle), "leastMs": rounded(least), "mostMs": rounded(most),
        }));
    }
    let title = format!("first-byte: an export of 1000 segments, medians of {RUNS}");
    let table = table::render_table(&title, &["export", "ms", "least", "most"], &rows);
    Ok(Section::new("first-byte", &table, &sides, &[bar]))
}

/// Milliseconds to the first byte of each path.
fn times(edge: SocketAddr, paths: &[String]) -> Result<Vec<f64>, String> {
    let time = |path: &String| {
        std::thread::sleep(PAUSE);
        let (_, took) = drain::first_byte(edge, path)?;
        Ok(took.as_secs_f64() * 1e3)
    };
    paths.iter().map(time).collect()
}
