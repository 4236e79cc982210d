//! A whole history: the plain text of its members, and what a verification finds.

use std::fs;

use mesh_history::{Deadlines, HistoryError, SegmentStore};

use crate::made::{History, Plan, dice, file, table};

fn plan(from: u64) -> Plan {
    let mut dice = dice(from);
    let mut plan = Plan::new(1, from, from + 9)
        .with("orders", table(&mut dice, &["id", "note"], 300, 100))
        .with("trades", "id\n");
    plan.members.push(("currentstate/accounts.csv".to_owned(), table(&mut dice, &["id", "type"], 9, 10)));
    plan
}

async fn faults(store: &SegmentStore) -> Vec<String> {
    let verified = store.verify_all(|_, _, _| {}).await.unwrap();
    verified.faults.iter().map(ToString::to_string).collect()
}

#[tokio::test]
async fn the_text_of_a_member_is_what_was_sealed_in_pieces_of_bounded_length() {
    let long = [b"id\n".to_vec(), b"0\n".repeat(3 << 20)].concat();
    let noise = table(&mut dice(7), &["id", "note"], 9000, 900);
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
    assert!(reader.next().await.is_err(), "and it goes on having none");

    // Another text, sealed rightly, under the figures of the first.
    let other = History::of(&[Plan::new(1, 1, 10).with("trades", "id\n")]).await;
    let mut trades = other.store.list().await.unwrap().segments[0].history("trades").unwrap().clone();
    trades.sha256 = orders.sha256;
    let mut reader = other.store.text(&other.store.list().await.unwrap().segments[0], &trades);
    assert!(reader.next().await.unwrap().is_some());
    assert!(reader.next().await.unwrap_err().to_string().contains("hash"));
}

#[tokio::test]
async fn a_whole_history_has_no_fault_wherever_it_lies() {
    let history = History::of(&[plan(1), plan(11), plan(21)]).await;
    let mut told = Vec::new();
    let verified = history.store.verify_all(|name, number, all| told.push((name.height_from, number, all)));
    let verified = verified.await.unwrap();
    assert_eq!((verified.sound.len(), verified.faults.len(), verified.begins_late), (3, 0, false));
    assert_eq!(told, [(1, 1, 3), (11, 2, 3), (21, 3, 3)]);
    // The home, or the folder itself.
    for folder in [history.folder.path().to_owned(), history.folder.path().join("segments")] {
        let store = SegmentStore::open_folder(&folder, Deadlines::default()).unwrap();
        assert_eq!(store.verify_all(|_, _, _| {}).await.unwrap().sound.len(), 3);
    }
    SegmentStore::open_folder(&history.folder.path().join("none"), Deadlines::default()).unwrap_err();
    assert!(!history.folder.path().join("none").exists());

    fs::remove_file(history.path(&verified.sound[0].name)).unwrap();
    let verified = history.store.verify_all(|_, _, _| {}).await.unwrap();
    assert_eq!((verified.sound.len(), verified.faults.len(), verified.begins_late), (2, 0, true));
}

#[tokio::test]
async fn each_fault_is_told_of_the_segment_that_has_it() {
    let plans = [plan(1), plan(11), plan(21), plan(31)];
    let whole = History::of(&plans).await;
    let held = whole.store.list().await.unwrap();
    let [one, two, three, four] = [0, 1, 2, 3].map(|number| held.segments[number].clone());
    let fresh = async || {
        let history = History::new();
        fs::create_dir(history.folder.path().join("segments")).unwrap();
        for segment in &held.segments {
            fs::copy(whole.path(&segment.name), history.path(&segment.name)).unwrap();
        }
        history
    };

    // A bit of each kind of member: metadata, header and rows of a table, a state, the layout.
    let offsets = [
        45,
        two.history("orders").unwrap().index.header.offset + 3,
        two.history("orders").unwrap().index.rows.offset + 100,
        two.member("currentstate/accounts.csv").unwrap().index.rows.offset + 5,
        two.member("currentstate/accounts.csv").unwrap().index.rows.offset + 400,
    ];
    for (at, part) in
        offsets.into_iter().zip(["metadata.json", "orders", "orders", "accounts", "layout.json"])
    {
        let history = fresh().await;
        let mut object = fs::read(history.path(&two.name)).unwrap();
        let at = match part {
            "layout.json" => {
                let local = object.windows(11).position(|bytes| bytes == b"layout.json").unwrap();
                local + 40
            }
            _ => at as usize,
        };
        object[at] ^= 4;
        fs::write(history.path(&two.name), object).unwrap();
        let found = faults(&history.store).await;
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].starts_with(&format!("{}: ", two.name)) && found[0].contains(part), "{found:?}");
    }

    // Cut short; another's name; missing; not a segment's name.
    let history = fresh().await;
    let object = fs::read(history.path(&three.name)).unwrap();
    fs::write(history.path(&three.name), &object[..object.len() / 2]).unwrap();
    let found = faults(&history.store).await;
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(found[0].starts_with(&three.name.to_string()), "{found:?}");

    let history = fresh().await;
    fs::rename(history.path(&four.name), history.folder.path().join("segments/mesh-1-31-50.zip")).unwrap();
    fs::write(history.folder.path().join("segments/notes.zip"), "").unwrap();
    fs::write(history.folder.path().join("segments/notes.txt"), "").unwrap();
    assert_eq!(
        faults(&history.store).await,
        [
            "mesh-1-31-50.zip: it holds what mesh-1-31-40.zip should",
            "notes.zip: it is not named as a segment"
        ]
    );

    let history = fresh().await;
    fs::remove_file(history.path(&two.name)).unwrap();
    assert_eq!(
        faults(&history.store).await,
        [format!("{}: no segment holds the heights 11 to 20 before it", three.name)]
    );

    // Segments that were sealed apart: a wrong previous id, none, the same heights twice, another chain, a time
    // that goes back.
    let history = fresh().await;
    let replace = |plan: &Plan, previous| {
        let (file, name, _) = file(history.folder.path(), plan, previous);
        fs::copy(file.path(), history.path(&name)).unwrap();
    };
    replace(&plan(31), Some(two.id));
    replace(&plan(21), None);
    assert_eq!(
        faults(&history.store).await,
        [
            format!("{}: it names no previous segment, but {} ends right before it", three.name, two.name),
            format!("{}: its previous id is {}, but {} has the id {}", four.name, two.id, three.name, {
                history.store.list().await.unwrap().segments[2].id
            }),
        ]
    );
    let history = fresh().await;
    let add = |plan: &Plan, previous| {
        let (file, name, id) = file(history.folder.path(), plan, previous);
        fs::copy(file.path(), history.path(&name)).unwrap();
        (name, id)
    };
    let (twice, _) = add(&Plan { from: 25, to: 40, ..plan(31) }, Some(three.id));
    let (foreign, _) = add(&Plan { chain_id: "other".to_owned(), ..plan(41) }, Some(four.id));
    assert_eq!(
        faults(&history.store).await,
        [
            format!("{twice}: its heights are also those of {}", three.name),
            format!("{}: its heights are also those of {twice}", four.name),
            format!("{foreign}: it is of chain \"other\", {} of \"mesh\"", one.name),
            format!("{foreign}: its previous id is {}, but {twice} has the id {}", four.id, {
                history.store.list().await.unwrap().segments[3].id
            }),
        ]
    );
}

#[tokio::test]
async fn text_that_breaks_the_rules_is_found_although_its_hash_is_right() {
    for (text, what) in [
        ("id,note\n1,2\n3\n", "record 2 has 1 fields, not 2"),
        ("id,note\n1,\"2\"x\n", "a quote stands where none may"),
        ("id,note\n1,2\r\n", "a record ends with a carriage return"),
    ] {
        let history = History::new();
        let plan = Plan::new(1, 1, 9).with("trades", text);
        let (file, name, _) = file(history.folder.path(), &plan, None);
        history.store.publish(&name, file.path()).await.unwrap();
        let found = faults(&history.store).await;
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].starts_with(&format!("{name}: history/trades.csv: {what}")), "{found:?}");
    }
}
