//! Writes live blocks one by one, and knows after any interruption whether a block was stored or not.

use std::path::Path;
use tokio::task::spawn_blocking;

use crate::block::Block;
use crate::error::DemoError;
use crate::history::{catch_up, fill};
use crate::moment::Moment;
use crate::plan::Plan;
use crate::session::{Head, Session};
use crate::simulator::Simulator;
use crate::state_file::StateFile;

/// Blocks between two writings of the state file.
const SAVE_EVERY: u64 = 50;

/// Feeds a store with live blocks of the demo network. Only one feeder at a time can have a store.
pub struct Feeder {
    url: String,
    plan: Plan,
    state: StateFile,
    simulator: Simulator,
    session: Option<Session>,
    /// A block that was made but is not known to be stored.
    pending: Option<Block>,
    saved_height: u64,
}

impl Feeder {
    /// Connects to a store and finds the place to go on from: what is missing of the history is written first.
    /// Refuses a store with blocks of another network ([`DemoError::Foreign`]).
    pub async fn open(url: &str, plan: &Plan, state_file: &Path) -> Result<Self, DemoError> {
        plan.check()?;
        let state = StateFile::new(state_file);
        let mut session = Session::connect(url).await?;
        let simulator = catch_up(&session, plan, load(&state).await?).await?;
        let (_, simulator) = fill(&mut session, simulator, |_, _| {}).await?;
        let mut feeder = Feeder {
            url: url.to_owned(),
            plan: plan.clone(),
            state,
            simulator,
            session: Some(session),
            pending: None,
            saved_height: 0,
        };
        feeder.save().await?;
        Ok(feeder)
    }

    /// Height of the newest block that is known to be stored.
    #[must_use]
    pub fn height(&self) -> u64 {
        self.simulator.height() - u64::from(self.pending.is_some())
    }

    /// Writes the next block, with the given time, in one transaction. After an error that is passing
    /// ([`DemoError::is_passing`]) the next call connects anew and goes on with the same block, unless that was
    /// stored after all.
    pub async fn write_next(&mut self, time: Moment) -> Result<Head, DemoError> {
        let mut session = match self.session.take() {
            Some(session) => session,
            None => self.reconnect().await?,
        };
        let block = match self.pending.take() {
            Some(block) => block,
            None => self.simulator.next_block(time),
        };
        // Should this call end here, by an error or because nobody waits for it any more, the block stays
        // pending and the session is gone.
        let block = self.pending.insert(block);
        session.write(&block.rows).await?;
        let head = Head { height: block.height, time: block.time, hash: block.hash.clone() };
        self.pending = None;
        self.session = Some(session);
        if self.simulator.height() >= self.saved_height + SAVE_EVERY {
            self.save().await?;
        }
        Ok(head)
    }

    /// Writes the state file, unless a block is under way.
    pub async fn save(&mut self) -> Result<(), DemoError> {
        if self.pending.is_some() {
            return Ok(());
        }
        let (state, simulator) = (self.state.clone(), self.simulator.clone());
        self.saved_height = simulator.height();
        spawn_blocking(move || state.save(&simulator)).await.map_err(|_| DemoError::Generator)?
    }

    /// Gives the connection up; the next block makes a new one.
    pub(crate) fn disconnect(&mut self) {
        self.session = None;
    }

    /// Connects anew and finds out what the store holds by now.
    async fn reconnect(&mut self) -> Result<Session, DemoError> {
        let session = Session::connect(&self.url).await?;
        let stored = session.head().await?;
        let stored = stored.as_ref().map(|head| (head.height, head.hash.as_str()));
        let made = (self.simulator.height(), self.simulator.hash());
        if stored == Some(made) {
            self.pending = None;
            return Ok(session);
        }
        // With a block under way the store should end at the one before: its rows decide, so the way there is
        // made once more from what is saved.
        let before = self.pending.as_ref().map(|block| block.height - 1);
        if before.is_some() && stored.map(|(height, _)| height) == before {
            return Ok(session);
        }
        self.pending = None;
        self.simulator = catch_up(&session, &self.plan, load(&self.state).await?).await?;
        Ok(session)
    }
}

async fn load(state: &StateFile) -> Result<Option<Simulator>, DemoError> {
    let state = state.clone();
    spawn_blocking(move || state.load()).await.map_err(|_| DemoError::Generator)?
}
