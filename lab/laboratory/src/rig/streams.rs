//! `mesh rig streams`: the stream simulator, seed after seed on all cores.
//!
//! Every seed is one stream with its own faults. No stream may deliver a wrong byte, end early as if
//! complete, or hang.

use std::ops::AddAssign;

use mesh::failure::Failure;
use mesh_simulator as simulator;
use serde_json::json;

use super::{
    args::RunArgs,
    engine::{Drill, Play},
    sweep,
};

pub(super) const DRILL: Drill = Drill {
    name: "streams",
    about: "Simulates download streams under all faults, one run a seed",
    options: &[],
    play: Play::Seeds(|options| Box::pin(drill(options.play().run))),
};

async fn drill(args: RunArgs) -> Result<(), Failure> {
    sweep::run("streams", &args, simulate, |totals: StreamTotals| {
        let StreamTotals { whole, broken, bytes, pulls, again } = totals;
        let text = format!(
            "  {whole} came whole, {broken} broke visibly and for a reason\n  {bytes} bytes, {pulls} pulls, {again} of \
             them sent again"
        );
        let figures =
            json!({ "whole": whole, "broken": broken, "bytes": bytes, "pulls": pulls, "again": again });
        (text, figures)
    })
    .await
}

/// Simulates one stream.
pub(super) fn simulate(seed: u64) -> Result<StreamTotals, simulator::Failure> {
    let outcome = simulator::simulate(seed)?;
    Ok(StreamTotals {
        whole: u64::from(outcome.is_whole),
        broken: u64::from(!outcome.is_whole),
        bytes: outcome.bytes,
        pulls: u64::from(outcome.pulls),
        again: u64::from(outcome.again),
    })
}

/// Totals over streams.
#[derive(Clone, Copy, Default)]
pub(super) struct StreamTotals {
    pub(super) whole: u64,
    pub(super) broken: u64,
    pub(super) bytes: u64,
    pub(super) pulls: u64,
    pub(super) again: u64,
}

impl AddAssign for StreamTotals {
    fn add_assign(&mut self, other: Self) {
        self.whole += other.whole;
        self.broken += other.broken;
        self.bytes += other.bytes;
        self.pulls += other.pulls;
        self.again += other.again;
    }
}
