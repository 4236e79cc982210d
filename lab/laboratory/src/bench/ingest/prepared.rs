//! The rows of a chain as `ingest` stores them, in one file for each table, for psql.

use std::{collections::BTreeMap, io::Write as _};

use mesh::failure::{Failure, cannot};
use mesh_ingest::{DecodedBlock, Decoder, EVENT_PREFIX, FetchedBlock};
use mesh_store::append::tables;
use tempfile::NamedTempFile;

use crate::generated_chain::ChainArgs;

/// The rows of a chain.
pub(super) struct PreparedRows {
    /// Arguments of psql that copy all of them, in the order in which `ingest` writes tables.
    pub(super) copies: Vec<String>,
    /// Their number, blocks included.
    pub(super) rows: u64,
    /// Keeps the files.
    _files: Vec<NamedTempFile>,
}

impl PreparedRows {
    /// Decodes the first blocks of a chain as `ingest` does.
    pub(super) async fn of(chain: &ChainArgs) -> Result<Self, Failure> {
        let decoder = Decoder::Events(EVENT_PREFIX.to_owned());
        let (mut texts, mut rows, mut head) = (BTreeMap::<&str, Vec<u8>>::new(), 0, None);
        let mut blocks = Vec::new();
        for height in 1..=chain.first {
            let [block, results] = chain.texts(height)?;
            let fetched =
                FetchedBlock::read(block, results).map_err(|error| cannot("read a block", &error))?;
            let decoded = decoder.decode(&fetched).await.map_err(|error| cannot("decode a block", &error))?;
            let decoded = DecodedBlock::new(&fetched, decoded).prepare(head.as_ref());
            let (block, after) = decoded.map_err(|error| cannot("prepare a block", &error))?;
            for (table, text) in &block.rows {
                texts.entry(table).or_default().extend_from_slice(text.bytes());
                rows += text.rows();
            }
            blocks
                .extend_from_slice(format!("{}\t{}\t{}\n", block.time, block.height, block.hash).as_bytes());
            head = Some(after);
        }
        let name = format!("{}\n", head_chain_id(chain)?).into_bytes();
        let columns = tables().iter().map(|table| {
            let names: Vec<_> = table.columns.iter().map(|column| format!("\"{}\"", column.name)).collect();
            (table.name, names.join(", "))
        });
        let mut all = vec![("chain", "id".to_owned(), name)];
        all.extend(columns.filter_map(|(table, columns)| Some((table, columns, texts.remove(table)?))));
        all.push(("blocks", "block_time, height, hash".to_owned(), blocks));
        let (mut copies, mut files) = (Vec::new(), Vec::new());
        for (table, columns, text) in all {
            let written = NamedTempFile::new().and_then(|mut file| file.write_all(&text).map(|()| file));
            let file = written.map_err(|error| cannot("write rows", &error))?;
            copies.push(format!("\\copy {table} ({columns}) from '{}'", file.path().display()));
            files.push(file);
        }
        Ok(Self { copies, rows: rows + chain.first, _files: files })
    }
}

fn head_chain_id(chain: &ChainArgs) -> Result<String, Failure> {
    let [block, results] = chain.texts(1)?;
    let block = FetchedBlock::read(block, results).map_err(|error| cannot("read a block", &error))?;
    Ok(block.chain_id)
}
