//! A chain file without a node: to create one, and to see whether it continues a store.

use std::{io, path::Path};

use crate::{
    base::Base,
    file::{BlockFile, BlockReader},
    open::{Blocks, OpenChain},
};

/// An opened chain file. A node can open it once this is dropped.
#[derive(Debug)]
pub struct ChainFile {
    base: Base,
    blocks: Blocks,
    reader: BlockReader,
}

impl ChainFile {
    /// Creates the file of a chain without blocks, in place of any other.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn create(path: &Path, base: &Base) -> io::Result<()> {
        BlockFile::create(path, base)
    }

    /// Opens a file; `None` when there is none, or one of another release.
    ///
    /// # Errors
    /// The file cannot be read, or a node has it open.
    pub fn open(path: &Path) -> io::Result<Option<Self>> {
        let Some(OpenChain { file, base, blocks, .. }) = OpenChain::read(path, "", |_| {})? else {
            return Ok(None);
        };
        Ok(Some(Self { reader: file.reader()?, base, blocks }))
    }

    /// What the chain began with.
    pub fn base(&self) -> &Base {
        &self.base
    }

    /// The height of the newest block, or of the base.
    pub fn height(&self) -> u64 {
        self.blocks.head().0
    }

    /// The hash of a block of the file, or of the base.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn hash_at(&self, height: u64) -> io::Result<Option<String>> {
        if height == self.base.height() {
            return Ok(Some(self.base.hash().to_owned()));
        }
        let Some(frame) = self.blocks.frame(height) else { return Ok(None) };
        Ok(Some(self.reader.block(frame)?.hash))
    }
}
