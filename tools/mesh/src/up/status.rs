//! The status of a running mesh: one line that is overwritten, at a terminal only.

use std::{convert::Infallible, time::Duration};

use mesh_launcher::supervisor::Supervisor;

use crate::terminal::{self, is_interactive};

const PERIOD: Duration = Duration::from_secs(1);

pub(super) async fn show(supervisor: &Supervisor) -> Infallible {
    if !is_interactive() {
        return std::future::pending().await;
    }
    let mut period = tokio::time::interval(PERIOD);
    loop {
        period.tick().await;
        let mut groups = Vec::new();
        for (name, ready, all) in supervisor.standing() {
            groups.push(if ready == all { format!("{name} {all}") } else { format!("{name} {ready}/{all}") });
        }
        terminal::overwrite(&format!("up: {} (Ctrl-C stops)", groups.join(", ")));
    }
}
