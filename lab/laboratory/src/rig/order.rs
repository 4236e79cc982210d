//! `mesh rig order`: the simulator of the order of work of `ingest`, seed after seed on all cores.
//!
//! Every seed is one chain that two replicas bring into a store under faults. The store must end with exactly the
//! chain, and no replica may be halted then.

use mesh::failure::Failure;
use mesh_simulator::{OrderTotals, simulate_order};
use serde_json::json;

use super::{
    args::RunArgs,
    engine::{Drill, Play},
    sweep,
};

pub(super) const DRILL: Drill = Drill {
    name: "order",
    about: "Simulates replicas of ingest that store a chain under faults, one run a seed",
    options: &[],
    play: Play::Seeds(|options| Box::pin(drill(options.play().run))),
};

async fn drill(args: RunArgs) -> Result<(), Failure> {
    sweep::run("order", &args, simulate_order, |totals: OrderTotals| {
        let OrderTotals {
            blocks, transactions, kills, freezes, outages, failovers, replaced, wrong, moved, halts
        } = totals;
        let text = format!(
            "  {blocks} blocks were stored in {transactions} transactions, {moved} transactions came too late\n  {kills} \
             kills, {freezes} freezes, {outages} outages of servers, {failovers} losses of newest blocks, {replaced} \
             replaced nodes, {wrong} wrong blocks, {halts} halts"
        );
        let figures = json!({
            "blocks": blocks, "transactions": transactions, "kills": kills, "freezes": freezes, "outages": outages,
            "failovers": failovers, "replaced": replaced, "wrong": wrong, "moved": moved, "halts": halts,
        });
        (text, figures)
    })
    .await
}
