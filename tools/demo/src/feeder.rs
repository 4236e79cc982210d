//! Writes live blocks one by one; after an interruption it reads from the store whether a block was stored.

use std::path::Path;

use tokio::task::spawn_blocking;

use crate::{
    block::Block,
    decision::Decision,
    error::DemoError,
    history::{catch_up, fill},
    moment::Moment,
    plan::Plan,
    session::{Head, Session},
    simulator::Simulator,
    state_file::StateFile,
};

/// Number of blocks between two writes of the state file.
const SAVE_EVERY: u64 = 50;

/// Feeds a store with live blocks of the demo network. A lock in the database allows one feeder per store.
pub struct Feeder {
    url: String,
    plan: Plan,
    state: StateFile,
    simulator: Simulator,
    session: Option<Session>,
    /// A block that was made but is not known to be stored.
    pending: Option<Block>,
    /// Height and hash of the newest block that is known to be stored.
    stored: (u64, String),
    saved_height: u64,
}

impl Feeder {
    /// Connects to a store, writes the missing part of the history and continues after its newest block.
    /// Refuses a store with blocks of another network ([`DemoError::Foreign`]).
    ///
    /// # Errors
    ///
    /// When the store is of another network or cannot be used, or the state file cannot be read or written.
    pub async fn open(url: &str, plan: &Plan, state_file: &Path) -> Result<Self, DemoError> {
        plan.check()?;
        let state = StateFile::new(state_file);
        let mut session = Session::connect(url).await?;
        let simulator = catch_up(&session, plan, load(&state).await?).await?;
        let (_, simulator) = fill(&mut session, simulator, |_, _| {}).await?;
        let stored = (simulator.height(), simulator.hash().to_owned());
        let mut feeder = Feeder {
            url: url.to_owned(),
            plan: plan.clone(),
            state,
            simulator,
            session: Some(session),
            pending: None,
            stored,
            saved_height: 0,
        };
        feeder.save().await?;
        Ok(feeder)
    }

    /// Height of the newest block that is known to be stored.
    #[must_use]
    pub fn height(&self) -> u64 {
        self.stored.0
    }

    /// Writes the next block, with the given time, in one transaction. After a temporary error
    /// ([`DemoError::is_passing`]), or when the future was dropped, the next call connects again and stores
    /// the same block with its first time; [`Feeder::height`] is the newest block known to be stored.
    ///
    /// # Errors
    ///
    /// When the block is not known to be stored, or the state file cannot be written.
    pub async fn write_next(&mut self, time: Moment) -> Result<Head, DemoError> {
        self.write(&Decision { height: self.height() + 1, time, hash: None }).await
    }

    /// Writes the next block with a time, and a hash, that are decided elsewhere.
    pub(crate) async fn write(&mut self, decision: &Decision) -> Result<Head, DemoError> {
        let mut session = match self.session.take() {
            Some(session) => session,
            None => self.reconnect().await?,
        };
        let made = (self.simulator.height(), self.simulator.hash());
        if self.pending.is_some() && made == (self.stored.0, &self.stored.1) {
            // The store has it: only the answer of its commit was lost.
            self.pending = None;
            return Ok(self.newest(session));
        }
        if decision.hash.is_some() && decision.height != self.stored.0 + 1 {
            // The store was set back meanwhile: the pending block is not the next one any more.
            return Ok(self.newest(session));
        }
        let block = match self.pending.take() {
            Some(block) => block,
            None => match &decision.hash {
                Some(hash) => self.simulator.decided_block(decision.time, hash),
                None => self.simulator.next_block(decision.time),
            },
        };
        // When this call ends here, by an error or because the future is dropped, the block stays pending and
        // the session is closed.
        let block = self.pending.insert(block);
        session.write(&block.rows).await?;
        let head = Head { height: block.height, time: block.time, hash: block.hash.clone() };
        self.pending = None;
        self.stored = (head.height, head.hash.clone());
        self.session = Some(session);
        if self.simulator.height() >= self.saved_height + SAVE_EVERY {
            self.save().await?;
        }
        Ok(head)
    }

    fn newest(&mut self, session: Session) -> Head {
        self.session = Some(session);
        Head { height: self.stored.0, time: self.simulator.time(), hash: self.stored.1.clone() }
    }

    /// Writes the state file, unless a block is pending.
    ///
    /// # Errors
    ///
    /// When the file cannot be written.
    pub async fn save(&mut self) -> Result<(), DemoError> {
        if self.pending.is_some() {
            return Ok(());
        }
        let (state, simulator) = (self.state.clone(), self.simulator.clone());
        self.saved_height = simulator.height();
        spawn_blocking(move || state.save(&simulator)).await.map_err(|_| DemoError::Generator)?
    }

    /// Closes the connection; the next block opens a new one.
    pub(crate) fn disconnect(&mut self) {
        self.session = None;
    }

    /// Connects again and reads the newest block of the store.
    async fn reconnect(&mut self) -> Result<Session, DemoError> {
        let mut session = Session::connect(&self.url).await?;
        let head = session.head().await?.map(|head| (head.height, head.hash));
        if head.as_ref() == Some(&self.stored) {
            return Ok(session);
        }
        let made = (self.simulator.height(), self.simulator.hash().to_owned());
        if head.as_ref() != Some(&made) {
            // The store was set back or replaced: the simulator is built again from its blocks.
            let saved = load(&self.state).await?;
            let simulator = catch_up(&session, &self.plan, saved).await?;
            (_, self.simulator) = fill(&mut session, simulator, |_, _| {}).await?;
            self.pending = None;
        }
        self.stored = (self.simulator.height(), self.simulator.hash().to_owned());
        Ok(session)
    }
}

async fn load(state: &StateFile) -> Result<Option<Simulator>, DemoError> {
    let state = state.clone();
    spawn_blocking(move || state.load()).await.map_err(|_| DemoError::Generator)?
}
