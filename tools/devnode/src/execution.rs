//! The execution of blocks: the demo network's rows as events, the results of transactions, and the rules against
//! spam, which rows may change.

use std::{io, time::Duration};

use bytes::Bytes;
use jiff::Timestamp;
use mesh_demo::{RowEvent, Simulator, TimeUs, Transaction};
use mesh_transaction::{Admission, Block, Refusal, SpamRules, TxHash, VALIDATION_FAILED};
use prost::Message as _;
use proto_msgs::v2::{Transaction as SignedTransaction, transaction::From as Sender};
use tendermint_proto::v0_38::abci::{Event, EventAttribute, ResponseFinalizeBlock};

use crate::{
    answers::refused,
    base::save,
    stored::{StoredBlock, StoredRules, StoredTx, StoredWork, deflate},
};

/// Number of blocks between two stored states of the demo network. A restart executes those since the newest again.
const SAVE_EVERY: u64 = 100;

/// The state that the result of the next block depends on, beside the rules against spam.
#[derive(Clone, Debug)]
pub(crate) struct Execution {
    /// The rules since the newest block.
    pub(crate) rules: SpamRules,
    /// Without one, blocks have no events and commands no effect.
    pub(crate) demo: Option<Simulator>,
}

impl Execution {
    /// Executes the admitted ones of a block's transactions. Returns the block as it is to be stored.
    pub(crate) fn run(
        &mut self,
        block: &Block,
        previous_hash: &str,
        txs: Vec<(Bytes, Result<Admission, Refusal>)>,
    ) -> io::Result<StoredBlock> {
        let mut stored = StoredBlock { previous_hash: previous_hash.to_owned(), ..StoredBlock::new(block) };
        let mut response = ResponseFinalizeBlock::default();
        for (tx, admission) in txs {
            response.tx_results.push(admission.as_ref().err().map(refused).unwrap_or_default());
            let work = admission.ok().map(|Admission { height, bits }| StoredWork { height, bits });
            stored.txs.push(StoredTx { tx, has_succeeded: false, work });
        }
        if let Some(made) = self.simulate(&stored) {
            let rows: Vec<RowEvent> = made.rows.events().collect();
            self.rules = rules_after(self.rules, &rows);
            response.events = rows.into_iter().map(event).collect();
            let admitted = response.tx_results.iter_mut().filter(|result| result.code == 0);
            for (result, executed) in admitted.zip(made.executed) {
                result.events = executed.rows.events().map(event).collect();
                if let Some(failure) = executed.failure {
                    (result.code, result.log) = (VALIDATION_FAILED, failure);
                }
            }
        }
        for (tx, result) in stored.txs.iter_mut().zip(&response.tx_results) {
            tx.has_succeeded = result.code == 0;
        }
        stored.results = deflate(&response.encode_to_vec())?;
        if let Some(demo) = self.demo.as_ref().filter(|_| block.height.is_multiple_of(SAVE_EVERY)) {
            stored.demo = save(demo)?;
        }
        stored.rules = Some(StoredRules::new(&self.rules));
        Ok(stored)
    }

    /// Executes a stored block again, for its effect on the state.
    pub(crate) fn replay(&mut self, stored: &StoredBlock) {
        self.simulate(stored);
        self.rules = stored.rules();
    }

    fn simulate(&mut self, stored: &StoredBlock) -> Option<mesh_demo::Block> {
        let demo = self.demo.as_mut()?;
        let read = |tx: &StoredTx| SignedTransaction::decode(tx.tx.clone()).unwrap_or_default();
        let signed: Vec<SignedTransaction> = stored.admitted().map(read).collect();
        let transactions: Vec<Transaction<'_>> = stored
            .admitted()
            .zip(&signed)
            .map(|(tx, signed)| Transaction {
                hash: TxHash::of(&tx.tx).to_string().to_ascii_lowercase(),
                sender: match &signed.from {
                    Some(Sender::PubKey(key)) => key.to_ascii_lowercase(),
                    _ => String::new(),
                },
                input: &signed.input_data,
            })
            .collect();
        let time_us = i64::try_from(stored.time_ns / 1_000).unwrap_or(i64::MAX);
        Some(demo.decided_block(TimeUs(time_us), &stored.hash, &transactions))
    }
}

/// A row as an event that `ingest` turns into the row.
fn event(row: RowEvent) -> Event {
    let attributes = row.values.into_iter().map(|(key, value)| EventAttribute { key, value, index: false });
    Event { r#type: format!("mesh.{}", row.table), attributes: attributes.collect() }
}

/// The rules after rows of network parameters and epochs.
fn rules_after(rules: SpamRules, rows: &[RowEvent]) -> SpamRules {
    let value = |row: &RowEvent, column: &str| {
        row.values.iter().find(|(name, _)| name == column).map(|(_, value)| value.clone())
    };
    let of_table = |table: &'static str| rows.iter().filter(move |row| row.table == table);
    let parameter = |key: &str| {
        let row = of_table("network_parameters").rfind(|row| value(row, "key").as_deref() == Some(key));
        row.and_then(|row| value(row, "value")).or_else(|| present(&rules, key))
    };
    let time = |row: &RowEvent, column| value(row, column)?.parse::<Timestamp>().ok();
    let length = |row: &RowEvent| {
        Duration::try_from(time(row, "expire_time")?.duration_since(time(row, "start_time")?)).ok()
    };
    // The rows of an epoch that ends precede that of the next one.
    let epoch = of_table("epochs").next_back().and_then(length);
    let (changed, wrong) = SpamRules::stored(parameter, epoch);
    for parameter in wrong {
        tracing::warn!("{parameter}, its default holds");
    }
    SpamRules { bar: epoch.map_or(rules.bar, |_| changed.bar), ..changed }
}

/// The text of a parameter in force.
fn present(rules: &SpamRules, key: &str) -> Option<String> {
    Some(match key {
        "spam.pow.difficulty" => rules.difficulty.to_string(),
        "spam.pow.numberOfPastBlocks" => rules.past_blocks.to_string(),
        "spam.pow.numberOfTxPerBlock" => rules.tx_per_block.to_string(),
        "spam.pow.increaseDifficulty" => u32::from(rules.increasing).to_string(),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(table: &'static str, values: &[(&str, &str)]) -> RowEvent {
        let values = values.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        RowEvent { table, values: values.collect() }
    }

    #[test]
    fn rows_change_the_rules_that_they_name() {
        let rules = SpamRules { difficulty: 9, past_blocks: 50, increasing: true, ..SpamRules::default() };
        assert_eq!(rules_after(rules, &[]), rules);
        let parameter = |key, value| row("network_parameters", &[("key", key), ("value", value)]);
        let epoch = |end| row("epochs", &[("start_time", "2026-01-01 00:00:00.5+00"), ("expire_time", end)]);
        let rows = [
            parameter("spam.pow.difficulty", "3"),
            parameter("spam.pow.difficulty", "4"),
            parameter("other", "5"),
            epoch("2026-01-01 00:10:00.5+00"),
            epoch("2026-01-01 02:40:00.5+00"),
        ];
        let bar = Duration::from_secs(200);
        assert_eq!(rules_after(rules, &rows), SpamRules { difficulty: 4, bar, ..rules });
    }
}
