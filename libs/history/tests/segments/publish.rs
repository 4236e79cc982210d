//! Publishing, listing, removing: a segment exists exactly when its object does.

use std::{
    fs,
    time::{Duration, SystemTime},
};

use mesh_history::HistoryError;

use crate::fixture::{History, Plan, file, rng, table};

#[tokio::test]
async fn a_segment_is_published_once() {
    let mut history = History::new();
    let name = history.seal(&Plan::new(1, 1, 10).with("trades", "id\n1\n")).await;
    let before = fs::read(history.path(&name)).unwrap();
    let (file, again, _) = file(history.folder.path(), &Plan::new(1, 1, 10).with("trades", "id\n2\n"), None);
    let error = history.store.publish(&again, file.path()).await.unwrap_err();
    assert!(matches!(error, HistoryError::Exists { .. }), "{error}");
    assert_eq!(fs::read(history.path(&name)).unwrap(), before);
}

#[tokio::test]
async fn a_long_segment_appears_whole_and_leaves_nothing_beside_it() {
    let mut plan = Plan::new(1, 1, 10).with("trades", format!("id\n\"{}\"\n", "long ".repeat(4 << 20)));
    plan.level = 0;
    let mut history = History::new();
    let name = history.seal(&plan).await;
    assert!(fs::metadata(history.path(&name)).unwrap().len() > 17 << 20);
    let segment = history.store.verify(&name).await.unwrap();
    assert_eq!(segment.history("trades").unwrap().rows, 1);
    let left = fs::read_dir(history.folder.path().join("staging")).map_or(0, Iterator::count);
    assert_eq!(left, 0);
    // A staged upload detects an existing segment, too.
    let (file, ..) = file(history.folder.path(), &plan, None);
    let error = history.store.publish(&name, file.path()).await.unwrap_err();
    assert!(matches!(error, HistoryError::Exists { .. }), "{error}");
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
    let folder = history.folder.path().join("segments");
    let old = SystemTime::now() - Duration::from_secs(2 * 24 * 3600);
    for (name, written) in
        [("a.zip#1", old), ("a.zip#2", SystemTime::now()), ("mesh-1-0-0.zip", old), ("a#b", old)]
    {
        fs::File::create(folder.join(name)).unwrap().set_modified(written).unwrap();
    }
    history.seal(&Plan::new(1, 11, 20).with("trades", "id\n1\n")).await;
    let mut left: Vec<_> = fs::read_dir(&folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    left.sort();
    assert_eq!(left, ["a#b", "a.zip#2", "mesh-1-0-0.zip", "mesh-1-1-10.zip", "mesh-1-11-20.zip"]);
}
