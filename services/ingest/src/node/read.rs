//! Reads a block from the replies of a node.

use serde::Deserialize;
use serde_json::value::RawValue;

use super::{
    fetch_error::FetchError,
    wire::{BlockResult, ResultsOutline},
};
use crate::block::{FetchedBlock, read_time};

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
        let Ok(height) = header.height.parse::<u64>() else {
            return Err(FetchError::unreadable("block"));
        };
        let time = read_time(&header.time).map_err(|unstorable| {
            FetchError::Unavailable(format!("sent block {height}, whose {unstorable}"))
        })?;
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
            time,
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

    #[test]
    fn a_time_that_cannot_be_stored_is_named_with_its_block() {
        let raw = |text: String| RawValue::from_string(text).unwrap();
        let read = |height: &str, time: &str| {
            let header = format!(r#"{{"chain_id":"c","height":"{height}","time":"{time}"}}"#);
            let block =
                format!(r#"{{"block_id":{{"hash":"AB"}},"block":{{"header":{header},"data":{{}}}}}}"#);
            FetchedBlock::read(raw(block), raw(format!(r#"{{"height":"{height}"}}"#)))
        };
        assert_eq!(read("13", "2026-01-01T00:00:00.123456789Z").unwrap().time.0, 1_767_225_600_123_456);
        assert_eq!(read("x", "2026-01-01T00:00:00Z").unwrap_err(), FetchError::unreadable("block"));
        for time in ["2262-01-01T00:00:00Z", &"9".repeat(65)] {
            let message = read("13", time).unwrap_err().to_string();
            let shown = &time[..time.len().min(64)];
            let expected = format!("the node sent block 13, whose time \"{shown}\" cannot be stored: ");
            assert!(message.starts_with(&expected), "{message}");
        }
    }
}
