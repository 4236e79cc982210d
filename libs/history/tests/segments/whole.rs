//! A whole history: the plain text of its members, and its verification.

use std::fs;

use mesh_history::{HistoryError, SegmentStore};

use crate::fixture::{History, Plan, file, rng, table};

/// A segment of ten blocks with two tables and one state.
pub(crate) fn plan(from: u64) -> Plan {
    let mut rng = rng(from);
    let mut plan = Plan::new(1, from, from + 9)
        .with("orders", table(&mut rng, &["id", "note"], 300, 100))
        .with("trades", "id\n");
    plan.members.push(("currentstate/accounts.csv".to_owned(), table(&mut rng, &["id", "type"], 9, 10)));
    plan
}

/// The faults that a verification finds, as text.
pub(crate) async fn faults(store: &SegmentStore) -> Vec<String> {
    let verified = store.verify_all(None, |_, _, _| {}).await.unwrap();
    verified.faults.iter().map(ToString::to_string).collect()
}

#[tokio::test]
async fn the_text_of_a_member_is_what_was_sealed_in_pieces_of_bounded_length() {
    let long = [b"id\n".to_vec(), b"0\n".repeat(3 << 20)].concat();
    let noise = table(&mut rng(7), &["id", "note"], 9000, 900);
    let plan = Plan::new(1, 1, 10).with("orders", noise).with("positions", "id\n").with("trades", long);
    let history = History::of(std::slice::from_ref(&plan)).await;
    let segment = history.store.list().await.unwrap().segments[0].clone();
    for (name, text) in &plan.members {
        let mut reader = history.store.text(&segment, segment.member(name).unwrap());
        let mut read = Vec::new();
        while let Some(piece) = reader.next().await.unwrap() {
            assert!(!piece.is_empty() && piece.len() <= 256 << 10);
            read.extend_from_slice(&piece);
        }
        assert!(read == *text, "{name}");
        assert!(reader.next().await.unwrap().is_none());
    }
}

#[tokio::test]
async fn a_text_that_changed_has_no_end() {
    let history = History::of(&[plan(1)]).await;
    let segment = history.store.list().await.unwrap().segments[0].clone();
    let orders = segment.history("orders").unwrap();
    let path = history.path(&segment.name);
    let mut object = fs::read(&path).unwrap();
    object[orders.index.rows.offset as usize + 9] ^= 1;
    fs::write(&path, object).unwrap();
    let mut reader = history.store.text(&segment, orders);
    let failed = loop {
        match reader.next().await {
            Ok(piece) => assert!(piece.is_some(), "a changed text came to an end"),
            Err(error) => break error,
        }
    };
    assert!(matches!(failed, HistoryError::Damaged { .. }), "{failed}");
    assert!(reader.next().await.is_err(), "it has none afterwards");

    // Another text, correctly sealed, with the metadata of the first.
    let other = History::of(&[Plan::new(1, 1, 10).with("trades", "id\n")]).await;
    let mut trades = other.store.list().await.unwrap().segments[0].history("trades").unwrap().clone();
    trades.sha256 = orders.sha256;
    let mut reader = other.store.text(&other.store.list().await.unwrap().segments[0], &trades);
    assert!(reader.next().await.unwrap().is_some());
    assert!(reader.next().await.unwrap_err().to_string().contains("hash"));
}

#[tokio::test]
async fn a_whole_history_has_no_fault_wherever_it_lies() {
    let history = History::of(&[plan(1), plan(11), plan(21), plan(31)]).await;
    let mut progress = Vec::new();
    let verified =
        history.store.verify_all(None, |name, number, all| progress.push((name.height_from, number, all)));
    let verified = verified.await.unwrap();
    assert_eq!((verified.sound.len(), verified.faults.len(), verified.begins_late), (4, 0, false));
    assert_eq!(progress, [(1, 1, 4), (11, 2, 4), (21, 3, 4), (31, 4, 4)]);
    // The parent folder, or the folder of segments itself.
    for folder in [history.folder.path().to_owned(), history.folder.path().join("segments")] {
        let store = SegmentStore::open_folder(&folder).unwrap();
        assert_eq!(store.verify_all(None, |_, _, _| {}).await.unwrap().sound.len(), 4);
    }
    SegmentStore::open_folder(&history.folder.path().join("none")).unwrap_err();
    assert!(!history.folder.path().join("none").exists());

    // The retention removes the oldest segment meanwhile; then the second one of the others is lost.
    let remove = async |removed| {
        let store = &history.store;
        let verified = store.verify_all(None, |name, number, _| {
            if number == removed {
                fs::remove_file(history.path(name)).unwrap();
            }
        });
        let verified = verified.await.unwrap();
        (verified.sound.len(), verified.faults, verified.begins_late)
    };
    assert_eq!(remove(1).await, (3, Vec::new(), true));
    let (sound, faults, _) = remove(2).await;
    assert_eq!(sound, 2);
    assert!(faults.iter().any(|fault| fault.what == "it is not there any more"), "{faults:?}");
}

#[tokio::test]
async fn text_that_breaks_the_rules_or_is_not_of_its_span_is_found_although_its_hash_is_right() {
    const BLOCKS: &str = "block_time,height,hash\n";
    let of = |blocks: &[(&str, u64)]| {
        let mut text = BLOCKS.to_owned();
        for (second, height) in blocks {
            text.push_str(&format!("2023-06-20 10:30:{second}+00,{height},\"a,\n\"\n"));
        }
        text
    };
    // The blocks 1 to 4 are those of the seconds 1 to 4.
    let whole = of(&[("01", 1), ("02", 2), ("02.5", 3), ("04", 4)]);
    let row = |time: &str| format!("id,block_time\n1,{time}\n");
    for (table, text, what) in [
        ("trades", "id,note\n1,2\n3\n".to_owned(), "record 2 has 1 fields, not 2"),
        ("trades", "id,note\n1,\"2\"x\n".to_owned(), "a quote is not allowed here"),
        ("trades", "id,note\n1,2\r\n".to_owned(), "a record ends with a carriage return"),
        ("blocks", whole, ""),
        ("blocks", of(&[("01", 1), ("02", 2), ("04", 4)]), "height 3 is missing, 4 comes in its place"),
        ("blocks", of(&[("02", 2), ("03", 3), ("04", 4)]), "height 1 is missing, 2 comes in its place"),
        ("blocks", of(&[("01", 1), ("02", 2), ("04", 3)]), "height 4 is missing, the rows end before it"),
        ("blocks", of(&[]), "height 1 is missing, the rows end before it"),
        ("blocks", of(&[("01", 1), ("02", 2), ("03", 3), ("04", 4), ("04", 5)]), "height 5 is outside"),
        ("blocks", of(&[("01", 1), ("03", 2), ("02", 3), ("04", 4)]), "the time of height 3 is wrong"),
        ("blocks", of(&[("01", 1), ("02", 2), ("02", 3), ("04", 4)]), "the time of height 3 is wrong"),
        ("blocks", of(&[("01.5", 1), ("02", 2), ("03", 3), ("04", 4)]), "the time of height 1 is wrong"),
        ("blocks", of(&[("01", 1), ("02", 2), ("03", 3), ("03.5", 4)]), "the last block is not of 2023"),
        ("blocks", of(&[("01", 1), ("02", 2), ("03", 3), ("05", 4)]), "a row of 2023-06-20 10:30:05+00 is"),
        ("trades", row("2023-06-20 10:30:01+00"), ""),
        ("trades", row("\"2023-06-20 10:30:04+00\""), ""),
        ("trades", row("2023-06-20 10:30:00.999999+00"), "a row of 2023-06-20 10:30:00.999999+00 is outside"),
        ("trades", row("2023-06-20 10:30:04.000001+00"), "a row of 2023-06-20 10:30:04.000001+00 is outside"),
        ("trades", row("infinity"), "a row of infinity is outside"),
    ] {
        let history = History::new();
        let plan = Plan::new(1, 1, 4).with(table, text);
        let (file, name, _) = file(history.folder.path(), &plan, None);
        history.store.publish(&name, file).await.unwrap();
        let found = faults(&history.store).await;
        assert_eq!(found.len(), usize::from(!what.is_empty()), "{what}: {found:?}");
        let starts = |found: &String| found.starts_with(&format!("{name}: history/{table}.csv: {what}"));
        assert!(found.iter().all(starts), "{what}: {found:?}");
    }
}
