//! Limits the logs of a running mesh. A child writes into its file for as long as it runs, so the file is copied and
//! emptied; a line that is written between the two is lost.

use std::{
    convert::Infallible,
    fs::{self, File, OpenOptions},
    io::{self, Read as _, Seek as _, SeekFrom},
    path::{Path, PathBuf},
    time::Duration,
};

use tokio::{task::spawn_blocking, time::sleep};

/// The end of a longer log is moved to `<name>.log.1`, which is replaced, bytes.
const MAX_BYTES: u64 = 32 << 20;

const CHECK_INTERVAL: Duration = Duration::from_secs(10);

/// Limits all logs of a folder for as long as it is polled.
pub async fn limit_logs(folder: PathBuf) -> Infallible {
    loop {
        sleep(CHECK_INTERVAL).await;
        let folder = folder.clone();
        if let Ok(Err(error)) = spawn_blocking(move || rotate(&folder, MAX_BYTES)).await {
            tracing::warn!(%error, "a log cannot be limited");
        }
    }
}

fn rotate(folder: &Path, max_bytes: u64) -> io::Result<()> {
    let mut outcome = Ok(());
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        let is_log = path.extension().is_some_and(|extension| extension == "log");
        if is_log && path.metadata()?.len() > max_bytes {
            // Emptied also when a full disk has no room for the copy.
            outcome = outcome.and(copy_end(&path, max_bytes));
            OpenOptions::new().write(true).truncate(true).open(&path)?;
        }
    }
    outcome
}

fn copy_end(log: &Path, bytes: u64) -> io::Result<()> {
    let mut from = File::open(log)?;
    let length = from.metadata()?.len();
    from.seek(SeekFrom::Start(length.saturating_sub(bytes)))?;
    io::copy(&mut from.take(bytes), &mut File::create(log.with_extension("log.1"))?).map(drop)
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    #[test]
    fn a_long_log_begins_again_while_it_is_written() {
        let folder = tempfile::tempdir().unwrap();
        let file = |name: &str| folder.path().join(name);
        let mut log = OpenOptions::new().create(true).append(true).open(file("a-0.log")).unwrap();
        for (written, expected) in [("one\n", "one\n"), ("two\n", "two\n"), ("three\n", "three\n")] {
            log.write_all(written.as_bytes()).unwrap();
            assert_eq!(fs::read_to_string(file("a-0.log")).unwrap(), expected);
            rotate(folder.path(), 2).unwrap();
        }
        assert_eq!(fs::read_to_string(file("a-0.log.1")).unwrap(), "e\n");
        // The copy fails, as on a full disk.
        fs::remove_file(file("a-0.log.1")).unwrap();
        fs::create_dir(file("a-0.log.1")).unwrap();
        log.write_all(b"four\n").unwrap();
        rotate(folder.path(), 2).unwrap_err();
        assert_eq!(fs::read_to_string(file("a-0.log")).unwrap(), "");
        log.write_all(b"ok").unwrap();
        rotate(folder.path(), 2).unwrap();
        assert_eq!(fs::read_to_string(file("a-0.log")).unwrap(), "ok", "a short log stays");
    }
}
