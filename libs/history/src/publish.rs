//! Publishes segments (H1): create-only, atomically, synced to disk in a folder.

use std::{
    fs, io,
    path::Path as FilePath,
    time::{Duration, SystemTime},
};

use bytes::{Bytes, BytesMut};
use futures_util::TryStreamExt;
use object_store::{MultipartUpload, ObjectMeta, ObjectStoreExt, PutMode, PutPayload, path::Path};
use tokio::{fs::File, io::AsyncReadExt};

use crate::{error::HistoryError, name::SegmentName, store::SegmentStore};

/// Files up to this length are put with one call; longer ones are uploaded in pieces of this length. Bytes.
const PIECE: usize = 8 << 20;
/// Staged objects older than this belong to writers that have died.
const ABANDONED: Duration = Duration::from_secs(24 * 3600);
const READING: &str = "reading a segment file";

impl SegmentStore {
    /// Publishes a verified segment file. When this succeeds, the segment is stored durably; when it fails or
    /// the process dies, the segment exists whole or not at all. The caller must have the lock of H7.
    ///
    /// # Errors
    ///
    /// [`HistoryError::Exists`] when there is a segment of this name; the file or the object store fails.
    pub async fn publish(&self, name: &SegmentName, file: &FilePath) -> Result<(), HistoryError> {
        let mut file = File::open(file).await.map_err(HistoryError::io(READING))?;
        let size = file.metadata().await.map_err(HistoryError::io(READING))?.len();
        let path = self.path(name);
        self.sweep().await?;
        if size <= PIECE as u64 {
            let whole = PutPayload::from(piece(&mut file).await?);
            let put = self.objects.put_opts(&path, whole, PutMode::Create.into());
            return self.within(&path, self.deadlines.publish, put).await.map(|_| ());
        }
        // Checked before the bytes are sent, to save the upload; the renaming checks it atomically.
        match self.head(name).await {
            Ok(_) => return Err(HistoryError::Exists { object: name.to_string() }),
            Err(HistoryError::Gone { .. }) => {}
            Err(error) => return Err(error),
        }
        let staged = self.staging().join(name.to_string());
        let upload = self.objects.put_multipart(&staged);
        let mut upload = self.within(&staged, self.deadlines.call, upload).await?;
        if let Err(error) = self.send(&mut file, &staged, upload.as_mut()).await {
            // Best effort: remains are removed by a later sweep.
            let _ = self.within(&staged, self.deadlines.call, upload.abort()).await;
            return Err(error);
        }
        let rename = self.objects.rename_if_not_exists(&staged, &path);
        let renamed = self.within(&path, self.deadlines.publish, rename).await;
        if renamed.is_err() {
            let _ = self.within(&staged, self.deadlines.call, self.objects.delete(&staged)).await;
        }
        renamed
    }

    async fn send(
        &self,
        file: &mut File,
        staged: &Path,
        upload: &mut dyn MultipartUpload,
    ) -> Result<(), HistoryError> {
        loop {
            let piece = piece(file).await?;
            if piece.is_empty() {
                let done = upload.complete();
                return self.within(staged, self.deadlines.publish, done).await.map(|_| ());
            }
            self.within(staged, self.deadlines.call, upload.put_part(piece.into())).await?;
        }
    }

    /// Removes the remains of writers that died: staged objects, and in a folder the temporary files of the
    /// object store.
    async fn sweep(&self) -> Result<(), HistoryError> {
        let staging = self.staging();
        let left = self.objects.list(Some(&staging)).try_collect();
        let left: Vec<ObjectMeta> = self.within(&staging, self.deadlines.call, left).await?;
        for meta in left.iter().filter(|meta| abandoned(meta.last_modified.into())) {
            let path = &meta.location;
            self.within(path, self.deadlines.call, self.objects.delete(path)).await?;
        }
        let Some(folder) = self.folder.clone() else { return Ok(()) };
        let swept = tokio::task::spawn_blocking(move || {
            for place in ["segments", "staging"] {
                sweep_folder(&folder.join(place))?;
            }
            Ok(())
        });
        swept.await.map_err(io::Error::other).flatten().map_err(HistoryError::io("sweeping the folder"))
    }

    fn staging(&self) -> Path {
        self.root.clone().join("staging")
    }
}

fn abandoned(written: SystemTime) -> bool {
    SystemTime::now().duration_since(written).is_ok_and(|age| age > ABANDONED)
}

/// Removes old files `<name>#<number>`.
fn sweep_folder(folder: &FilePath) -> io::Result<()> {
    let entries = match fs::read_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        entries => entries?,
    };
    for entry in entries {
        let entry = entry?;
        let name = entry.file_name();
        let number = name.to_str().and_then(|name| name.rsplit_once('#')).map(|(_, number)| number);
        let unnamed = number.is_some_and(|number| number.bytes().all(|b| b.is_ascii_digit()));
        if unnamed && abandoned(entry.metadata()?.modified()?) {
            fs::remove_file(entry.path())?;
        }
    }
    Ok(())
}

/// The next [`PIECE`] of a file; shorter at its end.
async fn piece(file: &mut File) -> Result<Bytes, HistoryError> {
    let mut piece = BytesMut::with_capacity(PIECE);
    let mut rest = file.take(PIECE as u64);
    while rest.read_buf(&mut piece).await.map_err(HistoryError::io(READING))? > 0 {}
    Ok(piece.freeze())
}
