//! The destination of a download: standard output, or a `.part` file and a note (JSON) that identifies the
//! file it belongs to. Tracks the length and the checksum of the bytes written.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, ErrorKind, Read as _, Seek as _, Write as _},
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
};

use rustix::{
    fs::{CWD, RenameFlags, renameat_with},
    io::Errno,
};
use serde::{Deserialize, Serialize};
use tokio::task::spawn_blocking;

use super::source::FileInfo;
use crate::failure::Failure;

const READ_BYTES: usize = 1 << 20;

/// The destination of a download.
#[derive(Debug)]
pub(super) struct Sink {
    target: Target,
    /// Number of bytes written so far.
    pub(super) position: u64,
    /// Their checksum.
    pub(super) crc32c: u32,
}

#[derive(Debug)]
enum Target {
    Out,
    File(Part),
}

/// An unfinished file. Its lock excludes a second download of the same file.
#[derive(Debug)]
struct Part {
    file: File,
    paths: Paths,
}

/// The paths of a download.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Paths {
    /// The complete file.
    pub(super) whole: PathBuf,
    /// The unfinished file.
    pub(super) part: PathBuf,
    /// The note of the unfinished file.
    note: PathBuf,
}

/// Identifies the file that a part belongs to. Equal tag, length and checksum mean equal bytes, also from
/// another gateway.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
struct PartNote {
    /// The address it comes from; informative only.
    url: String,
    etag: String,
    bytes: u64,
    crc32c: u32,
}

/// The state of the part when a sink was opened.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum PartState {
    /// No usable part.
    Nothing,
    /// The beginning of this file.
    Beginning,
    /// The beginning of another file, now removed.
    Other,
}

impl Paths {
    /// The paths for a complete file `whole`; fails when it exists and may not be replaced.
    pub(super) fn new(whole: PathBuf, may_replace: bool) -> Result<Self, Failure> {
        let with_ending = |ending: &str| {
            let mut name = whole.clone().into_os_string();
            name.push(ending);
            PathBuf::from(name)
        };
        let paths = Self { part: with_ending(".part"), note: with_ending(".part.json"), whole };
        paths.refuse_existing(may_replace)?;
        Ok(paths)
    }

    fn refuse_existing(&self, may_replace: bool) -> Result<(), Failure> {
        let name = self.whole.display();
        match fs::metadata(&self.whole) {
            Ok(found) if !found.is_file() => Err(Failure::failed(format!(
                "{name} is no ordinary file; name another one with -o, where `-` is standard output"
            ))),
            Ok(_) if !may_replace => Err(exists(&self.whole)),
            _ => Ok(()),
        }
    }
}

impl Sink {
    /// Standard output.
    pub(super) fn out() -> Self {
        Self { target: Target::Out, position: 0, crc32c: 0 }
    }

    /// Opens the part of a file. One that belongs to the same file is kept, and read to compute its checksum.
    pub(super) async fn open(paths: Paths, info: &FileInfo, url: &str) -> Result<(Self, PartState), Failure> {
        let note = PartNote::new(info, url);
        let opened = spawn_blocking(move || Self::open_now(paths, &note)).await;
        opened.map_err(|_| Failure::failed("the part of an earlier call cannot be read; remove it"))?
    }

    fn open_now(paths: Paths, note: &PartNote) -> Result<(Self, PartState), Failure> {
        let failed = |error: io::Error| cannot_write(&paths.part, &error);
        let options = OpenOptions::new().read(true).write(true).create(true).truncate(false).clone();
        let mut file = options.open(&paths.part).map_err(failed)?;
        // Another download may have finished and renamed it a moment ago: then it is no part any more.
        let is_named = |file: &File| -> io::Result<bool> {
            Ok(file.metadata()?.ino() == fs::metadata(&paths.part)?.ino())
        };
        if file.try_lock().is_err() || !is_named(&file).unwrap_or(false) {
            return Err(Failure::failed(format!(
                "{} is being written by another download; wait for it, or name another file with -o",
                paths.part.display()
            )));
        }
        let part_bytes = file.metadata().map_err(failed)?.len();
        let is_same = fs::read(&paths.note)
            .ok()
            .and_then(|text| serde_json::from_slice::<PartNote>(&text).ok())
            .is_some_and(|old| old.is_same(note));
        if is_same && (1..=note.bytes).contains(&part_bytes) {
            let (position, crc32c) = checksum(&mut file).map_err(failed)?;
            return Ok((
                Self { target: Target::File(Part { file, paths }), position, crc32c },
                PartState::Beginning,
            ));
        }
        let mut sink = Self { target: Target::File(Part { file, paths }), position: 0, crc32c: 0 };
        sink.begin(note)?;
        Ok((sink, if part_bytes > 0 { PartState::Other } else { PartState::Nothing }))
    }

    /// Whether this is a file, whose bytes can be discarded, and not standard output.
    pub(super) fn is_file(&self) -> bool {
        matches!(self.target, Target::File(_))
    }

    /// Empties the file and writes the note of the file that follows.
    pub(super) fn restart(&mut self, info: &FileInfo, url: &str) -> Result<(), Failure> {
        self.begin(&PartNote::new(info, url))
    }

    fn begin(&mut self, note: &PartNote) -> Result<(), Failure> {
        let Target::File(part) = &mut self.target else {
            return Err(Failure::failed("what went to standard output cannot be taken back; start again"));
        };
        // Emptied before the note changes, so that a note never describes bytes of another file.
        let emptied = part.file.set_len(0).and_then(|()| part.file.rewind());
        emptied.map_err(|error| cannot_write(&part.paths.part, &error))?;
        let text = serde_json::to_vec(note).map_err(|error| Failure::failed(error.to_string()))?;
        fs::write(&part.paths.note, text).map_err(|error| cannot_write(&part.paths.note, &error))?;
        (self.position, self.crc32c) = (0, 0);
        Ok(())
    }

    /// Adds bytes.
    pub(super) async fn write(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        match &mut self.target {
            Target::File(part) => {
                part.file.write_all(bytes).map_err(|error| cannot_write(&part.paths.part, &error))?;
            }
            Target::Out => {
                // On a blocking thread, because a slow reader may block the write for any time.
                let piece = bytes.to_vec();
                let written = spawn_blocking(move || {
                    let mut out = io::stdout().lock();
                    out.write_all(&piece).and_then(|()| out.flush())
                });
                written.await.map_err(io::Error::other).flatten().map_err(|error| {
                    Failure::failed(format!("cannot write to standard output ({error}); start again"))
                })?;
            }
        }
        self.position += bytes.len() as u64;
        self.crc32c = crc32c::crc32c_append(self.crc32c, bytes);
        Ok(())
    }

    /// Removes an unusable part.
    pub(super) fn remove(&mut self) {
        if let Target::File(part) = &self.target {
            // The lock is released last, with the open file. A part that cannot be removed is overwritten
            // later.
            let _ = fs::remove_file(&part.paths.part);
            let _ = fs::remove_file(&part.paths.note);
        }
    }

    /// Syncs a complete file to the disk and renames it.
    pub(super) async fn finish(self, may_replace: bool) -> Result<(), Failure> {
        let Target::File(part) = self.target else { return Ok(()) };
        let finished = spawn_blocking(move || part.finish(may_replace)).await;
        finished.map_err(|_| Failure::failed("the file cannot be given its name; try again"))?
    }
}

impl Part {
    fn finish(self, may_replace: bool) -> Result<(), Failure> {
        let Self { file, paths: Paths { whole, part, note } } = self;
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
        File::open(folder)
            .and_then(|folder| folder.sync_all())
            .map_err(|error| cannot_write(&whole, &error))?;
        // A note that cannot be removed does no harm.
        let _ = fs::remove_file(note);
        Ok(())
    }
}

impl PartNote {
    fn new(info: &FileInfo, url: &str) -> Self {
        Self { url: url.to_owned(), etag: info.etag.clone(), bytes: info.bytes, crc32c: info.crc32c }
    }

    fn is_same(&self, other: &Self) -> bool {
        (&self.etag, self.bytes, self.crc32c) == (&other.etag, other.bytes, other.crc32c)
    }
}

/// Length and checksum of a file; leaves the file offset at the end.
fn checksum(file: &mut File) -> io::Result<(u64, u32)> {
    let (mut length, mut crc32c) = (0, 0);
    let mut buffer = vec![0; READ_BYTES];
    file.rewind()?;
    loop {
        match file.read(&mut buffer) {
            Ok(0) => return Ok((length, crc32c)),
            Ok(read) => {
                length += read as u64;
                crc32c = crc32c::crc32c_append(crc32c, &buffer[..read]);
            }
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
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
    Failure::failed(format!(
        "{} is there already; replace it with --force, or name another file with -o",
        whole.display()
    ))
}

fn cannot_write(path: &Path, error: &io::Error) -> Failure {
    let next = match error.kind() {
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded => "make room on the disk",
        ErrorKind::NotFound => "make its folder, or name another file with -o",
        _ => "name another file with -o",
    };
    Failure::failed(format!("cannot write {} ({error}); {next}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn info(etag: &str, whole: &[u8]) -> FileInfo {
        FileInfo {
            name: None,
            etag: etag.into(),
            bytes: whole.len() as u64,
            crc32c: crc32c::crc32c(whole),
            rows: None,
        }
    }

    async fn open(folder: &Path, info: &FileInfo) -> Result<(Sink, PartState), Failure> {
        Sink::open(Paths::new(folder.join("f.zip"), false)?, info, "http://h").await
    }

    #[tokio::test]
    async fn a_part_is_kept_for_the_same_file_only_and_becomes_it() {
        let folder = tempfile::tempdir().unwrap();
        let whole = b"0123456789";
        let same = info("\"a\"", whole);
        let (mut sink, found) = open(folder.path(), &same).await.unwrap();
        assert_eq!((found, sink.position), (PartState::Nothing, 0));
        sink.write(&whole[..4]).await.unwrap();
        assert!(open(folder.path(), &same).await.unwrap_err().to_string().contains("another download"));
        drop(sink);
        let (sink, found) = open(folder.path(), &same).await.unwrap();
        assert_eq!(
            (found, sink.position, sink.crc32c),
            (PartState::Beginning, 4, crc32c::crc32c(&whole[..4]))
        );
        drop(sink);
        let (mut sink, found) = open(folder.path(), &info("\"b\"", whole)).await.unwrap();
        assert_eq!((found, sink.position, sink.crc32c), (PartState::Other, 0, 0));
        sink.write(whole).await.unwrap();
        sink.finish(false).await.unwrap();
        assert_eq!(fs::read(folder.path().join("f.zip")).unwrap(), whole);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
        assert!(open(folder.path(), &same).await.unwrap_err().to_string().contains("--force"));
    }

    #[tokio::test]
    async fn a_part_that_is_too_long_or_has_no_note_is_no_beginning() {
        for (note, length) in [(true, 11), (false, 3)] {
            let folder = tempfile::tempdir().unwrap();
            let info = info("\"a\"", b"0123456789");
            drop(open(folder.path(), &info).await.unwrap());
            fs::write(folder.path().join("f.zip.part"), vec![0; length]).unwrap();
            if !note {
                fs::write(folder.path().join("f.zip.part.json"), "{").unwrap();
            }
            let (sink, found) = open(folder.path(), &info).await.unwrap();
            assert_eq!((found, sink.position), (PartState::Other, 0));
            assert_eq!(fs::metadata(folder.path().join("f.zip.part")).unwrap().len(), 0);
        }
    }

    #[tokio::test]
    async fn a_file_that_came_meanwhile_is_not_replaced() {
        for (force, kept) in [(false, "old"), (true, "new")] {
            let folder = tempfile::tempdir().unwrap();
            let (mut sink, _) = open(folder.path(), &info("\"a\"", b"new")).await.unwrap();
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
