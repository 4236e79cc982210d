//! What goes wrong while clients read, and when: what it may excuse is judged by the time it took.

use std::{
    sync::Mutex,
    time::{Duration, Instant},
};

use mesh_testbed::Signal;
use rand::{Rng, SeedableRng, rngs::SmallRng, seq::SliceRandom};
use tokio::time::sleep;

use crate::stage::Stage;

/// Calm between two troubles, milliseconds.
const CALM_MS: std::ops::Range<u64> = 400..1400;

/// How long something is cut off, milliseconds. The store is away for good after three seconds of silence.
const CUT_MS: std::ops::Range<u64> = 300..3000;
const STORE_CUT_MS: std::ops::Range<u64> = 500..4500;

/// For how long a replica is frozen.
const FROZEN: Duration = Duration::from_secs(1);

/// Something that goes wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Trouble {
    StoreCut,
    StoreFrozen,
    BusCut { edge: usize },
    QueryRestart { replica: usize, is_asked: bool },
    QueryFrozen { replica: usize },
    NodeInfoRestart { is_asked: bool },
    EdgeRestart { edge: usize, is_asked: bool },
}

/// When something went wrong.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Spell {
    pub(crate) trouble: Trouble,
    pub(crate) from: Instant,
    pub(crate) to: Instant,
}

/// Everything that went wrong.
#[derive(Debug, Default)]
pub(crate) struct Spells(Mutex<Vec<Spell>>);

impl Spells {
    /// In their order.
    pub(crate) fn all(&self) -> Vec<Spell> {
        self.0.lock().expect("nobody panics with it").clone()
    }

    fn over(&self, trouble: Trouble, from: Instant) {
        self.0.lock().expect("nobody panics with it").push(Spell { trouble, from, to: Instant::now() });
    }
}

/// Every trouble once, in a random order.
fn deck(random: &mut SmallRng) -> Vec<Trouble> {
    let (edge, replica) = (random.random_range(0..2), random.random_range(0..2));
    let mut deck = vec![
        Trouble::StoreCut,
        Trouble::StoreFrozen,
        Trouble::BusCut { edge },
        Trouble::QueryFrozen { replica },
    ];
    for is_asked in [false, true] {
        deck.push(Trouble::QueryRestart { replica, is_asked });
        deck.push(Trouble::NodeInfoRestart { is_asked });
        deck.push(Trouble::EdgeRestart { edge: 1 - edge, is_asked });
    }
    deck.shuffle(random);
    deck
}

/// Makes trouble until the time has come, at least once; leaves everything whole.
pub(crate) async fn make(stage: &mut Stage, spells: &Spells, seed: u64, until: Instant) {
    let mut random = SmallRng::seed_from_u64(seed);
    loop {
        for trouble in deck(&mut random) {
            sleep(Duration::from_millis(random.random_range(CALM_MS))).await;
            let from = Instant::now();
            one(stage, trouble, &mut random).await;
            spells.over(trouble, from);
            if Instant::now() >= until {
                return;
            }
        }
    }
}

async fn one(stage: &mut Stage, trouble: Trouble, random: &mut SmallRng) {
    let cut = Duration::from_millis(random.random_range(CUT_MS));
    let store_cut = Duration::from_millis(random.random_range(STORE_CUT_MS));
    match trouble {
        Trouble::StoreCut => {
            stage.to_store.cut();
            sleep(store_cut).await;
            stage.to_store.restore();
        }
        Trouble::StoreFrozen => {
            stage.to_store.stall();
            sleep(store_cut).await;
            stage.to_store.restore();
        }
        Trouble::BusCut { edge } => {
            stage.edges[edge].to_bus.cut();
            sleep(cut).await;
            stage.edges[edge].to_bus.restore();
        }
        Trouble::QueryFrozen { replica } => {
            stage.query[replica].service.signal(Signal::STOP);
            sleep(FROZEN).await;
            stage.query[replica].service.signal(Signal::CONT);
        }
        Trouble::QueryRestart { replica, is_asked } => stage.query[replica].restart(is_asked).await,
        Trouble::NodeInfoRestart { is_asked } => stage.node_info.restart(is_asked).await,
        Trouble::EdgeRestart { edge, is_asked } => stage.edges[edge].restart(is_asked).await,
    }
}
