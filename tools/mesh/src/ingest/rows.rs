//! `mesh ingest rows`: stores blocks of any source from JSON lines, in order, by the rules of the service.
//! Lines at or below the newest stored block are passed when the stored block has their hash, so that a call
//! that was interrupted can be repeated.

use std::{collections::BTreeMap, io, path::Path};

use mesh_ingest::{DecodedBlock, StatedRow, read_time};
use mesh_problem::error_chain;
use mesh_store::append::{AppendError, Appender, NewBlock, StoredHead, TransactionRows};
use serde::Deserialize;
use tokio::{
    sync::mpsc,
    time::{Duration, Instant},
};

use super::{args::RowsArgs, json_fault, lines, place::Variables};
use crate::{
    failure::{Failure, failed},
    terminal,
};

/// Most lines that are read ahead.
const READ_AHEAD: usize = 64;

/// Most blocks of one transaction.
const MAX_BLOCKS: usize = 1_000;

/// Number of stored blocks whose hashes are read at a time.
const HASHES: u64 = 1_000;

/// Pause before the store is tried again after another session held its head.
const BUSY_RETRY: Duration = Duration::from_millis(100);

/// How often that is done.
const BUSY_RETRIES: usize = 100;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Line {
    height: u64,
    /// RFC 3339.
    time: String,
    hash: String,
    previous_hash: Option<String>,
    rows: Vec<StatedRow>,
}

pub(super) async fn rows(args: RowsArgs) -> Result<(), Failure> {
    let store = match &args.postgres {
        Some(url) => Appender::connect(url).await?,
        None => Variables::of(&args.home).await?.store(None).await?,
    };
    let chain = store.chain().await?;
    let chain_id = match (chain.chain_id, args.chain) {
        (Some(known), Some(given)) if known != given => {
            return Err(failed!("the database is of the chain {known:?}, not of {given:?}"));
        }
        (Some(known), _) => known,
        (None, Some(given)) => given,
        (None, None) => return Err(Failure::usage("name the chain of the empty database with --chain")),
    };
    let (sender, lines) = mpsc::channel(READ_AHEAD);
    let path = args.file.clone();
    std::thread::spawn(move || read(&path, &sender));
    let mut writer = Writer {
        store,
        chain_id,
        head: chain.head,
        hashes: BTreeMap::new(),
        waiting: Vec::new(),
        rows: 0,
        fitting: TransactionRows::FEWEST,
        stored: 0,
        file: args.file.display().to_string(),
    };
    writer.run(lines).await
}

/// Sends the lines of a file with their numbers.
fn read(path: &Path, sender: &mpsc::Sender<(usize, io::Result<String>)>) {
    let lines = lines(path).unwrap_or_else(|error| Box::new(std::iter::once(Err(error))));
    for (line, number) in lines.zip(1..) {
        let is_last = line.is_err();
        if sender.blocking_send((number, line)).is_err() || is_last {
            return;
        }
    }
}

struct Writer {
    store: Appender,
    chain_id: String,
    head: Option<StoredHead>,
    /// Hashes of stored blocks by height, as far as they were read for lines that are passed.
    hashes: BTreeMap<u64, String>,
    /// Blocks that are not stored so far, with the numbers of their lines and the heads that they make.
    waiting: Vec<(usize, NewBlock, StoredHead)>,
    /// The rows of these.
    rows: usize,
    /// Most rows of the next transaction.
    fitting: TransactionRows,
    stored: usize,
    file: String,
}

impl Writer {
    async fn run(&mut self, mut lines: mpsc::Receiver<(usize, io::Result<String>)>) -> Result<(), Failure> {
        loop {
            let line = match lines.try_recv() {
                Ok(line) => Some(line),
                // Nothing is ready: what was read is stored before the next line is awaited.
                Err(_) => {
                    self.store().await?;
                    lines.recv().await
                }
            };
            let Some((number, line)) = line else { break };
            let added = match line {
                Ok(text) if text.trim().is_empty() => Ok(()),
                Ok(text) => self.add(number, &text).await,
                Err(error) if error.kind() == io::ErrorKind::InvalidData => Err("it is not UTF-8".to_owned()),
                Err(error) => {
                    self.store().await?;
                    return Err(failed!("cannot read {}: {error}", self.file));
                }
            };
            if let Err(fault) = added {
                self.store().await?;
                return Err(self.fault(number, &fault));
            }
            if self.rows > self.fitting.most() && self.waiting.len() > 1 {
                // The newest block does not fit: it waits for the next transaction.
                let newest = self.waiting.pop();
                self.store().await?;
                self.rows = newest.iter().map(|(_, block, _)| rows_of(block)).sum();
                self.waiting.extend(newest);
            }
            if self.rows >= self.fitting.most() || self.waiting.len() >= MAX_BLOCKS {
                self.store().await?;
            }
        }
        self.store().await?;
        let height = self.head.as_ref().map_or(0, |head| head.height);
        terminal::print(&format!("{} blocks stored, the newest is {height}", self.stored))
    }

    /// Checks a line and adds its block to those that wait.
    async fn add(&mut self, number: usize, text: &str) -> Result<(), String> {
        let line: Line = serde_json::from_str(text).map_err(|error| json_fault(&error))?;
        let hash = line.hash.to_ascii_lowercase();
        let before = self.waiting.last().map(|(_, _, head)| head).or(self.head.as_ref());
        let height = line.height;
        if let Some(before) = before {
            if height <= before.height {
                return self.pass(height, &hash).await;
            }
            if height != before.height + 1 {
                return Err(format!("height {height} does not follow {}", before.height));
            }
            let parent = line.previous_hash.map(|hash| hash.to_ascii_lowercase());
            if let Some(parent) = parent.filter(|parent| *parent != before.hash) {
                let parent = if parent.is_empty() { "nothing" } else { &parent };
                let (below, stored) = (before.height, &before.hash);
                return Err(format!("forked: it follows {parent}, the store's block {below} is {stored}"));
            }
        }
        if height == 0 {
            return Err("a block has a height of at least 1".to_owned());
        }
        if hash.is_empty() || !hash.bytes().all(|digit| digit.is_ascii_hexdigit()) {
            return Err(format!("hash {:?}: write it in hex digits", line.hash));
        }
        let rows = line.rows.into_iter().map(StatedRow::read).collect::<Result<Vec<_>, _>>();
        let rows = rows.map_err(|error| format!("decode: {error}"))?;
        let time = read_time(&line.time)?;
        let block = DecodedBlock { chain_id: self.chain_id.clone(), height, hash, time, rows };
        let (block, head) = block.prepare(before).map_err(|error| format!("decode: {error}"))?;
        self.rows += rows_of(&block);
        self.waiting.push((number, block, head));
        Ok(())
    }

    /// Passes a line whose block is there.
    async fn pass(&mut self, height: u64, hash: &str) -> Result<(), String> {
        let waiting = self.waiting.iter().find(|(_, block, _)| block.height == height);
        if waiting.is_none() && !self.hashes.contains_key(&height) {
            let heights = height..=height.saturating_add(HASHES - 1);
            self.hashes = self.store.hashes(heights).await.map_err(|error| error_chain(&error))?;
        }
        let stored = match waiting {
            Some((_, block, _)) => Some(&block.hash),
            None => self.hashes.get(&height),
        };
        match stored {
            Some(stored) if stored == hash => Ok(()),
            Some(stored) => Err(format!("forked: block {height} is {hash}, the store's is {stored}")),
            None => Err(format!("height {height} is below the oldest stored block")),
        }
    }

    /// Stores the blocks that wait: together, or one by one up to a block that is refused.
    async fn store(&mut self) -> Result<(), Failure> {
        let waiting = std::mem::take(&mut self.waiting);
        self.rows = 0;
        let Some((first, _, last)) = waiting.last() else { return Ok(()) };
        let (first, last) = (*first, last.clone());
        let blocks: Vec<NewBlock> = waiting.iter().map(|(_, block, _)| block.clone()).collect();
        match self.append(&blocks).await {
            Ok(()) => {
                self.stored += blocks.len();
                self.head = Some(last);
                Ok(())
            }
            Err(AppendError::Refused(_)) if waiting.len() > 1 => {
                for (number, block, head) in waiting {
                    let stored = self.append(std::slice::from_ref(&block)).await;
                    stored.map_err(|error| self.failure(number, error))?;
                    self.stored += 1;
                    self.head = Some(head);
                }
                Ok(())
            }
            Err(error) => Err(self.failure(first, error)),
        }
    }

    async fn append(&mut self, blocks: &[NewBlock]) -> Result<(), AppendError> {
        let mut outcome = Err(AppendError::Busy);
        for _ in 0..BUSY_RETRIES {
            let start = Instant::now();
            outcome = self.store.append(&self.chain_id, self.head.as_ref(), blocks).await;
            if outcome.is_ok() {
                self.fitting.took(blocks.iter().map(rows_of).sum(), start.elapsed());
            }
            if !matches!(outcome, Err(AppendError::Busy)) {
                break;
            }
            tokio::time::sleep(BUSY_RETRY).await;
        }
        outcome
    }

    fn failure(&self, number: usize, error: AppendError) -> Failure {
        match error {
            AppendError::Refused(row) => self.fault(number, &format!("refused: {row}")),
            AppendError::Store(error) => error.into(),
            error => failed!("{error}; another program stores blocks, repeat the call when it has ended"),
        }
    }

    fn fault(&self, number: usize, fault: &str) -> Failure {
        failed!("{}, line {number}: {fault}", self.file)
    }
}

fn rows_of(block: &NewBlock) -> usize {
    block.rows.values().map(|text| text.rows() as usize).sum()
}
