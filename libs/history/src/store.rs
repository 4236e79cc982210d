//! The store of segments: a folder by default, an S3-compatible bucket by URL. A segment exists
//! exactly when its object does (H1). Open segments are cached in memory, one small entry per object.

use std::{
    collections::HashMap,
    fmt,
    future::Future,
    io,
    ops::Range,
    path::{Path as FilePath, PathBuf},
    sync::Arc,
    time::{Duration, SystemTime},
};

use bytes::Bytes;
use futures_util::{StreamExt, stream};
use mesh_telemetry::span::{self, SpanExt};
use object_store::{ObjectMeta, ObjectStore, ObjectStoreExt, local::LocalFileSystem, path::Path};
use parking_lot::Mutex;
use tracing::Instrument;

use crate::{
    error::HistoryError,
    metadata::Metadata,
    name::SegmentName,
    opener::{SegmentOpener, Step},
    segment::{Segment, SegmentList, Unreadable},
    verify::Verifier,
};

mod bucket;

/// Segments that are opened at the same time.
const OPENED_AT_ONCE: usize = 8;

/// The folder of the segments, in the root.
pub(crate) const SEGMENTS: &str = "segments";
/// The folder of files and objects that are not published yet, in the root.
pub(crate) const STAGING: &str = "staging";

/// Deadline of one read, one write of a piece, one deletion in the object store.
pub(crate) const CALL_DEADLINE: Duration = Duration::from_secs(10);
/// Deadline of giving a written object its name, which may copy it.
pub(crate) const PUBLISH_DEADLINE: Duration = Duration::from_secs(120);

/// Lists, opens, reads, verifies and removes segments. Cheap to clone; clones share the open segments.
#[derive(Clone)]
pub struct SegmentStore {
    pub(crate) objects: Arc<dyn ObjectStore>,
    pub(crate) root: Path,
    /// The folder of the segments.
    folder_path: Path,
    /// The root when the objects are files and may be published.
    pub(crate) folder: Option<PathBuf>,
    /// The folder of the segments when the objects are files.
    directory: Option<PathBuf>,
    open: Arc<Mutex<OpenSegments>>,
}

/// The open segments by name, with the version of their objects.
type OpenSegments = HashMap<SegmentName, (ObjectVersion, Arc<Segment>)>;

/// Length and time of an object: differs when it was replaced or cut.
type ObjectVersion = (u64, SystemTime);

/// An object in the folder of the segments.
struct Found {
    name: String,
    version: ObjectVersion,
}

impl SegmentStore {
    /// Opens the store at a folder, which is created if it does not exist, or at a `file:` or `s3:` URL. S3
    /// takes its credentials and endpoint from the usual `AWS_…` variables.
    ///
    /// # Errors
    ///
    /// The folder cannot be made, or the URL is of an unknown kind.
    pub fn open(root: &str) -> Result<SegmentStore, HistoryError> {
        SegmentStore::open_with(root, &[])
    }

    /// [`Self::open`] with `AWS_…` variables that precede those of this process; all others are ignored.
    ///
    /// # Errors
    ///
    /// The folder cannot be made, or the URL is of an unknown kind.
    pub fn open_with(root: &str, variables: &[(String, String)]) -> Result<SegmentStore, HistoryError> {
        let failed = |what: String| HistoryError::Root { root: root.to_owned(), what };
        let folder = match root.split_once("://") {
            None => root,
            Some(("file", folder)) if folder.starts_with('/') => folder,
            Some(("s3", bucket)) => {
                return bucket::open(root, bucket, variables).map_err(|error| failed(error.to_string()));
            }
            Some((kind, _)) => return Err(failed(format!("{kind} URLs are not supported by this build"))),
        };
        let directory = FilePath::new(folder).join(SEGMENTS);
        std::fs::create_dir_all(&directory).map_err(|error| failed(error.to_string()))?;
        let objects = LocalFileSystem::new_with_prefix(folder).map_err(|error| failed(error.to_string()))?;
        let store = SegmentStore::from_objects(Arc::new(objects), Path::default());
        Ok(SegmentStore { folder: Some(folder.into()), directory: Some(directory), ..store })
    }

    /// A store over any object store, below `root` in it.
    pub fn from_objects(objects: Arc<dyn ObjectStore>, root: Path) -> SegmentStore {
        let folder_path = root.clone().join(SEGMENTS);
        SegmentStore { objects, root, folder_path, folder: None, directory: None, open: Arc::default() }
    }

    /// Opens the segments of a folder for reading: those in its `segments/`, or else those in the folder
    /// itself. Creates no folder.
    ///
    /// # Errors
    ///
    /// There is no such folder.
    pub fn open_folder(folder: &FilePath) -> Result<SegmentStore, HistoryError> {
        let inner = folder.join(SEGMENTS);
        let directory = if inner.is_dir() { &inner } else { folder };
        let failed = |what: String| HistoryError::Root { root: folder.display().to_string(), what };
        if !directory.is_dir() {
            return Err(failed("there is no such folder".to_owned()));
        }
        let objects =
            LocalFileSystem::new_with_prefix(directory).map_err(|error| failed(error.to_string()))?;
        let store = SegmentStore::from_objects(Arc::new(objects), Path::default());
        Ok(SegmentStore { folder_path: Path::default(), directory: Some(directory.to_owned()), ..store })
    }

    /// The path of a segment's file, in a folder.
    pub fn file(&self, name: &SegmentName) -> Option<PathBuf> {
        Some(self.directory.as_ref()?.join(name.to_string()))
    }

    /// Lists the store and opens the segments that are not open yet. Objects that are not named as segments,
    /// and subfolders, are ignored.
    ///
    /// # Errors
    ///
    /// The object store fails, also if it lists objects and fails for each of them, or is late; single objects
    /// that cannot be read are among the [`SegmentList::unreadable`], see also [`SegmentList::unreachable`].
    pub async fn list(&self) -> Result<SegmentList, HistoryError> {
        let objects = self.list_objects().await?;
        let named = |found: Found| Some((SegmentName::parse(&found.name)?, found.version));
        let mut found: HashMap<SegmentName, ObjectVersion> = objects.into_iter().filter_map(named).collect();
        self.find_unlisted(&mut found).await?;
        // A changed object stays known until its new version is open: it may be the page of another server, which the
        // next listing would not name.
        self.evict(|name| found.contains_key(name));
        let mut opened = stream::iter(found)
            .map(async |(name, version)| (self.open_listed(&name, version).await, name))
            .buffer_unordered(OPENED_AT_ONCE);
        let (mut segments, mut unreadable) = (Vec::new(), Vec::new());
        while let Some((opened, name)) = opened.next().await {
            match opened {
                Ok(segment) => segments.push(segment),
                // Removed since the listing.
                Err(HistoryError::Gone { .. }) => {}
                Err(error @ HistoryError::Late { .. }) => return Err(error),
                Err(error) => unreadable.push(Unreadable { name, error }),
            }
        }
        if segments.is_empty()
            && unreadable.iter().all(|other| other.error.is_unreachable())
            && let Some(first) = unreadable.pop()
        {
            return Err(first.error);
        }
        Ok(SegmentList::new(segments, unreadable))
    }

    /// Adds the open segments that the listing lacks although their objects exist: a bucket's listing may be
    /// late, cut, or not one at all.
    async fn find_unlisted(
        &self,
        found: &mut HashMap<SegmentName, ObjectVersion>,
    ) -> Result<(), HistoryError> {
        let known = |(name, (version, _)): (&SegmentName, &(ObjectVersion, _))| (name.clone(), *version);
        let mut lacking: Vec<_> = self.open.lock().iter().map(known).collect();
        lacking.retain(|(name, _)| !found.contains_key(name));
        let mut asked = stream::iter(lacking)
            .map(async |(name, version)| (self.head(&name).await, name, version))
            .buffer_unordered(OPENED_AT_ONCE);
        while let Some((meta, name, version)) = asked.next().await {
            match meta {
                // A listing states times more precisely.
                Ok(meta) if meta.size == version.0 => found.insert(name, version),
                Ok(meta) => found.insert(name, (meta.size, meta.last_modified.into())),
                Err(HistoryError::Gone { .. }) => None,
                Err(error) => return Err(error),
            };
        }
        Ok(())
    }

    /// The names of the ZIP files that are not names of segments, sorted.
    pub(crate) async fn list_misnamed(&self) -> Result<Vec<String>, HistoryError> {
        let names = self.list_objects().await?.into_iter().map(|found| found.name);
        let mut names: Vec<String> =
            names.filter(|name| name.ends_with(".zip") && SegmentName::parse(name).is_none()).collect();
        names.sort();
        Ok(names)
    }

    /// Every object of the folder, without those of the folders in it.
    async fn list_objects(&self) -> Result<Vec<Found>, HistoryError> {
        let after = CALL_DEADLINE;
        let Some(directory) = self.directory.clone() else {
            let listed = self.objects.list_with_delimiter(Some(&self.folder_path));
            let listed = self.within(&self.folder_path, after, listed).await?;
            let found = |meta: ObjectMeta| {
                let version = (meta.size, meta.last_modified.into());
                meta.location.filename().map(|name| Found { name: name.to_owned(), version })
            };
            return Ok(listed.objects.into_iter().filter_map(found).collect());
        };
        // Read here, because the object store fails at a single name that is not UTF-8.
        let object = directory.display().to_string();
        let files = tokio::task::spawn_blocking(move || list_files(&directory));
        let Ok(files) = tokio::time::timeout(after, files).await else {
            return Err(HistoryError::Late { object, after });
        };
        files.map_err(io::Error::other).flatten().map_err(HistoryError::io("listing the folder of segments"))
    }

    /// Reads a segment's metadata, columns included.
    ///
    /// # Errors
    ///
    /// The object is gone, damaged, or the object store fails.
    pub async fn metadata(&self, name: &SegmentName) -> Result<Metadata, HistoryError> {
        let meta = self.head(name).await?;
        Ok(self.read_segment(name, meta.size).await?.1)
    }

    /// Reads a whole segment and verifies every byte of it, on a blocking thread.
    ///
    /// # Errors
    ///
    /// The first fault, or the object store fails.
    pub async fn verify(&self, name: &SegmentName) -> Result<Segment, HistoryError> {
        const PIECE: u64 = 4 << 20;
        let size = self.head(name).await?.size;
        let (segment, _) = self.read_segment(name, size).await?;
        let mut verifier = Verifier::new(&segment);
        let mut at = 0;
        while at < size {
            let piece = self.get(name, at..size.min(at + PIECE)).await?;
            at += piece.len() as u64;
            let checked = tokio::task::spawn_blocking(move || verifier.write(&piece).map(|()| verifier));
            verifier = checked.await.map_err(|error| HistoryError::damaged(name, error.to_string()))??;
        }
        verifier.finish()?;
        Ok(segment)
    }

    /// Removes a segment (H9). Succeeds when it does not exist.
    ///
    /// # Errors
    ///
    /// The object store fails.
    pub async fn delete(&self, name: &SegmentName) -> Result<(), HistoryError> {
        let path = self.path(name);
        match self.within(&path, CALL_DEADLINE, self.objects.delete(&path)).await {
            Ok(()) | Err(HistoryError::Gone { .. }) => {}
            Err(error) => return Err(error),
        }
        self.evict(|open| open != name);
        Ok(())
    }

    async fn open_listed(
        &self,
        name: &SegmentName,
        version: ObjectVersion,
    ) -> Result<Arc<Segment>, HistoryError> {
        if let Some((known, segment)) = self.open.lock().get(name)
            && *known == version
        {
            return Ok(segment.clone());
        }
        let segment = Arc::new(self.read_segment(name, version.0).await?.0);
        self.open.lock().insert(name.clone(), (version, segment.clone()));
        Ok(segment)
    }

    async fn read_segment(&self, name: &SegmentName, size: u64) -> Result<(Segment, Metadata), HistoryError> {
        let mut opening = SegmentOpener::new(name.clone(), size);
        loop {
            match opening.step()? {
                Step::Done(done) => return Ok(*done),
                Step::Read(range) => opening.supply(&range, self.get(name, range.clone()).await?)?,
            }
        }
    }

    pub(crate) async fn head(&self, name: &SegmentName) -> Result<ObjectMeta, HistoryError> {
        let path = self.path(name);
        self.within(&path, CALL_DEADLINE, self.objects.head(&path)).await
    }

    /// Exactly these bytes of an object, unchecked.
    pub(crate) async fn get(&self, name: &SegmentName, range: Range<u64>) -> Result<Bytes, HistoryError> {
        let span = span::object("get", name);
        let bytes = self.get_range(name, range).instrument(span.clone()).await;
        match &bytes {
            Ok(_) => {}
            Err(HistoryError::Late { .. }) => span.record_failure("timeout"),
            Err(_) => span.record_failure("store"),
        }
        bytes
    }

    async fn get_range(&self, name: &SegmentName, range: Range<u64>) -> Result<Bytes, HistoryError> {
        let (path, length, end) = (self.path(name), range.end - range.start, range.end);
        let ranges = [range];
        let mut pieces =
            match self.within(&path, CALL_DEADLINE, self.objects.get_ranges(&path, &ranges)).await {
                // A read past the end of an object that was cut fails like the store does; the length
                // distinguishes them.
                Err(error @ HistoryError::Store { .. }) => match self.head(name).await {
                    Ok(meta) if meta.size < end => {
                        return Err(HistoryError::damaged(name, format!("it ends at byte {}", meta.size)));
                    }
                    _ => return Err(error),
                },
                pieces => pieces?,
            };
        let bytes = pieces.pop().unwrap_or_default();
        if bytes.len() as u64 == length {
            return Ok(bytes);
        }
        Err(HistoryError::damaged(name, format!("{} bytes in place of {length}", bytes.len())))
    }

    pub(crate) fn path(&self, name: &SegmentName) -> Path {
        self.folder_path.clone().join(name.to_string())
    }

    fn evict(&self, keep: impl Fn(&SegmentName) -> bool) {
        self.open.lock().retain(|name, _| keep(name));
    }

    /// Waits for the object store within a deadline; an error names the object.
    pub(crate) async fn within<T>(
        &self,
        path: &Path,
        after: Duration,
        call: impl Future<Output = object_store::Result<T>>,
    ) -> Result<T, HistoryError> {
        use object_store::Error;
        let object = || path.filename().unwrap_or_default().to_owned();
        match tokio::time::timeout(after, call).await {
            Ok(Ok(value)) => Ok(value),
            Ok(Err(Error::NotFound { .. })) => Err(HistoryError::Gone { object: object() }),
            Ok(Err(Error::AlreadyExists { .. } | Error::Precondition { .. })) => {
                Err(HistoryError::Exists { object: object() })
            }
            Ok(Err(source)) => Err(HistoryError::Store { object: object(), source }),
            Err(_) => Err(HistoryError::Late { object: object(), after }),
        }
    }
}

/// The files of a folder. Files whose names are not UTF-8 are no segments. A folder that is not there any
/// more, such as a volume that is not mounted, is an error, and not an empty history.
fn list_files(directory: &FilePath) -> io::Result<Vec<Found>> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(directory)? {
        let entry = entry?;
        let Ok(name) = entry.file_name().into_string() else { continue };
        let meta = match std::fs::metadata(entry.path()) {
            // Removed since, or a link to nothing.
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            Err(_) if SegmentName::parse(&name).is_none() => continue,
            meta => meta?,
        };
        if meta.is_file() {
            files.push(Found { name, version: (meta.len(), meta.modified()?) });
        }
    }
    Ok(files)
}

impl fmt::Debug for SegmentStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SegmentStore({}/{})", self.objects, self.root)
    }
}

#[cfg(test)]
mod tests;
