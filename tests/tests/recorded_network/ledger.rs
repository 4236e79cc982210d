//! ExportLedgerEntries: the file of every party and asset, in every form of date range, compared with the
//! recording's files; and the sums of its effects compared with the balances (I4).
//!
//! By default every pair is requested without a range and a few of them with the other ranges.
//! `MESH_TEST_LEDGER_PAIRS` sets how many, `all` for all of them (ten thousand downloads); `MESH_TEST_SEED`
//! repeats a run.

use std::{env, time::Instant};

use mesh_oracles::Question;
use mesh_tests::{rpc::Call, say};
use rand::{SeedableRng, rngs::SmallRng, seq::IteratorRandom};

use crate::recorded_network::recording::{Recording, with_recording};

/// Number of pairs that are requested with all ranges by default.
const PAIRS: usize = 12;

const SECOND: i64 = 1_000_000_000;

/// The bounds of a range, nanoseconds since the Unix epoch; `None` leaves one out.
type Range = (Option<i64>, Option<i64>);

/// All forms of a date range around the times of a pair's own entries.
fn shapes(times: &[i64]) -> Vec<Range> {
    let (first, last) = (times[0], times[times.len() - 1]);
    let (low, middle, high) = (times[times.len() / 4], times[times.len() / 2], times[times.len() * 3 / 4]);
    let between = middle + (last - middle) / 2 + 1;
    vec![
        // One bound or both at the time of an entry: the start is inclusive, the end exclusive.
        (Some(middle), None),
        (None, Some(middle)),
        (Some(low), Some(high)),
        (Some(first), Some(last)),
        (Some(first), Some(last + 1)),
        // Between entries.
        (Some(between), None),
        (None, Some(between)),
        (Some(first - SECOND), Some(between)),
        // Equal bounds.
        (Some(middle), Some(middle)),
        (Some(1), Some(1)),
        // Before, after and around all entries.
        (None, Some(first)),
        (Some(1), Some(first - SECOND)),
        (Some(last + 1), None),
        (Some(last + SECOND), Some(i64::MAX)),
        (Some(first - SECOND), Some(last + SECOND)),
        (Some(i64::MAX), None),
        // Open bounds, as 0.
        (Some(0), Some(0)),
        (Some(middle), Some(0)),
        // Less than a microsecond from an entry: stored microseconds are compared with exact nanoseconds.
        (Some(middle - 1), None),
        (Some(middle + 1), None),
        (None, Some(middle - 1)),
        (None, Some(middle + 1)),
        (Some(middle - 999), Some(middle + 1)),
        (Some(middle + 1), Some(middle + 999)),
        (Some(middle - 999), Some(middle)),
        (Some(middle), Some(middle + 1)),
    ]
}

/// All pairs of a party and an asset, with the times of their entries.
const PAIRS_WITH_TIMES: &str = "SELECT party, asset, ARRAY(
        SELECT pg_temp.ns(ledger.block_time) FROM ledger
        JOIN accounts AS sender ON sender.id = account_from_id
        JOIN accounts AS receiver ON receiver.id = account_to_id
        WHERE party IN (sender.party_id, receiver.party_id) AND sender.asset_id = asset
        ORDER BY ledger_entry_time)
    FROM (SELECT DISTINCT party_id AS party FROM accounts) AS parties,
        (SELECT asset_id AS asset FROM accounts UNION SELECT id FROM assets) AS assets ORDER BY party, asset";

/// A party, an asset, and the times of their entries.
type Pair = (String, String, Vec<i64>);

async fn pairs(recording: &Recording) -> Vec<Pair> {
    let rows = recording.oracle.client().query(PAIRS_WITH_TIMES, &[]).await.unwrap();
    rows.iter().map(|row| (row.get(0), row.get(1), row.get(2))).collect()
}

/// Compares a downloaded file with that of the oracle; returns its number of rows.
async fn compare(recording: &Recording, (party, asset, _): &Pair, range: Range) -> usize {
    let mut path = format!("/api/v2/ledgerentry/export?partyId={party}&assetId={asset}");
    for (name, bound) in [("start", range.0), ("end", range.1)] {
        if let Some(ns) = bound {
            path.push_str(&format!("&dateRange.{name}Timestamp={ns}"));
        }
    }
    let answer = recording.mesh.get(&path).await;
    assert_eq!(answer.status, 200, "{path}: {answer:?}");
    let expected = recording.oracle.answer(&Question::read(&path).unwrap()).await.unwrap().unwrap();
    let expected = expected.as_str().unwrap();
    for (line, (found, expected)) in answer.text().lines().zip(expected.lines()).enumerate() {
        assert_eq!(found, expected, "line {} of {path}", line + 1);
    }
    assert_eq!(answer.text().len(), expected.len(), "{path}");
    let rows = expected.lines().count() - 1;
    if rows > 0 {
        let messages = recording.rpc.download(&Call::from_path(&path).unwrap()).await.unwrap();
        let over_grpc: Vec<u8> = messages.iter().flat_map(|message| message.data.to_vec()).collect();
        assert!(over_grpc == answer.body, "{path} over gRPC: {} bytes", over_grpc.len());
    }
    rows
}

#[test]
fn the_ledger_of_every_party_and_asset_is_what_was_recorded() {
    with_recording(async |recording| {
        let pairs = pairs(recording).await;
        let begun = Instant::now();
        let (mut rows, mut with_rows) = (0, 0);
        for pair in &pairs {
            let found = compare(recording, pair, (None, None)).await;
            rows += found;
            with_rows += usize::from(found > 0);
        }
        // An entry between two parties is in the file of both.
        assert_eq!(rows, pairs.iter().map(|(_, _, times)| times.len()).sum::<usize>());
        assert!(rows > 400, "{rows}");
        let (pairs, ms) = (pairs.len(), begun.elapsed().as_millis());
        say(&format!(
            "ExportLedgerEntries: {pairs} pairs equal, {with_rows} of them with {rows} rows, these over gRPC too, in {ms} ms"
        ));
    });
}

#[test]
fn every_shape_of_date_range_gives_the_entries_in_it() {
    with_recording(async |recording| {
        let pairs = pairs(recording).await;
        let has_rows = |(_, _, times): &&Pair| !times.is_empty();
        let given = env::var("MESH_TEST_LEDGER_PAIRS").ok();
        let seed = env::var("MESH_TEST_SEED").ok().map_or(20_230_118, |seed| seed.parse().unwrap());
        let chosen: Vec<&Pair> = match given.as_deref() {
            Some("all") => pairs.iter().collect(),
            number => {
                let number = number.map_or(PAIRS, |number| number.parse().unwrap());
                pairs.iter().filter(has_rows).choose_multiple(&mut SmallRng::seed_from_u64(seed), number)
            }
        };
        let begun = Instant::now();
        let (mut files, mut rows, mut empty) = (0, 0, 0);
        for pair in &chosen {
            let head = [recording.head.time_ns];
            for range in shapes(if pair.2.is_empty() { &head } else { &pair.2 }) {
                let found = compare(recording, pair, range).await;
                files += 1;
                rows += found;
                empty += usize::from(found == 0);
            }
        }
        assert!(rows > 0 && empty > 0);
        let (pairs, ms) = (chosen.len(), begun.elapsed().as_millis());
        say(&format!(
            "ExportLedgerEntries, date ranges: {files} files of {pairs} pairs equal, {rows} rows in them, {empty} \
             without a row, in {ms} ms"
        ));
    });
}

#[test]
fn the_effects_of_a_party_and_an_asset_add_up_to_its_balances() {
    with_recording(async |recording| {
        let totals = "SELECT party_id, asset_id, coalesce(sum(balance), 0)::text
            FROM accounts LEFT JOIN LATERAL (
                SELECT balance FROM balances WHERE account_id = accounts.id ORDER BY block_time DESC LIMIT 1
            ) AS newest ON true
            GROUP BY party_id, asset_id";
        let (mut pairs, mut moved) = (0, 0);
        for row in recording.oracle.client().query(totals, &[]).await.unwrap() {
            let [party, asset, total] = [0, 1, 2].map(|column| row.get::<_, &str>(column));
            let total: i128 = total.parse().unwrap();
            let path = format!("/api/v2/ledgerentry/export?partyId={party}&assetId={asset}");
            let answer = recording.mesh.get(&path).await;
            let effects: i128 = answer.text().lines().skip(1).map(|line| effect(line, party)).sum();
            assert_eq!(effects, total, "{party} {asset}");
            pairs += 1;
            moved += usize::from(total != 0);
        }
        say(&format!("ExportLedgerEntries: effects of {pairs} pairs are their balances, {moved} are not 0"));
    });
}

/// The effect of an entry on balances: accounts outside of the chain belong to the network and have no
/// balance, so their side of a transfer does not count.
fn effect(line: &str, party: &str) -> i128 {
    let fields: Vec<&str> = line.split(',').collect();
    let number = |place: usize| fields[place].parse::<i128>().unwrap();
    let is_outside = |owner: usize| fields[owner] == party && fields[owner + 1] == "EXTERNAL";
    let (from_outside, to_outside) = (i128::from(is_outside(6)), i128::from(is_outside(10)));
    number(2) + number(1) * (from_outside - to_outside)
}
