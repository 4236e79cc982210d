//! The destination of a download: standard output, or a `.part` file that is renamed when it is complete.
//! Tracks the length and the checksum of the bytes written.
//! The name of a part says the checksum of the complete file, so that only a part of the same file is resumed.

use std::{
    fs::{self, File, OpenOptions, TryLockError},
    io::{self, BufReader, ErrorKind, Seek as _, Write as _},
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
};

use crc32c::Crc32cReader;
use rustix::{
    fs::{CWD, RenameFlags, renameat_with},
    io::Errno,
};
use tokio::task::spawn_blocking;

use super::unpack::unpack;
use crate::{
    failure::{Failure, failed},
    terminal::unwritten,
};

const READ_BYTES: usize = 1 << 20;

/// The destination of a download.
#[derive(Debug)]
pub(super) struct Sink {
    /// The unfinished file; `None` is standard output.
    part: Option<Part>,
    /// Number of bytes written so far.
    pub(super) position: u64,
    /// Their checksum.
    pub(super) crc32c: u32,
}

/// An unfinished file. Its lock excludes a second download of the same file.
#[derive(Debug)]
struct Part {
    file: File,
    paths: Paths,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Paths {
    pub(super) whole: PathBuf,
    pub(super) part: PathBuf,
}

impl Paths {
    /// The paths for a complete file `whole` with this checksum, as [`check_output`] allows.
    pub(super) fn new(whole: PathBuf, crc32c: u32, may_replace: bool) -> Result<Self, Failure> {
        check_output(&whole, may_replace)?;
        let mut part = whole.clone().into_os_string();
        part.push(format!(".{crc32c:08x}.part"));
        Ok(Self { whole, part: part.into() })
    }
}

/// Fails when the path of a complete file exists and may not be replaced.
pub(super) fn check_output(whole: &Path, may_replace: bool) -> Result<(), Failure> {
    match fs::metadata(whole) {
        Ok(found) if !found.is_file() => Err(failed!(
            "{} is not a regular file; name another one with -o, where `-` is standard output",
            whole.display()
        )),
        Ok(_) if !may_replace => Err(exists(whole)),
        _ => Ok(()),
    }
}

impl Sink {
    pub(super) fn out() -> Self {
        Self { part: None, position: 0, crc32c: 0 }
    }

    /// Opens the part of a file. What an earlier call has written is kept, and read for its checksum.
    pub(super) async fn open(paths: Paths) -> Result<Self, Failure> {
        let opened = spawn_blocking(move || Self::open_now(paths)).await;
        opened.map_err(|_| Failure::failed("the part of an earlier call cannot be read; remove it"))?
    }

    fn open_now(paths: Paths) -> Result<Self, Failure> {
        let failed = |error: io::Error| cannot_write(&paths.part, &error);
        let options = OpenOptions::new().read(true).write(true).create(true).truncate(false).clone();
        let mut file = options.open(&paths.part).map_err(failed)?;
        // Another download may have finished and renamed it a moment ago: then it is no part any more.
        let is_named = |file: &File| -> io::Result<bool> {
            Ok(file.metadata()?.ino() == fs::metadata(&paths.part)?.ino())
        };
        // Any other error is that of a file system without locks.
        let is_locked = matches!(file.try_lock(), Err(TryLockError::WouldBlock));
        if is_locked || !is_named(&file).unwrap_or(false) {
            return Err(failed!(
                "{} is being written by another download; wait for it, or name another file with -o",
                paths.part.display()
            ));
        }
        let (position, crc32c) = checksum(&mut file).map_err(failed)?;
        Ok(Self { part: Some(Part { file, paths }), position, crc32c })
    }

    /// Whether this is a file, whose bytes can be discarded, and not standard output.
    pub(super) fn is_file(&self) -> bool {
        self.part.is_some()
    }

    pub(super) fn restart(&mut self) -> Result<(), Failure> {
        if self.position == 0 {
            return Ok(());
        }
        let Some(part) = &mut self.part else {
            return Err(Failure::failed("bytes on standard output cannot be replaced; start again"));
        };
        let emptied = part.file.set_len(0).and_then(|()| part.file.rewind());
        emptied.map_err(|error| cannot_write(&part.paths.part, &error))?;
        (self.position, self.crc32c) = (0, 0);
        Ok(())
    }

    pub(super) async fn write(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        if let Some(part) = &mut self.part {
            part.file.write_all(bytes).map_err(|error| cannot_write(&part.paths.part, &error))?;
        } else {
            // On a blocking thread, because a slow reader may block the write for any time.
            let piece = bytes.to_vec();
            let written = spawn_blocking(move || {
                let mut out = io::stdout().lock();
                out.write_all(&piece).and_then(|()| out.flush())
            });
            written.await.map_err(io::Error::other).flatten().map_err(|error| unwritten(&error))?;
        }
        self.position += bytes.len() as u64;
        self.crc32c = crc32c::crc32c_append(self.crc32c, bytes);
        Ok(())
    }

    /// Removes an unusable part. The lock is released last, with the open file.
    pub(super) fn remove(&self) {
        if let Some(part) = &self.part {
            // A part that cannot be removed is overwritten later.
            let _ = fs::remove_file(&part.paths.part);
        }
    }

    /// Syncs a complete file to the disk and renames it.
    pub(super) async fn finish(self, may_replace: bool) -> Result<(), Failure> {
        let Some(part) = self.part else { return Ok(()) };
        let finished = spawn_blocking(move || part.finish(may_replace)).await;
        finished.map_err(|_| Failure::failed("the file cannot be given its name; try again"))?
    }

    /// Unpacks a complete part into one CSV, at the path of the complete file or on standard output, and removes
    /// the part. Returns the number of rows.
    pub(super) async fn unpack(self, csv: Csv, may_replace: bool) -> Result<u64, Failure> {
        let Some(part) = self.part else {
            return Err(Failure::failed("a download on standard output cannot be unpacked"));
        };
        let unpacked = spawn_blocking(move || part.unpack(&csv, may_replace)).await;
        unpacked.map_err(|_| Failure::failed("the download cannot be unpacked; export without --csv"))?
    }
}

/// How a download becomes a CSV.
#[derive(Clone, Debug)]
pub(super) struct Csv {
    /// Its columns in their order; `None` is all.
    pub(super) columns: Option<Vec<String>>,
    pub(super) out: bool,
}

impl Part {
    fn unpack(self, csv: &Csv, may_replace: bool) -> Result<u64, Failure> {
        let Self { mut file, paths: Paths { whole, part } } = self;
        let (zip, columns) = (&mut file, csv.columns.as_deref());
        zip.rewind().map_err(|error| cannot_write(&part, &error))?;
        let zip = zip.try_clone().map_err(|error| cannot_write(&part, &error))?;
        let rows = if csv.out {
            unpack(zip, columns, io::stdout().lock(), "standard output")?
        } else {
            // No name of a CSV, which a recipe's `*.csv` would find if this process died.
            let draft = part.with_extension("csv.part");
            let text = File::create(&draft).map_err(|error| cannot_write(&draft, &error))?;
            let rows = unpack(zip, columns, &text, &draft.display().to_string());
            let finished = rows.and_then(|rows| {
                let text = Self { file: text, paths: Paths { whole, part: draft.clone() } };
                text.finish(may_replace).map(|()| rows)
            });
            finished.inspect_err(|_| _ = fs::remove_file(&draft))?
        };
        // Removed under its lock, which ends with the file.
        fs::remove_file(&part).map_err(|error| cannot_write(&part, &error))?;
        drop(file);
        Ok(rows)
    }

    fn finish(self, may_replace: bool) -> Result<(), Failure> {
        let Self { file, paths: Paths { whole, part } } = self;
        file.sync_all().map_err(|error| cannot_write(&part, &error))?;
        let flags = if may_replace { RenameFlags::empty() } else { RenameFlags::NOREPLACE };
        let renamed = match renameat_with(CWD, &part, CWD, &whole, flags) {
            // Not every file system supports RENAME_NOREPLACE.
            Err(Errno::INVAL | Errno::NOSYS | Errno::NOTSUP) if !whole.exists() => {
                rustix::fs::rename(&part, &whole)
            }
            Err(Errno::INVAL | Errno::NOSYS | Errno::NOTSUP) => Err(Errno::EXIST),
            renamed => renamed,
        };
        match renamed {
            Err(Errno::EXIST) => return Err(exists(&whole)),
            renamed => renamed.map_err(|error| cannot_write(&whole, &error.into()))?,
        }
        // The new name is durable once its folder is synced.
        let folder = whole.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        // The file is whole; a folder may be one that cannot be read, or a file system may not do this.
        let _ = File::open(folder).and_then(|folder| folder.sync_all());
        Ok(())
    }
}

/// Length and checksum of the file at a path.
pub(super) async fn measure(path: &Path) -> Result<(u64, u32), Failure> {
    let opened = path.to_owned();
    let measured = spawn_blocking(move || checksum(&mut File::open(opened)?)).await;
    let measured = measured.map_err(io::Error::other).flatten();
    measured.map_err(|error| failed!("{} is written and cannot be read again ({error})", path.display()))
}

/// Length and checksum of a file; leaves the file offset at the end.
fn checksum(file: &mut File) -> io::Result<(u64, u32)> {
    file.rewind()?;
    let mut reader = BufReader::with_capacity(READ_BYTES, Crc32cReader::new(file));
    let length = io::copy(&mut reader, &mut io::sink())?;
    Ok((length, reader.into_inner().crc32c()))
}

/// Makes a file name from the gateway's, safe in any folder: its last path component, plain characters only.
pub(super) fn plain_name(given: &str) -> Option<String> {
    const LONGEST: usize = 200;
    let last = given.rsplit(['/', '\\']).next().unwrap_or_default();
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '.' | '_' | '-');
    let plain: String =
        last.chars().take(LONGEST).map(|letter| if is_plain(letter) { letter } else { '_' }).collect();
    let name = plain.trim_start_matches(['.', '-']);
    (!name.is_empty()).then(|| name.to_owned())
}

fn exists(whole: &Path) -> Failure {
    failed!("{} is there already; replace it with --force, or name another file with -o", whole.display())
}

fn cannot_write(path: &Path, error: &io::Error) -> Failure {
    let next = match error.kind() {
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded => "make room on the disk",
        ErrorKind::NotFound => "make its folder, or name another file with -o",
        _ => "name another file with -o",
    };
    failed!("cannot write {} ({error}); {next}", path.display())
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn open(folder: &Path) -> Result<Sink, Failure> {
        Sink::open(Paths::new(folder.join("f.zip"), 0xab, false)?).await
    }

    #[tokio::test]
    async fn a_file_that_came_meanwhile_is_not_replaced() {
        for (force, kept) in [(false, "old"), (true, "new")] {
            let folder = tempfile::tempdir().unwrap();
            let mut sink = open(folder.path()).await.unwrap();
            sink.write(b"new").await.unwrap();
            fs::write(folder.path().join("f.zip"), "old").unwrap();
            assert_eq!(sink.finish(force).await.is_ok(), force);
            assert_eq!(fs::read_to_string(folder.path().join("f.zip")).unwrap(), kept);
        }
    }

    #[test]
    fn a_name_from_outside_has_no_path_and_nothing_odd() {
        for (given, name) in [
            ("n-trades-1-2.zip", Some("n-trades-1-2.zip")),
            ("../../etc/passwd", Some("passwd")),
            ("C:\\a\\b.zip", Some("b.zip")),
            ("/", None),
            ("..", None),
            ("--force", Some("force")),
            (".bashrc", Some("bashrc")),
            ("a b\n\u{e9}.zip", Some("a_b__.zip")),
        ] {
            assert_eq!(plain_name(given).as_deref(), name, "{given}");
        }
        assert!(plain_name(&"a".repeat(1000)).unwrap().len() <= 200);
    }
}
