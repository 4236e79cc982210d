//! Verification of histories with damaged, misnamed or missing segments, and with foreign files.

use std::{ffi::OsStr, fs, os::unix::ffi::OsStrExt, sync::Arc};

use mesh_history::{Digest, Layout, Segment, SegmentName};

use crate::{History, Plan, faults, file, plan};

/// An undamaged history of four segments, to be copied and damaged.
struct UndamagedHistory {
    history: History,
    segments: [Arc<Segment>; 4],
}

impl UndamagedHistory {
    async fn new() -> Self {
        let history = History::of(&[plan(1), plan(11), plan(21), plan(31)]).await;
        let segments = history.store.list().await.unwrap().segments.try_into().unwrap();
        Self { history, segments }
    }

    fn copy(&self) -> History {
        let copy = History::new();
        for segment in &self.segments {
            fs::copy(self.history.path(&segment.name), copy.path(&segment.name)).unwrap();
        }
        copy
    }
}

/// Seals a separate segment and adds it to the history, replacing one with the same name.
fn add(history: &History, plan: &Plan, previous: Option<Digest>) -> (SegmentName, Digest) {
    let (file, name, id) = file(history.folder.path(), plan, previous);
    fs::copy(file.path(), history.path(&name)).unwrap();
    (name, id)
}

#[tokio::test]
async fn a_changed_bit_is_reported_with_its_segment_and_member() {
    let undamaged = UndamagedHistory::new().await;
    let two = &undamaged.segments[1];
    let (orders, accounts) =
        (two.history("orders").unwrap(), two.member("currentstate/accounts.csv").unwrap());
    let object = fs::read(undamaged.history.path(&two.name)).unwrap();
    let layout = object.windows(11).position(|bytes| bytes == b"layout.json").unwrap();
    for (at, member) in [
        (45, "metadata.json"),
        (orders.index.header.offset as usize + 3, "orders"),
        (orders.index.rows.offset as usize + 100, "orders"),
        (accounts.index.rows.offset as usize + 5, "accounts"),
        (layout + 40, "layout.json"),
    ] {
        let history = undamaged.copy();
        let mut damaged = object.clone();
        damaged[at] ^= 4;
        fs::write(history.path(&two.name), damaged).unwrap();
        let found = faults(&history.store).await;
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].starts_with(&format!("{}: ", two.name)) && found[0].contains(member), "{found:?}");
    }
}

#[tokio::test]
async fn a_cut_a_misnamed_and_a_missing_segment_are_reported() {
    let undamaged = UndamagedHistory::new().await;
    let [_, two, three, four] = &undamaged.segments;
    let history = undamaged.copy();
    let object = fs::read(history.path(&three.name)).unwrap();
    fs::write(history.path(&three.name), &object[..object.len() / 2]).unwrap();
    let found = faults(&history.store).await;
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(found[0].starts_with(&three.name.to_string()), "{found:?}");

    let history = undamaged.copy();
    fs::rename(history.path(&four.name), history.folder.path().join("segments/mesh-1-31-50.zip")).unwrap();
    let expected = ["mesh-1-31-50.zip: it holds what mesh-1-31-40.zip should"];
    assert_eq!(faults(&history.store).await, expected);

    let history = undamaged.copy();
    fs::remove_file(history.path(&two.name)).unwrap();
    let expected = format!("{}: no segment holds the heights 11 to 20 before it", three.name);
    assert_eq!(faults(&history.store).await, [expected]);
}

#[tokio::test]
async fn a_wrong_and_an_absent_previous_id_are_reported() {
    let undamaged = UndamagedHistory::new().await;
    let [_, two, three, four] = &undamaged.segments;
    let history = undamaged.copy();
    add(&history, &plan(31), Some(two.id));
    let (_, id) = add(&history, &plan(21), None);
    let expected = [
        format!("{}: it names no previous segment, but {} ends right before it", three.name, two.name),
        format!("{}: its previous id is {}, but {} has the id {id}", four.name, two.id, three.name),
    ];
    assert_eq!(faults(&history.store).await, expected);
}

#[tokio::test]
async fn overlapping_heights_are_reported() {
    let undamaged = UndamagedHistory::new().await;
    let [_, _, three, four] = &undamaged.segments;
    let history = undamaged.copy();
    let (twice, _) = add(&history, &Plan { from: 25, to: 40, ..plan(31) }, Some(three.id));
    let expected = [
        format!("{twice}: its heights are also those of {}", three.name),
        format!("{}: its heights are also those of {twice}", four.name),
    ];
    assert_eq!(faults(&history.store).await, expected);
}

#[tokio::test]
async fn what_is_foreign_in_the_folder_does_not_count() {
    let undamaged = UndamagedHistory::new().await;
    let history = undamaged.copy();
    let of_other = |plan| Plan { chain_id: "other".to_owned(), ..plan };
    add(&history, &of_other(plan(31)), None);
    add(&history, &of_other(plan(51)), None);
    let folder = history.folder.path().join("segments");
    for name in ["other-0002-1-1-10.zip", "other-1-11-20.zip", "notes.zip", "notes.txt", "mesh-1-11-20.zip#1"]
    {
        fs::write(folder.join(name), "").unwrap();
    }
    fs::write(folder.join(OsStr::from_bytes(b"mesh-\xff-1-1-10.zip")), "").unwrap();
    fs::create_dir(folder.join("mesh-1-41-50.zip")).unwrap();
    std::os::unix::fs::symlink("nowhere", folder.join("mesh-1-51-60.zip")).unwrap();
    let verified = history.store.verify_all(None, |_, _, _| {}).await.unwrap();
    assert_eq!((verified.sound.len(), verified.faults.len()), (4, 0), "{:?}", verified.faults);
    let others =
        ["notes.zip", "other-0002-1-1-10.zip", "other-1-11-20.zip", "other-1-31-40.zip", "other-1-51-60.zip"];
    assert_eq!(verified.others, others);
    let (list, _) = history.store.list().await.unwrap().of_chain("mesh");
    Layout::of(&list, "orders", 1, 40).unwrap();

    let verified = history.store.verify_all(Some("other"), |_, _, _| {}).await.unwrap();
    let faults: Vec<String> = verified.faults.iter().map(ToString::to_string).collect();
    assert_eq!((faults.len(), verified.sound.len()), (3, 2), "an empty file and two gaps: {faults:?}");
    // Without a readable segment no chain is known, so every file counts.
    for segment in &undamaged.segments {
        fs::write(history.path(&segment.name), "").unwrap();
    }
    for name in ["other-1-31-40.zip", "other-1-51-60.zip"] {
        fs::remove_file(folder.join(name)).unwrap();
    }
    let verified = history.store.verify_all(None, |_, _, _| {}).await.unwrap();
    assert!(verified.sound.is_empty() && verified.faults.len() >= 6, "{:?}", verified.faults);
}
