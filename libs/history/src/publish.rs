//! Publishes segments (H1): create-only, atomically, synced to disk in a folder.

use std::{
    fs, io,
    os::unix::fs::PermissionsExt,
    path::{Path as FilePath, PathBuf},
    time::{Duration, SystemTime},
};

use bytes::{Bytes, BytesMut};
use futures_util::TryStreamExt;
use object_store::{MultipartUpload, ObjectMeta, ObjectStoreExt, PutMode, PutPayload, path::Path};
use tempfile::NamedTempFile;
use tokio::{fs::File, io::AsyncReadExt, task::spawn_blocking};

use crate::{
    error::HistoryError,
    name::SegmentName,
    store::{CALL_DEADLINE, PUBLISH_DEADLINE, SEGMENTS, STAGING, SegmentStore},
};

/// Files up to this length are put with one call; longer ones are uploaded in pieces of this length. Bytes.
const PIECE: usize = 8 << 20;
/// Staged objects older than this belong to writers that have died.
const ABANDONED: Duration = Duration::from_secs(24 * 3600);
const READING: &str = "reading a segment file";

impl SegmentStore {
    /// A new file to make a segment in: in the store's own folder when it is one, so that publishing only
    /// renames it, otherwise in `scratch`. It is removed when dropped.
    ///
    /// # Errors
    ///
    /// No file can be created there; the error names the folder.
    pub fn new_file(&self, scratch: &FilePath) -> io::Result<NamedTempFile> {
        let staging = self.folder.as_ref().map(|folder| folder.join(STAGING));
        if let Some(staging) = &staging {
            let named =
                |error: io::Error| io::Error::new(error.kind(), format!("{}: {error}", staging.display()));
            fs::create_dir_all(staging).map_err(named)?;
        }
        let mut builder = tempfile::Builder::new();
        // Like any new file, less the umask; by default only the owner could read a temporary file.
        builder.prefix("mesh-segment-").permissions(fs::Permissions::from_mode(0o666));
        builder.tempfile_in(staging.as_deref().unwrap_or(scratch))
    }

    /// Publishes a verified segment file of [`SegmentStore::new_file`]. When this succeeds, the segment is
    /// stored durably; when it fails or the process dies, the segment exists whole or not at all. The caller
    /// must have the lock of H7.
    ///
    /// # Errors
    ///
    /// [`HistoryError::Exists`] when there is a segment of this name; the file or the object store fails.
    pub async fn publish(&self, name: &SegmentName, file: NamedTempFile) -> Result<(), HistoryError> {
        // Best effort: remains cost space only.
        if let Err(error) = self.sweep().await {
            tracing::warn!(error = &error as &dyn std::error::Error, "the remains of dead writers stay");
        }
        match &self.folder {
            None => self.upload(name, file.path()).await,
            Some(folder) => self.rename(name, file, folder.clone()).await,
        }
    }

    /// Renames a file to a segment of the store's folder; syncs it and the folders to disk.
    async fn rename(
        &self,
        name: &SegmentName,
        file: NamedTempFile,
        folder: PathBuf,
    ) -> Result<(), HistoryError> {
        let object = name.to_string();
        let segments = folder.join(SEGMENTS);
        let target = segments.join(&object);
        let renamed = spawn_blocking(move || {
            file.as_file().sync_all()?;
            match file.persist_noclobber(&target) {
                // A file system may have neither RENAME_NOREPLACE nor hard links. The lock of H7 keeps others away.
                Err(refused) if refused.error.kind() != io::ErrorKind::AlreadyExists && !target.exists() => {
                    refused.file.persist(&target).map_err(|refused| refused.error)?;
                }
                renamed => drop(renamed.map_err(|refused| refused.error)?),
            }
            [segments, folder].into_iter().try_for_each(|folder| match fs::File::open(folder)?.sync_all() {
                // Nor does every one sync folders.
                Err(error)
                    if matches!(error.kind(), io::ErrorKind::InvalidInput | io::ErrorKind::Unsupported) =>
                {
                    Ok(())
                }
                synced => synced,
            })
        });
        let after = PUBLISH_DEADLINE;
        let Ok(renamed) = tokio::time::timeout(after, renamed).await else {
            return Err(HistoryError::Late { object, after });
        };
        match renamed.map_err(io::Error::other).flatten() {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                Err(HistoryError::Exists { object })
            }
            Err(error) if error.kind() == io::ErrorKind::CrossesDevices => {
                let step = "renaming from staging/ to segments/, which must be on one filesystem";
                Err(HistoryError::io(step)(error))
            }
            renamed => renamed.map_err(HistoryError::io("publishing a segment file")),
        }
    }

    async fn upload(&self, name: &SegmentName, file: &FilePath) -> Result<(), HistoryError> {
        let mut file = File::open(file).await.map_err(HistoryError::io(READING))?;
        let size = file.metadata().await.map_err(HistoryError::io(READING))?.len();
        let path = self.path(name);
        if size <= PIECE as u64 {
            let whole = PutPayload::from(piece(&mut file).await?);
            let put = || self.objects.put_opts(&path, whole.clone(), PutMode::Create.into());
            let mut stored = self.within(&path, PUBLISH_DEADLINE, put()).await;
            if self.is_contended(name, &stored).await {
                stored = self.within(&path, PUBLISH_DEADLINE, put()).await;
            }
            return stored.map(drop);
        }
        // Checked before the bytes are sent, to save the upload; the renaming checks it atomically.
        match self.head(name).await {
            Ok(_) => return Err(HistoryError::Exists { object: name.to_string() }),
            Err(HistoryError::Gone { .. }) => {}
            Err(error) => return Err(error),
        }
        let staged = self.staging().join(name.to_string());
        let upload = self.objects.put_multipart(&staged);
        let mut upload = self.within(&staged, CALL_DEADLINE, upload).await?;
        if let Err(error) = self.send(&mut file, &staged, upload.as_mut()).await {
            // Best effort: remains are removed by a later sweep.
            let _ = self.within(&staged, CALL_DEADLINE, upload.abort()).await;
            return Err(error);
        }
        let rename = || self.objects.rename_if_not_exists(&staged, &path);
        let mut renamed = self.within(&path, PUBLISH_DEADLINE, rename()).await;
        if self.is_contended(name, &renamed).await {
            renamed = self.within(&path, PUBLISH_DEADLINE, rename()).await;
        }
        if renamed.is_err() {
            let _ = self.within(&staged, CALL_DEADLINE, self.objects.delete(&staged)).await;
        }
        renamed
    }

    /// Whether there is no object after a conflict: the store may refuse one of several writers at once by the answer that
    /// it gives when there is one.
    async fn is_contended<T: Sync>(&self, name: &SegmentName, stored: &Result<T, HistoryError>) -> bool {
        matches!(stored, Err(HistoryError::Exists { .. }))
            && matches!(self.head(name).await, Err(HistoryError::Gone { .. }))
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
                return self.within(staged, PUBLISH_DEADLINE, done).await.map(|_| ());
            }
            self.within(staged, CALL_DEADLINE, upload.put_part(piece.into())).await?;
        }
    }

    /// Removes the remains of writers that died.
    async fn sweep(&self) -> Result<(), HistoryError> {
        let staging = self.staging();
        let left = self.objects.list(Some(&staging)).try_collect();
        let left: Vec<ObjectMeta> = self.within(&staging, CALL_DEADLINE, left).await?;
        for meta in left.iter().filter(|meta| abandoned(meta.last_modified.into())) {
            let path = &meta.location;
            self.within(path, CALL_DEADLINE, self.objects.delete(path)).await?;
        }
        Ok(())
    }

    fn staging(&self) -> Path {
        self.root.clone().join(STAGING)
    }
}

fn abandoned(written: SystemTime) -> bool {
    SystemTime::now().duration_since(written).is_ok_and(|age| age > ABANDONED)
}

/// The next [`PIECE`] of a file; shorter at its end.
async fn piece(file: &mut File) -> Result<Bytes, HistoryError> {
    let mut piece = BytesMut::with_capacity(PIECE);
    let mut rest = file.take(PIECE as u64);
    while rest.read_buf(&mut piece).await.map_err(HistoryError::io(READING))? > 0 {}
    Ok(piece.freeze())
}
