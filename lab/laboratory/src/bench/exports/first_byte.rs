//! Section "first-byte": an export of a thousand segments, from the request to the first byte of its body.

use std::{net::SocketAddr, time::Duration};

use mesh::{failure::Failure, terminal::print_line};

use super::{
    super::{
        comparison::run_blocking,
        section::{Line, Section, median, quantile},
        sections::SectionName,
    },
    Fixture, drain, path,
};

const RUNS: u64 = 20;
/// Pause between two runs, so that data prefetched for the earlier one has arrived.
const PAUSE: Duration = Duration::from_millis(30);

/// Measures ranges that were requested before, and ranges that were not.
pub(crate) async fn measure(fixture: &Fixture<'_>) -> Result<Section, Failure> {
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
    let line = |name, times: &[f64]| {
        Line::new("export", name)
            .value(("ms", "medianMs"), 2, quantile(times, 0.5))
            .value(("least", "leastMs"), 2, quantile(times, 0.0))
            .value(("most", "mostMs"), 2, quantile(times, 1.0))
    };
    let lines = [line("warm layout", &warm), line("range never asked for", &cold)];
    let title = format!("first-byte: an export of 1000 segments, medians of {RUNS}");
    let found = ("warm layout, ms to the first byte".to_owned(), median(warm));
    Ok(Section::new(SectionName::FirstByte, &title, &lines, "", &[found]))
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
