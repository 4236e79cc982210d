//! Reads a block from the replies of a node.

use serde::Deserialize;
use serde_json::value::RawValue;

use super::{
    fetch_error::FetchError,
    wire::{BlockResult, ResultsOutline},
};
use crate::block::FetchedBlock;

impl FetchedBlock {
    /// Reads what is needed of a block from the results of `block` and `block_results`.
    ///
    /// # Errors
    /// The texts are not those of a block and its results, or the node has no such block.
    pub fn read(block: Box<RawValue>, results: Box<RawValue>) -> Result<Self, FetchError> {
        let parsed: BlockResult<'_> = parse(&block)?;
        let Some(content) = parsed.block.filter(|_| !parsed.block_id.hash.is_empty()) else {
            return Err(FetchError::TooHigh);
        };
        let header = content.header;
        let (Ok(height), Ok(time)) = (header.height.parse(), header.time.parse::<jiff::Timestamp>()) else {
            return Err(FetchError::unreadable("block"));
        };
        let of: ResultsOutline = parse(&results)?;
        if of.height != header.height {
            let text = format!("sent the results of block {} for {}", of.height, header.height);
            return Err(FetchError::Unavailable(text));
        }
        if of.txs_results.map_or(0, |of_txs| of_txs.len()) != content.data.txs.map_or(0, |txs| txs.len()) {
            return Err(FetchError::NoResultsYet);
        }
        let parent = header.last_block_id.map(|id| id.hash.to_ascii_lowercase());
        Ok(Self {
            height,
            hash: parsed.block_id.hash.to_ascii_lowercase(),
            parent: parent.unwrap_or_default(),
            chain_id: header.chain_id.into_owned(),
            time_text: header.time.into_owned(),
            time: mesh_store::TimeUs(time.as_nanosecond().div_euclid(1000) as i64),
            block,
            results,
        })
    }
}

fn parse<'a, T: Deserialize<'a>>(text: &'a RawValue) -> Result<T, FetchError> {
    serde_json::from_str(text.get())
        .map_err(|error| FetchError::Unavailable(format!("sent an unreadable reply: {error}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_are_those_of_the_block() {
        let raw = |text: String| RawValue::from_string(text).unwrap();
        let header = r#"{"chain_id":"c","height":"13","time":"2026-01-01T00:00:00Z","last_block_id":null}"#;
        let block = format!(
            r#"{{"block_id":{{"hash":"AB"}},"block":{{"header":{header},"data":{{"txs":["YQ=="]}}}}}}"#
        );
        let read = |results: &str| FetchedBlock::read(raw(block.clone()), raw(results.to_owned()));
        assert_eq!(read(r#"{"height":"13","txs_results":[{"code":0}]}"#).unwrap().height, 13);
        let other = read(r#"{"height":"12","txs_results":[{"code":0}]}"#).unwrap_err();
        assert_eq!(other, FetchError::Unavailable("sent the results of block 12 for 13".to_owned()));
        for without in [r#"{"height":"13","txs_results":null}"#, r#"{"height":"13"}"#] {
            assert_eq!(read(without).unwrap_err(), FetchError::NoResultsYet);
        }
        assert!(matches!(read("{}").unwrap_err(), FetchError::Unavailable(_)));
    }
}
