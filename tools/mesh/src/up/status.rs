//! The status of a running mesh: one line that is overwritten, at a terminal only.

use std::time::Duration;

use mesh_launcher::supervisor::Supervisor;

use crate::{
    failure::Failure,
    terminal::{self, is_interactive},
};

const PERIOD: Duration = Duration::from_secs(1);

/// Shows the status until dropped.
pub(super) async fn show(supervisor: &Supervisor) -> Result<(), Failure> {
    if !is_interactive() {
        return std::future::pending().await;
    }
    let mut period = tokio::time::interval(PERIOD);
    let mut shown = String::new();
    loop {
        period.tick().await;
        let groups: Vec<String> = supervisor
            .standing()
            .iter()
            .map(
                |(name, ready, all)| {
                    if ready == all { format!("{name} {all}") } else { format!("{name} {ready}/{all}") }
                },
            )
            .collect();
        let line = format!("up: {} (Ctrl-C stops)", groups.join(", "));
        if line != shown {
            terminal::overwrite(&line);
            shown = line;
        }
    }
}
