//! Publishing, listing, removing: a segment exists exactly when its object does.

use std::{
    fs,
    os::unix::fs::MetadataExt,
    sync::Arc,
    time::{Duration, SystemTime},
};

use futures_util::TryStreamExt;
use mesh_history::{HistoryError, SegmentStore};
use object_store::{ObjectMeta, ObjectStore, memory::InMemory, path::Path};

use crate::fixture::{History, Plan, file, rng, table};

#[tokio::test]
async fn a_segment_is_published_once() {
    let mut history = History::new();
    let name = history.seal(&Plan::new(1, 1, 10).with("trades", "id\n1\n")).await;
    let before = fs::read(history.path(&name)).unwrap();
    let (file, again, _) = file(history.folder.path(), &Plan::new(1, 1, 10).with("trades", "id\n2\n"), None);
    let error = history.store.publish(&again, file).await.unwrap_err();
    assert!(matches!(error, HistoryError::Exists { .. }), "{error}");
    assert_eq!(fs::read(history.path(&name)).unwrap(), before);
}

#[tokio::test]
async fn a_long_segment_is_uploaded_in_pieces_and_leaves_nothing_beside_it() {
    let mut plan = Plan::new(1, 1, 10).with("trades", format!("id\n\"{}\"\n", "long ".repeat(4 << 20)));
    plan.level = 0;
    let objects = Arc::new(InMemory::new());
    let mut history = History::new();
    history.store = SegmentStore::from_objects(objects.clone(), Path::default());
    let name = history.seal(&plan).await;
    let segment = history.store.verify(&name).await.unwrap();
    assert_eq!(segment.history("trades").unwrap().rows, 1);
    // A staged upload detects an existing segment, too.
    let (file, ..) = file(history.folder.path(), &plan, None);
    let error = history.store.publish(&name, file).await.unwrap_err();
    assert!(matches!(error, HistoryError::Exists { .. }), "{error}");
    let objects: Vec<ObjectMeta> = objects.list(None).try_collect().await.unwrap();
    assert_eq!(objects.len(), 1);
    assert!(objects[0].size > 17 << 20);
}

#[tokio::test]
async fn a_folder_gets_the_file_itself_with_the_permissions_of_any_file() {
    let history = History::new();
    let (made, name, _) = file(history.folder.path(), &Plan::new(1, 1, 10).with("trades", "id\n1\n"), None);
    let file = history.store.new_file(history.folder.path()).unwrap();
    // Writes into the new file, as the sealer does.
    fs::write(file.path(), fs::read(made.path()).unwrap()).unwrap();
    let before = file.as_file().metadata().unwrap();
    history.store.publish(&name, file).await.unwrap();
    let published = fs::metadata(history.path(&name)).unwrap();
    assert_eq!(published.ino(), before.ino());
    let any = fs::File::create(history.folder.path().join("any")).unwrap().metadata().unwrap();
    assert_eq!(published.mode(), any.mode());
    assert_eq!(fs::read_dir(history.folder.path().join("staging")).unwrap().count(), 0);
}

#[tokio::test]
async fn objects_that_are_no_segments_are_ignored() {
    let mut history = History::new();
    let first = history.seal(&Plan::new(1, 1, 10).with("trades", "id\n1\n")).await;
    let second = history.seal(&Plan::new(1, 11, 20).with("trades", "id\n1\n")).await;
    let folder = history.folder.path().join("segments");
    fs::create_dir(folder.join("deeper")).unwrap();
    fs::copy(history.path(&first), folder.join("deeper").join(first.to_string())).unwrap();
    for name in ["notes.txt", "mesh-1-21-30.zip.part", "mesh-1-30-21.zip", "mesh-1-21-30.zip#1"] {
        fs::write(folder.join(name), b"x").unwrap();
    }
    fs::write(folder.join("mesh-1-31-40.zip"), b"").unwrap();
    let list = history.store.list().await.unwrap();
    let names: Vec<_> = list.segments.iter().map(|segment| segment.name.clone()).collect();
    assert_eq!(names, [first.clone(), second.clone()]);
    assert_eq!(list.unreadable.len(), 1);
    assert_eq!(list.segments[1].previous_id, Some(list.segments[0].id));

    history.store.delete(&first).await.unwrap();
    history.store.delete(&first).await.unwrap();
    let list = history.store.list().await.unwrap();
    assert_eq!(list.segments.len(), 1);
    assert_eq!(list.segments[0].name, second);
}

#[tokio::test]
async fn a_replaced_object_is_opened_anew() {
    let history = History::of(&[Plan::new(1, 1, 10).with("trades", "id\n1\n")]).await;
    let before = history.store.list().await.unwrap().segments[0].clone();
    let again = history.store.list().await.unwrap().segments[0].clone();
    assert!(std::sync::Arc::ptr_eq(&before, &again));
    let text = table(&mut rng(42), &["id"], 50, 9);
    let (file, name, id) = file(history.folder.path(), &Plan::new(1, 1, 10).with("trades", text), None);
    fs::copy(file.path(), history.path(&name)).unwrap();
    assert_eq!(history.store.list().await.unwrap().segments[0].id, id);
    let metadata = history.store.metadata(&name).await.unwrap();
    assert_eq!((metadata.members[0].rows, &metadata.members[0].columns[..]), (50, &["id".to_owned()][..]));
}

#[tokio::test]
async fn publishing_sweeps_what_dead_writers_left() {
    let mut history = History::new();
    history.seal(&Plan::new(1, 1, 10).with("trades", "id\n1\n")).await;
    let folder = history.folder.path().join("staging");
    let old = SystemTime::now() - Duration::from_secs(2 * 24 * 3600);
    for (name, written) in [("mesh-segment-old", old), ("mesh-segment-new", SystemTime::now())] {
        fs::create_dir_all(&folder).unwrap();
        fs::File::create(folder.join(name)).unwrap().set_modified(written).unwrap();
    }
    history.seal(&Plan::new(1, 11, 20).with("trades", "id\n1\n")).await;
    let left: Vec<_> = fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left, ["mesh-segment-new"]);
}
