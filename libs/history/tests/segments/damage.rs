//! Verification detects damage in every byte.

use std::fs;

use mesh_history::{Metadata, SegmentIndex, verify_file};
use rand::Rng;

use crate::{Plan, file, rng, table, unzip};

fn plan() -> Plan {
    let mut rng = rng(31);
    let mut plan = Plan::new(1, 1, 100)
        .with("orders", table(&mut rng, &["id", "note"], 30, 100))
        .with("trades", "id,price\n");
    plan.members.push(("currentstate/accounts.csv".to_owned(), table(&mut rng, &["id", "type"], 9, 10)));
    plan
}

#[tokio::test]
async fn verification_finds_every_flipped_bit_and_every_cut() {
    let folder = tempfile::tempdir().unwrap();
    let (file, name, id) = file(folder.path(), &plan(), None);
    let whole = fs::read(file.path()).unwrap();
    let segment = verify_file(&name, file.path()).unwrap();
    assert_eq!((segment.id, segment.members.len()), (id, 3));

    // The two JSON members are compared by their hashes: a changed bit that inflates to the same text
    // (another distance to the same words) is not detected. In CSV members every changed bit is.
    let find = |name: &str| whole.windows(name.len()).position(|w| w == name.as_bytes()).unwrap();
    let (members, layout) = (find("history/orders.csv"), find("layout.json"));
    let texts = unzip(&whole).await;
    let mut rng = rng(32);
    let path = folder.path().join("changed");
    for at in 0..whole.len() {
        let mut changed = whole.clone();
        changed[at] ^= 1 << rng.random_range(0..8);
        fs::write(&path, &changed).unwrap();
        let verified = verify_file(&name, &path);
        if verified.is_ok() {
            assert!(at < members || at > layout, "byte {at} of {}", whole.len());
            assert_eq!(unzip(&changed).await, texts);
        }
    }
    for length in (0..whole.len()).step_by(7).chain([whole.len() - 1]) {
        fs::write(&path, &whole[..length]).unwrap();
        assert!(verify_file(&name, &path).is_err(), "{length}");
    }
    let mut grown = whole.clone();
    grown.push(0);
    fs::write(&path, &grown).unwrap();
    assert!(verify_file(&name, &path).is_err());
}

#[test]
fn readers_of_texts_take_anything() {
    let folder = tempfile::tempdir().unwrap();
    let (file, ..) = file(folder.path(), &plan(), None);
    let texts = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let texts = texts.block_on(unzip(&fs::read(file.path()).unwrap()));
    let good = Metadata::read(&texts[0].1).unwrap();
    SegmentIndex::read(&texts[4].1, &good).unwrap();
    let mut rng = rng(34);
    let mut refused = 0;
    for _ in 0..20_000 {
        let mut text = texts[[0, 4][rng.random_range(0..2)]].1.clone();
        for _ in 0..rng.random_range(1..4) {
            let at = rng.random_range(0..text.len());
            match rng.random_range(0..4) {
                0 => text[at] = b"0123456789{}[]\",:-e"[rng.random_range(0..19)],
                1 => text[at] = rng.random(),
                2 => drop(text.splice(at..at, *b"99999999999")),
                _ => text.truncate(at + 1),
            }
        }
        refused += usize::from(Metadata::read(&text).is_err() && SegmentIndex::read(&text, &good).is_err());
    }
    assert!(refused > 10_000, "{refused}");
}
