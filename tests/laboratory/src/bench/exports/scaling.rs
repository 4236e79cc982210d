//! Section "scaling": eight concurrent downloads from four workers, compared with the same from one.

use mesh::{failure::Failure, terminal::print_line};
use mesh_launcher::control::Request;

use super::{
    super::{
        Section,
        bar::{Bar, Bound},
        comparison::ROUNDS,
        cost::MeasuredProcess,
        transfer::{self, BYTES, Transfer},
    },
    Fixture, drain, path, run_blocking,
};

const DOWNLOADS: usize = 8;
const WORKERS: u32 = 4;

/// Runs the comparison.
pub(super) async fn measure(fixture: &Fixture<'_>) -> Result<Section, Failure> {
    print_line(&format!("downloading {DOWNLOADS} times at once from one worker and from {WORKERS}"));
    let edge = fixture.edges.cached;
    let length = fixture.length;
    let paths = vec![path(fixture.history.few, 0); DOWNLOADS];
    let mut sides =
        [Transfer::new("4 workers", BYTES, Vec::new()), Transfer::new("1 worker", BYTES, Vec::new())];
    for _ in 0..ROUNDS {
        for (side, workers) in sides.iter_mut().zip([WORKERS, 1]) {
            fixture.order(Request::Scale { name: "export".to_owned(), replicas: workers }).await?;
            fixture.mesh.ready(&["export"]).await?;
            let watched: Vec<MeasuredProcess> = fixture.on_the_way();
            side.watch(watched.clone());
            let paths = paths.clone();
            side.add(run_blocking(move || drain::drain(edge, &paths, &watched, length)).await?);
        }
    }
    let bar = Bar {
        what: format!("{} / {}, bytes a second", sides[0].name(), sides[1].name()),
        found: sides[0].rate() / sides[1].rate(),
        bound: Bound::AtLeast(0.9),
        aim: 1.0,
    };
    let title = format!("scaling: {DOWNLOADS} downloads at once");
    let figures: Vec<_> = sides.iter().map(Transfer::figures).collect();
    Ok(Section::new("scaling", &transfer::tables(&title, &sides), &figures, &[bar]))
}
