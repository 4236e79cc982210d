//! Section "scaling": eight concurrent downloads from four workers, compared with the same from one.

use mesh::{failure::Failure, terminal::print_line};

use super::{
    super::{
        comparison::{self, BYTES, Side, run_blocking},
        section::Section,
        sections::SectionName,
    },
    Fixture, drain, path,
};

const DOWNLOADS: usize = 8;
const WORKERS: u32 = 4;

/// Runs the comparison.
pub(crate) async fn measure(fixture: &Fixture<'_>) -> Result<Section, Failure> {
    print_line(&format!("downloading {DOWNLOADS} times at once from one worker and from {WORKERS}"));
    let (edge, length) = (fixture.edges.cached, fixture.length);
    let paths = vec![path(fixture.history.few, 0); DOWNLOADS];
    let paths = &paths;
    let side = |name, workers| {
        Side::new(name, BYTES, move || async move {
            fixture.scale(workers).await?;
            let (paths, watched) = (paths.clone(), fixture.on_the_way());
            run_blocking(move || drain::drain(edge, &paths, &watched, length)).await
        })
    };
    let sides = comparison::run_rounds([side("4 workers", WORKERS), side("1 worker", 1)]).await?;
    let title = format!("{DOWNLOADS} downloads at once");
    let found = sides[0].rate_to(&sides[1], "bytes");
    Ok(comparison::section(SectionName::Scaling, &title, &sides, &[found]))
}
