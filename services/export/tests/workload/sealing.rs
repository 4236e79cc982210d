//! Sealing on a real database: the content of segments, and that each is made once.

use mesh_export::{Rules, Sealed, Sealing, Until};
use mesh_history::{Digest, Member, Segment, SegmentName};
use mesh_testbed::{eventually, primary_key};
use proto_msgs::v2::Table;
use tokio::runtime::Handle;
use tokio_postgres::Client;

use crate::fixture::{Fixture, copied, sealed_names};

/// The statement that copies the rows of a member: in the order of the primary key that the catalogue names,
/// with bounds written independently of the product.
async fn own_copy(client: &Client, member: &str, from: u64, to: u64) -> String {
    let time = |height: u64| format!("(SELECT block_time FROM blocks WHERE height = {height})");
    let (first, last) = (time(from), time(to));
    let select = match member {
        "currentstate/chain.csv" => "SELECT id, onerow_check FROM chain".to_owned(),
        "currentstate/current_balances.csv" => format!(
            "SELECT DISTINCT ON (account_id) account_id, tx_hash, block_time, balance FROM balances
            WHERE block_time <= {last} ORDER BY account_id, block_time DESC"
        ),
        "currentstate/delegations_current.csv" => format!(
            "SELECT DISTINCT ON (party_id, node_id, epoch_id) * FROM delegations
            WHERE block_time <= {last} ORDER BY party_id, node_id, epoch_id, block_time DESC, seq_num DESC"
        ),
        _ => {
            let (kind, table) = member.strip_suffix(".csv").unwrap().split_once('/').unwrap();
            let lower = if kind == "history" { format!("block_time >= {first} AND") } else { String::new() };
            let key = primary_key(client, table).await;
            format!("SELECT * FROM {table} WHERE {lower} block_time <= {last} ORDER BY {key}")
        }
    };
    format!("COPY ({select}) TO STDOUT (FORMAT csv, HEADER)")
}

#[actix::test]
async fn every_member_is_what_postgresql_copies_and_segments_form_a_chain() {
    let fixture = Fixture::demo(130).await;
    let client = fixture.database.connect().await;
    // The state of a segment must not contain later blocks. An upgrade is approved in block 80.
    let sealing = fixture.sealing(50);
    let sealed = sealed_names(sealing.run(Until::Complete).await.unwrap());
    assert_eq!(sealed, [(1, 50), (51, 80), (81, 100)]);
    let held = sealing.segments.list().await.unwrap();
    assert!(held.unreadable.is_empty());
    let mut previous = None;
    for segment in &held.segments {
        let (history, current) = segment.members.split_at(Table::exportable().len());
        let names = |members: &[Member]| -> Vec<String> {
            members.iter().map(|member| member.index.name.clone()).collect()
        };
        assert!(
            names(history).is_sorted()
                && history.iter().all(|member| member.index.name.starts_with("history/"))
        );
        assert_eq!((names(current).is_sorted(), current.len()), (true, 9));
        assert_eq!(segment.previous_id, previous);
        previous = Some(segment.id);
        for member in &segment.members {
            let name = &member.index.name;
            let text =
                copied(&client, &own_copy(&client, name, segment.height_from, segment.height_to).await).await;
            assert_eq!(member.sha256, Digest::of(&text), "{name} of {}", segment.name);
        }
    }
    assert!(held.segments[0].history("trades").unwrap().rows > 0);
    assert!(held.segments[1].member("currentstate/current_balances.csv").unwrap().rows > 0);
    assert_eq!(
        sealing.run(Until::Complete).await.unwrap(),
        Sealed::Here(Vec::new()),
        "nothing is left to do"
    );
    let closed = sealed_names(sealing.run(Until::Newest).await.unwrap());
    assert_eq!(closed, [(101, 130)], "a migration closes the running segment");
}

/// A block that comes meanwhile belongs to the next segment.
#[tokio::test(flavor = "multi_thread")]
async fn the_running_segment_is_closed_once() {
    let fixture = Fixture::blocks(13).await;
    let sealing = fixture.sealing(10);
    let mut next = 14;
    let mut published = |_: &Segment| {
        let written = fixture.write_blocks(next..=next);
        next += 1;
        tokio::task::block_in_place(|| Handle::current().block_on(written));
    };
    let sealed = sealed_names(sealing.run_telling(Until::Newest, &mut published).await.unwrap());
    assert_eq!(sealed, [(1, 10), (11, 13)]);
}

#[actix::test]
async fn several_sealers_at_once_make_each_segment_once() {
    let fixture = Fixture::blocks(200).await;
    let sealing = fixture.sealing(20);
    let runs = futures_util::future::join_all((0..4).map(|_| sealing.run(Until::Complete))).await;
    let mut made = Vec::new();
    let mut elsewhere = 0;
    for run in runs {
        match run.unwrap() {
            Sealed::Here(names) => made.extend(names.iter().map(|name| (name.height_from, name.height_to))),
            Sealed::Elsewhere => elsewhere += 1,
        }
    }
    made.sort_unstable();
    assert_eq!(made, (0..10_u64).map(|n| (n * 20 + 1, n * 20 + 20)).collect::<Vec<_>>());
    assert!(elsewhere > 0, "a sealer had to wait");
    assert_eq!(sealing.segments.list().await.unwrap().segments.len(), 10);
}

#[actix::test]
async fn what_is_older_than_the_retention_is_removed() {
    let fixture = Fixture::blocks(100).await;
    let mut sealing = fixture.sealing(10);
    sealing.rules = Rules { retention_blocks: 35, ..sealing.rules };
    let client = fixture.database.connect().await;
    // Without block 85 sealing fails, as it does on a full disk.
    for (change, sealed) in [("height = -85 WHERE height = 85", 80), ("height = 85 WHERE height = -85", 100)]
    {
        client.batch_execute(&format!("UPDATE blocks SET {change}")).await.unwrap();
        let result = sealing.run(Until::Complete).await;
        assert_eq!(result.is_ok(), sealed == 100, "{result:?}");
        let held = sealing.segments.list().await.unwrap();
        let retained: Vec<_> = held.segments.iter().map(|segment| segment.height_to).collect();
        assert_eq!(retained, [sealed - 30, sealed - 20, sealed - 10, sealed]);
    }
}

#[actix::test]
async fn blocks_of_before_1970_are_sealed() {
    let fixture = Fixture::blocks(20).await;
    let client = fixture.database.connect().await;
    // Block 10 is half a second before 1970, block 11 half a second after its begin.
    let earlier =
        "UPDATE blocks SET block_time = block_time - (timestamptz '2024-01-01 00:00:10.5+00' - 'epoch')";
    client.batch_execute(earlier).await.unwrap();
    let sealing = fixture.sealing(10);
    let sealed = sealed_names(sealing.run(Until::Complete).await.unwrap());
    assert_eq!(sealed, [(1, 10), (11, 20)]);
    let list = sealing.segments.list().await.unwrap();
    let times: Vec<_> = list.segments.iter().map(|segment| segment.block_time_to).collect();
    assert_eq!(times, [-500_000_000, 9_500_000_000]);
    for segment in &list.segments {
        sealing.segments.verify(&segment.name).await.unwrap();
    }
    assert_eq!(sealed_names(sealing.run(Until::Complete).await.unwrap()), []);
}

#[actix::test]
async fn a_span_with_a_gap_or_times_that_do_not_rise_is_refused_until_it_is_repaired() {
    for (spoil, fault) in [
        ("DELETE FROM blocks WHERE height = 15", "height 15 is missing"),
        ("DELETE FROM blocks WHERE height IN (11, 12)", "heights 11 to 12 are missing"),
        ("DELETE FROM blocks WHERE height IN (18, 20)", "height 18 is missing"),
        ("DELETE FROM blocks WHERE height BETWEEN 20 AND 24", "height 20 is missing"),
        (
            "UPDATE blocks SET block_time = block_time - interval '2.5 s' WHERE height = 16",
            "block 16 is not later than block 15",
        ),
        (
            "UPDATE blocks SET block_time = block_time - interval '2.5 s' WHERE height = 21",
            "block 21 is from between their times",
        ),
        (
            "DELETE FROM blocks WHERE height <= 10; UPDATE blocks SET block_time = '2024-01-01' WHERE height = 11",
            "block 11 is not later than the last one of test-1-1-1-10.zip",
        ),
    ] {
        let fixture = Fixture::blocks(30).await;
        let client = fixture.database.connect().await;
        client
            .batch_execute("CREATE TABLE whole AS TABLE blocks; DELETE FROM blocks WHERE height > 10")
            .await
            .unwrap();
        let sealing = fixture.sealing(10);
        sealing.run(Until::Complete).await.unwrap();
        client.batch_execute("INSERT INTO blocks SELECT * FROM whole WHERE height > 10").await.unwrap();
        client.batch_execute(spoil).await.unwrap();
        for until in [Until::Complete, Until::Newest] {
            let error = sealing.run(until).await.unwrap_err();
            assert_eq!(error.to_string(), format!("blocks 11 to 20 cannot be sealed: {fault}"));
        }
        assert_eq!(sealing.segments.list().await.unwrap().segments.len(), 1, "1-10 is sealed");
        client.batch_execute("TRUNCATE blocks; INSERT INTO blocks TABLE whole").await.unwrap();
        let sealed = sealed_names(sealing.run(Until::Complete).await.unwrap());
        assert_eq!(sealed, [(11, 20), (21, 30)], "{fault}");
    }
}

#[actix::test]
async fn files_of_another_chain_do_not_count() {
    let fixture = Fixture::blocks(20).await;
    let mut sealing = fixture.sealing(10);
    sealing.run(Until::Complete).await.unwrap();
    let client = fixture.database.connect().await;
    client.batch_execute("UPDATE chain SET id = 'other'").await.unwrap();
    fixture.write_blocks(21..=40).await;
    let mut folders = std::fs::read_dir(fixture.folder.path()).unwrap().map(|entry| entry.unwrap().path());
    let root = folders.find(|folder| *folder != fixture.scratch()).unwrap();
    std::fs::write(root.join("segments/third-1-41-50.zip"), "").unwrap();
    sealing.rules = Rules { retention_blocks: 15, ..sealing.rules };
    let sealed = sealed_names(sealing.run(Until::Complete).await.unwrap());
    assert_eq!(sealed, [(1, 10), (11, 20), (21, 30), (31, 40)], "from its own first block");
    let (mut own, mut others) = sealing.segments.list().await.unwrap().of_chain("other");
    others.sort();
    let name = |chain, from, to| SegmentName::new(chain, 1, from, to);
    assert_eq!(others, [name("test-1", 1, 10), name("test-1", 11, 20), name("third", 41, 50)], "they stay");
    let own: Vec<_> =
        own.segments.drain(..).map(|segment| (segment.name.clone(), segment.previous_id)).collect();
    assert_eq!(own.len(), 2, "the retention is that of the chain: {own:?}");

    let worker = fixture.export(&sealing.segments).await;
    let listing = worker.catalogue.send(mesh_export::Refresh).await.unwrap().segments.unwrap();
    assert_eq!((listing.segments.len(), listing.unreadable.len()), (2, 0));

    let empty = Fixture::blocks(0).await;
    empty.database.connect().await.batch_execute("DELETE FROM chain").await.unwrap();
    let of_no_chain = Sealing { database_url: empty.database.url().to_owned(), ..sealing.clone() };
    assert_eq!(of_no_chain.run(Until::Complete).await.unwrap(), Sealed::Here(Vec::new()));
    assert_eq!(sealing.segments.list().await.unwrap().segments.len(), 4, "no chain has no retention");
}

/// A network that was reset under its name, or a new database beside the segments of the old one.
#[actix::test]
async fn the_blocks_of_another_history_do_not_continue_segments() {
    let fixture = Fixture::blocks(20).await;
    let sealing = fixture.sealing(10);
    assert_eq!(sealed_names(sealing.run(Until::Complete).await.unwrap()), [(1, 10), (11, 20)]);
    assert_eq!(sealing.fault().await.unwrap(), None);
    let client = fixture.database.connect().await;
    let shift = "UPDATE blocks SET block_time = block_time + interval '1 day'";
    client.batch_execute(shift).await.unwrap();
    for more in [21..=30, 31..=40] {
        let error = sealing.run(Until::Complete).await.unwrap_err().to_string();
        assert!(
            error.contains("blocks 11 to 20") && error.contains("test-1-1-11-20.zip has other blocks"),
            "{error}"
        );
        fixture.write_blocks(more).await;
    }
    assert_eq!(sealing.segments.list().await.unwrap().segments.len(), 2);
    // The new history has not reached the end of the old one.
    let lower = Fixture::blocks(15).await;
    lower.database.connect().await.batch_execute(shift).await.unwrap();
    let of_lower = Sealing { database_url: lower.database.url().to_owned(), ..sealing.clone() };
    let error = of_lower.run(Until::Complete).await.unwrap_err().to_string();
    assert!(error.contains("test-1-1-11-20.zip has other blocks"), "{error}");
    // Blocks that all histories have, such as the first one, are no proof: nothing is called final so early.
    let begun = Fixture::blocks(5).await;
    let client = begun.database.connect().await;
    client.batch_execute(&format!("{shift} WHERE height > 1")).await.unwrap();
    let of_begun = Sealing { database_url: begun.database.url().to_owned(), ..sealing.clone() };
    assert_eq!(of_begun.run(Until::Complete).await.unwrap(), Sealed::Here(Vec::new()));
    let noted = client.query("SELECT FROM last_snapshot_span", &[]).await.unwrap();
    assert!(noted.is_empty());
    // A segment in the middle that is gone is no matter of the next span.
    let client = fixture.database.connect().await;
    client
        .batch_execute("UPDATE blocks SET block_time = block_time - interval '1 day' WHERE height <= 20")
        .await
        .unwrap();
    assert_eq!(sealed_names(sealing.run(Until::Complete).await.unwrap()), [(21, 30), (31, 40)]);
    sealing.segments.delete(&SegmentName::new("test-1", 1, 11, 20)).await.unwrap();
    assert_eq!(sealed_names(sealing.run(Until::Complete).await.unwrap()), []);
    let fault = sealing.fault().await.unwrap().unwrap();
    assert!(fault.contains("no segment holds the heights 11 to 20"), "{fault}");
}

#[actix::test]
async fn a_segment_that_is_there_and_cannot_be_listed_ends_the_run() {
    let fixture = Fixture::blocks(20).await;
    let sealing = fixture.sealing(10);
    let file = sealing.segments.file(&SegmentName::new("test-1", 1, 1, 10)).unwrap();
    std::fs::create_dir_all(file).unwrap();
    let run = tokio::time::timeout(std::time::Duration::from_secs(60), sealing.run(Until::Complete));
    let error = run.await.expect("it is tried without an end").unwrap_err();
    assert!(error.to_string().contains("test-1-1-1-10.zip is in the store"), "{error}");
}

#[actix::test]
async fn a_crash_in_the_middle_leaves_nothing_and_no_lock() {
    let fixture = Fixture::demo(60).await;
    let sealing = fixture.sealing(20);
    // Runs dropped after different times stand for processes that die.
    for after_ms in [1, 5, 15, 30, 60, 100] {
        let run = sealing.run(Until::Complete);
        let _ = tokio::time::timeout(std::time::Duration::from_millis(after_ms), run).await;
        for segment in sealing.segments.list().await.unwrap().segments {
            sealing.segments.verify(&segment.name).await.unwrap();
        }
    }
    // The server may need a moment to notice the closed session.
    let runs = async || sealing.run(Until::Complete).await.unwrap() != Sealed::Elsewhere;
    eventually(std::time::Duration::from_secs(10), "the lock is never free", runs).await;
    let held = sealing.segments.list().await.unwrap();
    assert_eq!(
        (held.segments.len(), held.unreadable.len()),
        (4, 0),
        "1-20, an upgrade's 21-38, 39-40, 41-60"
    );
    assert_eq!(
        std::fs::read_dir(fixture.scratch()).unwrap().count(),
        0,
        "nothing is left in the scratch folder"
    );
}
