//! Tests of the store.

use tempfile::TempDir;

use crate::{Span, StagedMember, assemble};

use super::*;

/// A store with one segment, which is open.
async fn with_a_segment() -> (TempDir, SegmentStore, SegmentName) {
    let folder = tempfile::tempdir().unwrap();
    let store = SegmentStore::open(folder.path().to_str().unwrap()).unwrap();
    let mut member = StagedMember::new("history/trades.csv", 0, folder.path()).unwrap();
    member.write(b"id\n1\n").unwrap();
    let span = Span {
        chain_id: "mesh".to_owned(),
        database_version: 1,
        height_from: 1,
        height_to: 10,
        block_time_from: 0,
        block_time_to: 1,
        previous_id: None,
    };
    let mut file = store.new_file(folder.path()).unwrap();
    let (name, _) = assemble(&span, vec![member.finish().unwrap()], file.as_file_mut()).unwrap();
    store.publish(&name, file).await.unwrap();
    store.list().await.unwrap();
    (folder, store, name)
}

#[tokio::test]
async fn a_segment_that_a_listing_lacks_counts_until_its_object_is_gone() {
    let (_folder, store, name) = with_a_segment().await;
    let known = store.open.lock()[&name].0;
    for (is_there, expected) in [(true, Some(&known)), (false, None)] {
        if !is_there {
            std::fs::remove_file(store.file(&name).unwrap()).unwrap();
        }
        let mut found = HashMap::new();
        store.find_unlisted(&mut found).await.unwrap();
        assert_eq!(found.get(&name), expected);
    }
}

#[tokio::test]
async fn a_changed_object_counts_in_each_listing_until_it_is_gone() {
    let (_folder, store, name) = with_a_segment().await;
    let (path, empty) = (store.file(&name).unwrap(), tempfile::tempdir().unwrap());
    let object = std::fs::read(&path).unwrap();
    // Its listings are empty, as those of a bucket whose address has a page of another server.
    let store = SegmentStore { directory: Some(empty.path().to_owned()), ..store };
    let replace = |bytes: &[u8]| {
        std::fs::remove_file(&path).unwrap();
        std::fs::write(&path, bytes).unwrap();
    };
    let count = async || {
        let list = store.list().await.unwrap();
        (list.segments.len(), list.unreadable.len())
    };
    replace(b"<html>maintenance</html>");
    for _ in 0..2 {
        assert_eq!(count().await, (0, 1));
    }
    replace(&object);
    assert_eq!(count().await, (1, 0));
    std::fs::remove_file(&path).unwrap();
    assert_eq!(count().await, (0, 0));
}

#[tokio::test]
async fn a_store_that_is_away_or_fails_for_all_that_it_lists_is_not_empty() {
    let folder = tempfile::tempdir().unwrap();
    let home = folder.path().join("home");
    let store = SegmentStore::open(home.to_str().unwrap()).unwrap();
    assert!(store.list().await.unwrap().segments.is_empty());
    std::fs::remove_dir_all(&home).unwrap();
    assert!(matches!(store.list().await, Err(HistoryError::Io { .. })));
    let segment = folder.path().join("mesh-1-1-10.zip");
    std::fs::write(&segment, "damaged").unwrap();
    let store = SegmentStore::open_folder(folder.path()).unwrap();
    assert_eq!(store.list().await.unwrap().unreadable.len(), 1);
    // No object can be opened below a file.
    let store = SegmentStore { folder_path: Path::from("mesh-1-1-10.zip"), ..store };
    assert!(matches!(store.list().await, Err(HistoryError::Store { .. })));
}
