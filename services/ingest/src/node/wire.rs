//! The replies of a consensus node, as far as they are read: CometBFT 0.37, 0.38 and 1.x.

use std::borrow::Cow;

use serde::{Deserialize, de::IgnoredAny};

/// The result of `block`.
#[derive(Debug, Deserialize)]
pub(crate) struct BlockResult<'a> {
    #[serde(borrow)]
    pub(crate) block_id: BlockId<'a>,
    #[serde(borrow)]
    pub(crate) block: Option<Block<'a>>,
}

/// The id of a block; the hash is empty where there is no block.
#[derive(Debug, Default, Deserialize)]
pub(crate) struct BlockId<'a> {
    #[serde(borrow, default)]
    pub(crate) hash: Cow<'a, str>,
}

#[derive(Debug, Deserialize)]
pub(crate) struct Block<'a> {
    #[serde(borrow)]
    pub(crate) header: Header<'a>,
    #[serde(borrow)]
    pub(crate) data: Data<'a>,
}

#[derive(Debug, Deserialize)]
pub(crate) struct Header<'a> {
    #[serde(borrow)]
    pub(crate) chain_id: Cow<'a, str>,
    #[serde(borrow)]
    pub(crate) height: Cow<'a, str>,
    #[serde(borrow)]
    pub(crate) time: Cow<'a, str>,
    #[serde(borrow)]
    pub(crate) last_block_id: Option<BlockId<'a>>,
}

/// The transactions, base64.
#[derive(Debug, Deserialize)]
pub(crate) struct Data<'a> {
    #[serde(borrow)]
    pub(crate) txs: Option<Vec<Cow<'a, str>>>,
}

/// Of which block a result of `block_results` is, and of how many transactions.
#[derive(Debug, Deserialize)]
pub(super) struct ResultsOutline {
    pub(super) height: String,
    #[serde(default)]
    pub(super) txs_results: Option<Vec<IgnoredAny>>,
}

/// The result of `block_results`. 0.37 has events of the beginning and the end of a block, later versions those
/// of the whole block.
#[derive(Debug, Deserialize)]
pub(crate) struct BlockResults<'a> {
    #[serde(borrow)]
    pub(crate) txs_results: Option<Vec<TxResult<'a>>>,
    #[serde(borrow)]
    pub(crate) begin_block_events: Option<Vec<Event<'a>>>,
    #[serde(borrow)]
    pub(crate) end_block_events: Option<Vec<Event<'a>>>,
    #[serde(borrow)]
    pub(crate) finalize_block_events: Option<Vec<Event<'a>>>,
}

#[derive(Debug, Deserialize)]
pub(crate) struct TxResult<'a> {
    #[serde(default)]
    pub(crate) code: u32,
    #[serde(borrow)]
    pub(crate) events: Option<Vec<Event<'a>>>,
}

#[derive(Debug, Deserialize)]
pub(crate) struct Event<'a> {
    #[serde(rename = "type", borrow)]
    pub(crate) kind: Cow<'a, str>,
    #[serde(borrow)]
    pub(crate) attributes: Option<Vec<Attribute<'a>>>,
}

#[derive(Debug, Deserialize)]
pub(crate) struct Attribute<'a> {
    #[serde(borrow)]
    pub(crate) key: Cow<'a, str>,
    #[serde(borrow)]
    pub(crate) value: Option<Cow<'a, str>>,
}
