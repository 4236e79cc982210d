//! Verification of histories with damaged, misnamed, missing or foreign segments.

use std::{fs, sync::Arc};

use mesh_history::{Digest, Segment, SegmentName};

use crate::{
    fixture::{History, Plan, file},
    whole::{faults, plan},
};

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
        fs::create_dir(copy.folder.path().join("segments")).unwrap();
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
    fs::write(history.folder.path().join("segments/notes.zip"), "").unwrap();
    fs::write(history.folder.path().join("segments/notes.txt"), "").unwrap();
    let expected = [
        "mesh-1-31-50.zip: it holds what mesh-1-31-40.zip should",
        "notes.zip: it is not named as a segment",
    ];
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
async fn overlapping_heights_and_another_chain_are_reported() {
    let undamaged = UndamagedHistory::new().await;
    let [one, _, three, four] = &undamaged.segments;
    let history = undamaged.copy();
    let (twice, id) = add(&history, &Plan { from: 25, to: 40, ..plan(31) }, Some(three.id));
    let (foreign, _) = add(&history, &Plan { chain_id: "other".to_owned(), ..plan(41) }, Some(four.id));
    let expected = [
        format!("{twice}: its heights are also those of {}", three.name),
        format!("{}: its heights are also those of {twice}", four.name),
        format!("{foreign}: it is of chain \"other\", {} of \"mesh\"", one.name),
        format!("{foreign}: its previous id is {}, but {twice} has the id {id}", four.id),
    ];
    assert_eq!(faults(&history.store).await, expected);
}
