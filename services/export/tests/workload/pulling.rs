//! Opening and pulling: the history from segments, the ledger from the database, by any replica from any
//! position. That a download is what PostgreSQL prints, and what damage does to it, is tested from outside, in
//! `exports` of the integration tests.

use std::{fs, os::unix::fs::symlink};

use mesh_bus::{Ask, Position, PullBudget, RequestScope};
use mesh_export::{Refresh, Until};
use mesh_history::SegmentStore;
use mesh_oracles::{Oracle, Question};
use mesh_problem::{Code, Problem};
use proto_msgs::v2::{
    DateRange, ExportLedgerEntriesRequest, ExportNetworkHistoryRequest, ListAllNetworkHistorySegmentsRequest,
    ListDatasetsRequest, Table,
};

use crate::fixture::{Fixture, Whole, Worker};

const WINDOW: PullBudget = PullBudget { chunks: 8, bytes: 4 << 20 };

fn history(table: Table, from: i64, to: i64) -> ExportNetworkHistoryRequest {
    ExportNetworkHistoryRequest {
        from_block: Some(from),
        to_block: Some(to),
        table: table.into(),
        ..Default::default()
    }
}

/// The errors of the lists of segments and of datasets.
async fn errors_of_lists(worker: &Worker) -> [Option<Problem>; 2] {
    let scope = RequestScope::default;
    let listed = worker.export.send(Ask(ListAllNetworkHistorySegmentsRequest {}, scope())).await.unwrap();
    let datasets = worker.export.send(Ask(ListDatasetsRequest {}, scope())).await.unwrap();
    [listed.err(), datasets.err()]
}

async fn assert_lists_fail(worker: &Worker) {
    for problem in errors_of_lists(worker).await {
        let problem = problem.expect("it is left out");
        assert_eq!((problem.code, problem.number()), (Code::Internal, 240_003), "{problem}");
    }
}

#[actix::test]
async fn what_is_held_is_refused_while_it_cannot_be_listed() {
    let fixture = Fixture::blocks(20).await;
    let sealing = fixture.sealing(10);
    sealing.run(Until::Complete).await.unwrap();
    let worker = fixture.export(&sealing.segments).await;
    let name = sealing.segments.list().await.unwrap().segments[0].name.clone();
    let folder = sealing.segments.file(&name).unwrap().parent().unwrap().to_owned();
    std::fs::rename(&folder, fixture.folder.path().join("moved")).unwrap();
    std::fs::write(&folder, "no folder").unwrap();
    assert!(worker.catalogue.send(Refresh).await.unwrap().failure.is_some());
    assert_lists_fail(&worker).await;
    // Whether there are more blocks than were listed before is not known.
    let problem = worker.open(&history(Table::Blocks, 1, 30), 0).await.unwrap_err();
    assert_eq!((problem.code, problem.number()), (Code::Unavailable, 240_014), "{problem}");
}

#[actix::test]
async fn a_segment_that_cannot_be_reached_makes_no_list_shorter() {
    let fixture = Fixture::blocks(20).await;
    let sealing = fixture.sealing(10);
    sealing.run(Until::Complete).await.unwrap();
    let held = sealing.segments.list().await.unwrap().segments;
    let [one, two] = [0, 1].map(|at| sealing.segments.file(&held[at].name).unwrap());
    // Files are listed by the path of the store, and opened in the folder that it led to at the start.
    let (path, listed) = (fixture.folder.path().join("path"), fixture.folder.path().join("listed"));
    symlink(one.ancestors().nth(2).unwrap(), &path).unwrap();
    let segments = SegmentStore::open(path.to_str().unwrap()).unwrap();
    fs::create_dir_all(listed.join("segments")).unwrap();
    for file in [&one, &two] {
        fs::hard_link(file, listed.join("segments").join(file.file_name().unwrap())).unwrap();
    }
    fs::remove_file(&path).unwrap();
    symlink(&listed, &path).unwrap();
    // A link to itself cannot be opened.
    fs::remove_file(&two).unwrap();
    symlink(&two, &two).unwrap();

    let worker = fixture.export(&segments).await;
    assert_lists_fail(&worker).await;
    assert!(worker.open(&history(Table::Blocks, 1, 10), 0).await.is_ok());
    let problem = worker.open(&history(Table::Blocks, 1, 20), 0).await.unwrap_err();
    assert_eq!((problem.code, problem.number()), (Code::Unavailable, 240_014));
    // A damaged one is left out (4.15).
    fs::remove_file(&two).unwrap();
    fs::write(&two, "damaged").unwrap();
    assert!(worker.catalogue.send(Refresh).await.unwrap().failure.is_none());
    assert_eq!(errors_of_lists(&worker).await, [None, None]);
}

#[actix::test]
async fn what_cannot_be_exported_is_refused_with_its_number_and_the_heights_nearby() {
    let fixture = Fixture::blocks(50).await;
    let sealing = fixture.sealing(10);
    sealing.run(Until::Complete).await.unwrap();
    let removed = sealing.segments.list().await.unwrap().segments[3].name.clone();
    sealing.segments.delete(&removed).await.unwrap();
    let worker = fixture.export(&sealing.segments).await;
    let blocks = |from, to| history(Table::Blocks, from, to);
    // Which heights are near is tested in `mesh-history`; invalid parameters are rows of the cases.
    for (request, code, number, inner) in [
        (blocks(11, 10), Code::InvalidArgument, 240_011, "fromBlock 11, toBlock 10"),
        (blocks(5, 20), Code::InvalidArgument, 240_012, "fromBlock 5: nearest valid starts 1, 11"),
        (blocks(1, 15), Code::InvalidArgument, 240_012, "toBlock 15: nearest valid ends 10, 20"),
        (blocks(41, 60), Code::NotFound, 240_013, "missing blocks 51-60"),
    ] {
        let problem = worker.open(&request, 0).await.unwrap_err();
        let actual = (problem.code, problem.number(), problem.details[0].inner.as_str());
        assert_eq!(actual, (code, number, inner), "{request:?}");
    }
    // The segment 31-40 was removed.
    let held = worker.catalogue.send(Refresh).await.unwrap().segments.unwrap();
    let spans: Vec<_> =
        held.segments.iter().map(|segment| (segment.height_from, segment.height_to)).collect();
    assert_eq!(spans, [(1, 10), (11, 20), (21, 30), (41, 50)]);
    let problem = worker.open(&blocks(1, 50), 0).await.unwrap_err();
    assert_eq!((problem.number(), problem.details[0].inner.as_str()), (240_013, "missing blocks 31-40"));
    // The segment 11-20 is removed by another replica after the opening.
    let first = Position::new(worker.open(&blocks(1, 30), 0).await.unwrap().first).unwrap();
    std::fs::remove_file(sealing.segments.file(&held.segments[1].name).unwrap()).unwrap();
    let problem = worker.pull(&blocks(1, 30), &first, WINDOW).await.unwrap_err();
    let actual = (problem.code, problem.number(), problem.details[0].inner.as_str());
    assert_eq!(actual, (Code::NotFound, 240_013, "missing blocks 11-20"));
}

/// The whole ledger of a party and an asset.
async fn expected_ledger(oracle: &Oracle, party: &str, asset: &str, (start, end): (i64, i64)) -> Vec<u8> {
    let range = format!("dateRange.startTimestamp={start}&dateRange.endTimestamp={end}");
    let target = format!("/api/v2/ledgerentry/export?partyId={party}&assetId={asset}&{range}");
    let answer = oracle.answer(&Question::read(&target).unwrap()).await.unwrap().unwrap();
    answer.as_str().unwrap().into()
}

fn ledger(party: &str, asset: &str, start: i64, end: i64) -> ExportLedgerEntriesRequest {
    ExportLedgerEntriesRequest {
        party_id: party.to_owned(),
        asset_id: asset.to_owned(),
        date_range: Some(DateRange { start_timestamp: Some(start), end_timestamp: Some(end) }),
    }
}

#[actix::test]
async fn the_ledger_of_every_party_and_asset_is_what_one_statement_computes() {
    let fixture = Fixture::demo(80).await;
    let oracle = Oracle::open(fixture.database.connect().await).await.unwrap();
    let client = oracle.client();
    let (one, other) = {
        let segments = fixture.sealing(100).segments;
        (fixture.export(&segments).await, fixture.export(&segments).await)
    };
    let pairs = "SELECT DISTINCT party_id, asset_id FROM accounts WHERE party_id IS NOT NULL ORDER BY 1, 2";
    let pairs: Vec<(String, String)> =
        client.query(pairs, &[]).await.unwrap().iter().map(|row| (row.get(0), row.get(1))).collect();
    assert!(pairs.len() > 10 && pairs.iter().any(|(party, _)| party == "network"));
    let times = "SELECT (extract(epoch FROM block_time) * 1000000)::int8 * 1000 FROM blocks ORDER BY height";
    let times: Vec<i64> = client.query(times, &[]).await.unwrap().iter().map(|row| row.get(0)).collect();
    let budgets = [PullBudget { chunks: 2, bytes: 3000 }, WINDOW, PullBudget { chunks: 1, bytes: 70 }];
    let mut rows = 0;
    for (at, (party, asset)) in pairs.iter().enumerate() {
        let ranges =
            [(0, 0), (times[30], 0), (0, times[40]), (times[10] + 1, times[60] + 1), (times[9], times[9])];
        for (start, end) in if at % 4 == 0 { &ranges[..] } else { &ranges[..1] } {
            let request = ledger(party, asset, *start, *end);
            let expected = expected_ledger(&oracle, party, asset, (*start, *end)).await;
            let budgets = if *start == 0 && *end == 0 { &budgets[1..2] } else { &budgets[..] };
            let whole = Worker::whole(&[&one, &other], &request, 0, budgets).await;
            assert!(whole.bytes == expected, "{request:?}");
            let from_one = Worker::whole(&[&one], &request, 0, &budgets[..1]).await;
            assert!(from_one.bytes == expected, "{request:?}, of one replica");
            assert_eq!(whole.totals.bytes, expected.len() as u64);
            rows += whole.totals.rows.unwrap();
        }
    }
    assert!(rows > 1000, "{rows} rows are too few to try");
    let stranger = "ab".repeat(32);
    let empty = Worker::whole(&[&one], &ledger(&stranger, "VOTE", 0, 0), 0, &[WINDOW]).await;
    assert_eq!((empty.bytes.len() as u64, empty.totals.rows), (empty.totals.bytes, Some(0)));
    assert!(empty.bytes == expected_ledger(&oracle, &stranger, "VOTE", (0, 0)).await, "the header");
}

/// The ledger of `p`: 20 accounts, 24,000 entries in blocks of 3 and of 1,500. All entries of the first 6,000, a
/// hundredth of the next 6,000, and so on, are the party's, half of them between its own accounts. They are stored
/// in no order.
const DENSE_AND_SPARSE: &str = include_str!("dense_and_sparse.sql");

#[actix::test]
async fn a_ledger_is_whole_where_the_party_has_most_entries_and_where_it_has_few() {
    let fixture = Fixture::blocks(3).await;
    let client = fixture.database.connect().await;
    client.batch_execute(DENSE_AND_SPARSE).await.unwrap();
    let worker = fixture.export(&fixture.sealing(100).segments).await;
    let oracle = Oracle::open(client).await.unwrap();
    let expected = expected_ledger(&oracle, "p", "X", (0, 0)).await;
    for budget in [PullBudget { chunks: 8, bytes: 1 << 20 }, PullBudget { chunks: 4, bytes: 100_000 }] {
        let whole = Worker::whole(&[&worker], &ledger("p", "X", 0, 0), 0, &[budget]).await;
        assert!(whole.bytes == expected, "{} bytes instead of {}", whole.bytes.len(), expected.len());
    }
}

/// Three accounts of `p` (one of another asset) and one of `q`; entries with unusual values.
const UNUSUAL_ENTRIES: &str = include_str!("unusual_entries.sql");

#[actix::test]
async fn the_shapes_of_entries_and_the_edges_of_ranges_are_exact() {
    let fixture = Fixture::blocks(3).await;
    fixture.database.connect().await.batch_execute(UNUSUAL_ENTRIES).await.unwrap();
    let worker = fixture.export(&fixture.sealing(100).segments).await;
    let at = 1_704_067_201_500_000_000;
    let text = async |start, end, budget| {
        let whole = Worker::whole(&[&worker], &ledger("p", "X", start, end), 0, &[budget]).await;
        String::from_utf8(whole.bytes).unwrap().split_once('\n').unwrap().1.to_owned()
    };
    let one = "2024-01-01 00:00:01.5+00,5,0,,X,\"\",p,GENERAL,1,m,p,MARGIN,2\n";
    let two = "2024-01-01 00:00:01.5+00,7,7,\"\",X,,q,UNSPECIFIED,1,\"\",p,GENERAL,2\n";
    let three = "2024-01-01 00:00:01.5+00,-3,3,\"x,\"\"y\"\"\",X,m,p,MARGIN,-1,,q,UNSPECIFIED,0\n";
    let four = "2024-01-01 00:00:02+00,0,0,\"line\r\nbreak\",X,\"\",p,GENERAL,1,,q,UNSPECIFIED,2\n";
    for budget in [WINDOW, PullBudget { chunks: 1, bytes: 1 }, PullBudget { chunks: 3, bytes: 100 }] {
        assert_eq!(text(0, 0, budget).await, format!("{one}{two}{three}{four}"));
    }
    assert_eq!(text(at, at + 1, WINDOW).await, format!("{one}{two}{three}"), "the end is rounded up");
    assert_eq!(text(at + 1, 0, WINDOW).await, four, "the start is rounded up");
    assert_eq!(text(at, at, WINDOW).await, "");
    assert_eq!(text(0, at, WINDOW).await, "");
    assert_eq!(text(1, i64::MAX, WINDOW).await, format!("{one}{two}{three}{four}"), "around all entries");
    assert_eq!(text(i64::MAX, 0, WINDOW).await, "", "after all entries");
    let opened = worker.open(&ledger("p", "X", at, at + 1), 9).await.unwrap();
    let name = "ledger_entries_p_X_2024-01-01T00_00_01Z-2024-01-01T00_00_01Z.csv";
    assert_eq!((opened.info.file_name.as_str(), opened.from_byte), (name, 0));
}

/// A database with these rows, a replica that reads it, and the whole ledger of `p`.
async fn worker_over(rows: &[&str]) -> (Fixture, Worker, Whole) {
    let fixture = Fixture::blocks(3).await;
    let client = fixture.database.connect().await;
    for rows in rows {
        client.batch_execute(rows).await.unwrap();
    }
    let worker = fixture.export(&fixture.sealing(100).segments).await;
    let whole = Worker::whole(&[&worker], &ledger("p", "X", 0, 0), 0, &[WINDOW]).await;
    (fixture, worker, whole)
}

/// Pulls the beginning of the ledger of `p` and returns it with the position after it; then deletes all
/// ledger entries.
async fn begin_and_truncate(fixture: &Fixture, worker: &Worker, budget: PullBudget) -> (Vec<u8>, Position) {
    let request = ledger("p", "X", 0, 0);
    let first = Position::new(worker.open(&request, 0).await.unwrap().first).unwrap();
    let (head, after, end) = worker.pull(&request, &first, budget).await.unwrap();
    assert_eq!(end, None);
    fixture.database.connect().await.batch_execute("TRUNCATE ledger").await.unwrap();
    (head, after)
}

#[actix::test]
async fn a_pull_continues_the_cached_walk_of_the_pull_before_it() {
    let (fixture, worker, whole) = worker_over(&[UNUSUAL_ENTRIES]).await;
    let (mut bytes, after) =
        begin_and_truncate(&fixture, &worker, PullBudget { chunks: 1, bytes: 300 }).await;
    let request = ledger("p", "X", 0, 0);
    let (rest, _, end) = worker.pull(&request, &after, WINDOW).await.unwrap();
    bytes.extend(rest);
    assert!(bytes == whole.bytes && end == Some(whole.totals), "the one before it had read all");
    let (again, ..) = worker.pull(&request, &after, WINDOW).await.unwrap();
    assert!(again.is_empty(), "a new walk finds no entries");
}

/// Entries of `p` with more accounts than a cached walk may have looked up.
const MANY_ACCOUNTS: &str = include_str!("many_accounts.sql");

#[actix::test]
async fn a_walk_with_too_many_accounts_is_not_cached() {
    let (fixture, worker, whole) = worker_over(&[UNUSUAL_ENTRIES, MANY_ACCOUNTS]).await;
    let most = u32::try_from(whole.bytes.len()).unwrap() - 50;
    let (head, after) = begin_and_truncate(&fixture, &worker, PullBudget { chunks: 4, bytes: most }).await;
    assert!(whole.bytes.starts_with(&head));
    let (rest, ..) = worker.pull(&ledger("p", "X", 0, 0), &after, WINDOW).await.unwrap();
    assert!(rest.is_empty(), "the walk was not cached");
}

#[actix::test]
async fn an_export_stays_what_it_was_at_its_opening_and_a_database_behind_it_refuses() {
    let fixture = Fixture::blocks(3).await;
    let client = fixture.database.connect().await;
    client.batch_execute(UNUSUAL_ENTRIES).await.unwrap();
    let worker = fixture.export(&fixture.sealing(100).segments).await;
    let request = ledger("p", "X", 0, 0);
    let first = Position::new(worker.open(&request, 0).await.unwrap().first).unwrap();
    let before = worker.pull(&request, &first, WINDOW).await.unwrap();
    let later = "INSERT INTO blocks VALUES ('2024-01-01 00:00:09+00', 9, 'ab');
        INSERT INTO ledger VALUES
        ('2024-01-01 00:00:09+00', 'a', 'b', 5, 'ab', '2024-01-01 00:00:09+00', '2024-01-01', 1, 2, NULL)";
    client.batch_execute(later).await.unwrap();
    assert_eq!(worker.pull(&request, &first, WINDOW).await.unwrap().0, before.0);
    let newest = Position::new(worker.open(&request, 0).await.unwrap().first).unwrap();
    assert!(worker.pull(&request, &newest, WINDOW).await.unwrap().0.len() > before.0.len());
    let behind = Fixture::blocks(3).await;
    let behind = behind.export(&behind.sealing(100).segments).await;
    let problem = behind.pull(&request, &newest, WINDOW).await.unwrap_err();
    assert_eq!(problem.code, Code::Unavailable, "another replica may have it");
}
