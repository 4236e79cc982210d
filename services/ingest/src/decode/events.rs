//! The built-in decoder: each event of a type with the prefix and a table's name is a row of that table (N5).

use std::{borrow::Cow, sync::Arc};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use mesh_store::append::{ColumnKind, RowFault, table};
use serde_json::Value;
use sha2::{Digest, Sha256};

use super::DecodeError;
use crate::{
    block::{Cell, FetchedBlock, Row},
    node::wire::{Attribute, BlockResult, BlockResults, Event},
};

/// Attributes that application frameworks add to every event.
const OF_FRAMEWORKS: [&str; 2] = ["mode", "msg_index"];

/// The rows of a block.
pub(super) fn decode(block: &FetchedBlock, prefix: &str) -> Result<Vec<Row>, DecodeError> {
    let unreadable = |error: serde_json::Error| DecodeError::Unreadable(error.to_string());
    let results: BlockResults<'_> = serde_json::from_str(block.results.get()).map_err(unreadable)?;
    let of_block = results.finalize_block_events.unwrap_or_default();
    let (begin, end): (Vec<_>, Vec<_>) = of_block.into_iter().partition(begins_block);
    let begin = results.begin_block_events.unwrap_or_default().into_iter().chain(begin);
    let end = end.into_iter().chain(results.end_block_events.unwrap_or_default());
    let mut rows = Vec::new();
    add(&mut rows, begin, prefix, || None)?;
    let of_txs = results.txs_results.unwrap_or_default();
    if of_txs.iter().any(|result| result.code == 0 && result.events.is_some()) {
        let content: BlockResult<'_> = serde_json::from_str(block.block.get()).map_err(unreadable)?;
        let txs = content.block.and_then(|block| block.data.txs).unwrap_or_default();
        // As many as there are results: see `FetchedBlock::read`.
        for (tx, result) in txs.iter().zip(of_txs).filter(|(_, result)| result.code == 0) {
            let mut hash = None;
            let events = result.events.unwrap_or_default().into_iter();
            add(&mut rows, events, prefix, || hash.get_or_insert_with(|| hash_of(tx)).clone())?;
        }
    }
    add(&mut rows, end, prefix, || None)?;
    Ok(rows)
}

/// Whether an event of the whole block came before those of its transactions.
fn begins_block(event: &Event<'_>) -> bool {
    let mut attributes = event.attributes.iter().flatten();
    attributes.any(|attribute| attribute.key == "mode" && attribute.value.as_deref() == Some("BeginBlock"))
}

/// The SHA-256 of a transaction, lower-case hex; `None` when its base64 cannot be read.
fn hash_of(tx: &str) -> Option<Arc<str>> {
    let tx = STANDARD.decode(tx).ok()?;
    Some(hex::encode(Sha256::digest(tx)).into())
}

fn add<'a>(
    rows: &mut Vec<Row>,
    events: impl Iterator<Item = Event<'a>>,
    prefix: &str,
    mut tx_hash: impl FnMut() -> Option<Arc<str>>,
) -> Result<(), DecodeError> {
    for event in events {
        let Some(name) = event.kind.strip_prefix(prefix) else { continue };
        let mut row = row(name, event.attributes.as_deref().unwrap_or_default())?;
        row.tx_hash = tx_hash();
        rows.push(row);
    }
    Ok(())
}

fn row(name: &str, attributes: &[Attribute<'_>]) -> Result<Row, RowFault> {
    let Some(table) = table(name) else {
        return Err(RowFault::new(name, None, None, "there is no such table, or it is not a decoder's"));
    };
    let mut row = Row::new(table);
    for Attribute { key, value } in attributes {
        if OF_FRAMEWORKS.contains(&key.as_ref()) {
            continue;
        }
        let value = unquoted(value.as_deref().unwrap_or_default());
        let Some(index) = table.column(key) else {
            return Err(RowFault::new(name, Some(key), Some(&value), "there is no such column"));
        };
        if row.cells[index] != Cell::Absent {
            return Err(RowFault::new(name, Some(key), Some(&value), "the column is given twice"));
        }
        row.cells[index] = Cell::Text(match table.columns[index].kind {
            ColumnKind::TextArray => array(value),
            _ => value.into_owned(),
        });
    }
    Ok(row)
}

/// A value; the text inside when it is a whole JSON string, as typed events have it.
fn unquoted(value: &str) -> Cow<'_, str> {
    match value.strip_prefix('"').and_then(|_| serde_json::from_str(value).ok()) {
        Some(text) => Cow::Owned(text),
        None => Cow::Borrowed(value),
    }
}

/// The literal of an array of texts, which may be stated as a JSON array.
pub(super) fn array(value: Cow<'_, str>) -> String {
    match serde_json::from_str::<Vec<Value>>(&value) {
        Ok(items) => literal(&items),
        Err(_) => value.into_owned(),
    }
}

/// PostgreSQL's literal of an array of texts.
pub(super) fn literal(items: &[Value]) -> String {
    let item = |item: &Value| match item {
        Value::Null => "NULL".to_owned(),
        Value::String(text) => format!("\"{}\"", text.replace('\\', r"\\").replace('"', "\\\"")),
        other => format!("\"{}\"", other.to_string().replace('\\', r"\\").replace('"', "\\\"")),
    };
    format!("{{{}}}", items.iter().map(item).collect::<Vec<_>>().join(","))
}
