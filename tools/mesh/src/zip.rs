//! Reads ZIP files of CSV with libraries that share no code with `mesh-history`.

use std::{
    fs::File,
    io::{self, BufReader, Read},
};

use async_zip::{
    base::read1::{ZipOptions, seek::ZipArchiveReader},
    error::ZipError,
};
use futures_util::{
    AsyncRead, AsyncReadExt,
    io::{AllowStdIo, BufReader as AsyncBufReader},
};
use tokio::runtime::Handle;

pub(crate) const BUFFER_BYTES: usize = 1 << 20;

type ZipFile = AsyncBufReader<AllowStdIo<File>>;

pub(crate) struct Members {
    archive: ZipArchiveReader<ZipFile>,
    runtime: Handle,
}

impl Members {
    /// Opens a ZIP. Blocks the thread, as all functions here do; needs a runtime.
    pub(crate) fn open(zip: File) -> Result<Self, ZipError> {
        let (zip, runtime) = (AsyncBufReader::new(AllowStdIo::new(zip)), Handle::current());
        let archive = ZipArchiveReader::open_with_options(zip, ZipOptions::untrusted());
        Ok(Self { archive: runtime.block_on(archive)?, runtime })
    }

    pub(crate) fn count(&self) -> usize {
        self.archive.cdrs().len()
    }

    pub(crate) fn name(&self, number: usize) -> &str {
        self.archive.cdrs()[number].insecure_file_name.as_str().unwrap_or_default()
    }

    /// The rows of a member. Its length and checksum are checked at its end.
    pub(crate) fn rows(&mut self, number: usize) -> Result<csv::Reader<impl Read>, ZipError> {
        let member = self.runtime.block_on(self.archive.file(number))?;
        let text = BufReader::with_capacity(BUFFER_BYTES, Blocking(member, &self.runtime));
        Ok(csv::ReaderBuilder::new().from_reader(text))
    }
}

/// Reads a member of a ZIP on this thread.
struct Blocking<'a, R>(R, &'a Handle);

impl<R: AsyncRead + Unpin> Read for Blocking<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.1.block_on(self.0.read(buffer))
    }
}
