//! ExportLedgerEntries: the file of every party and asset, in every form of date range, compared with the
//! recording's files; and the sums of its effects compared with the balances (I4).
//!
//! By default every pair is requested without a range and a few of them with the other ranges.
//! `MESH_TEST_LEDGER_PAIRS` sets how many, `all` for all of them (ten thousand downloads); `MESH_TEST_SEED`
//! repeats a run.

use std::{
    collections::{BTreeMap, BTreeSet},
    env,
    time::Instant,
};

use mesh_tests::{rpc::Call, say};
use rand::{SeedableRng, rngs::SmallRng, seq::IteratorRandom};

use crate::recorded_network::{
    accounts::TYPES,
    recording::{Recording, with_recording},
};

const HEADER: &str = "block_time,quantity,effect,transfer_type,asset_id,account_from_market_id,\
account_from_party_id,account_from_account_type,account_from_balance,account_to_market_id,account_to_party_id,\
account_to_account_type,account_to_balance\n";

/// Number of pairs that are requested with all ranges by default.
const PAIRS: usize = 12;

const SECOND: i64 = 1_000_000_000;

/// A ledger entry: those parts of its CSV line that do not depend on the party.
struct Entry {
    time: i64,
    order: i64,
    asset: String,
    from: String,
    to: String,
    /// The fields before the effect, and those after it.
    before: String,
    behind: String,
    quantity: String,
}

/// The recording's ledger in the order of the contract.
struct Ledger(Vec<Entry>);

/// The bounds of a range, nanoseconds since the Unix epoch; `None` leaves one out.
type Range = (Option<i64>, Option<i64>);

impl Ledger {
    fn from_recording(recording: &Recording) -> Self {
        let (ledger, accounts) = (recording.table("ledger"), recording.table("accounts"));
        let accounts: BTreeMap<&str, _> = accounts.rows().map(|row| (row.text("id"), row)).collect();
        let entry = |row: crate::recorded_network::files::Row<'_>| {
            let side = |which: &str| {
                let account = accounts[row.text(&format!("account_{which}_id"))];
                let number: i32 = account.number("type");
                let (_, kind) = TYPES.iter().find(|(known, _)| *known == number).unwrap();
                let market = match account.maybe("market_id") {
                    Some("") => "\"\"",
                    Some(market) => market,
                    None => "",
                };
                let (party, asset) = (account.text("party_id"), account.text("asset_id"));
                let balance = row.text(&format!("account_{which}_balance"));
                (party.to_owned(), asset.to_owned(), format!("{market},{party},{kind},{balance}"))
            };
            let ((from, asset, sender), (to, _, receiver)) = (side("from"), side("to"));
            let quantity = row.text("quantity").to_owned();
            Entry {
                time: row.ns("block_time"),
                order: row.ns("ledger_entry_time"),
                before: format!("{},{quantity},", row.text("block_time")),
                behind: format!(",{},{asset},{sender},{receiver}\n", row.maybe("type").unwrap_or("")),
                asset,
                from,
                to,
                quantity,
            }
        };
        let mut entries: Vec<Entry> = ledger.rows().map(entry).collect();
        entries.sort_by_key(|entry| (entry.time, entry.order));
        Self(entries)
    }

    fn entries<'a>(&'a self, party: &'a str, asset: &'a str) -> impl Iterator<Item = &'a Entry> {
        self.0.iter().filter(move |entry| (entry.from == party || entry.to == party) && entry.asset == asset)
    }

    /// The expected file and its number of rows.
    fn file(&self, party: &str, asset: &str, (start, end): Range) -> (String, usize) {
        let (mut file, mut rows) = (HEADER.to_owned(), 0);
        // 0 stands for no bound; no time of the recording is below it.
        let end = end.filter(|end| *end != 0);
        let is_inside =
            |time: i64| start.is_none_or(|start| time >= start) && end.is_none_or(|end| time < end);
        for entry in self.entries(party, asset).filter(|entry| is_inside(entry.time)) {
            let sign = match (entry.from == party, entry.to == party) {
                (true, true) => "0".to_owned(),
                (true, false) => format!("-{}", entry.quantity),
                _ => entry.quantity.clone(),
            };
            file.push_str(&entry.before);
            file.push_str(&sign);
            file.push_str(&entry.behind);
            rows += 1;
        }
        (file, rows)
    }
}

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

/// All pairs of a party and an asset, with or without entries.
fn pairs(recording: &Recording) -> Vec<(String, String)> {
    let accounts = recording.table("accounts");
    let ids = |file: &str, column: &str| {
        let mut ids: BTreeSet<String> = accounts.rows().map(|row| row.text(column).to_owned()).collect();
        ids.extend(recording.table(file).rows().map(|row| row.text("id").to_owned()));
        ids
    };
    let assets = ids("assets", "asset_id");
    let of_party = |party: String| assets.iter().map(move |asset| (party.clone(), asset.clone())).collect();
    ids("parties", "party_id").into_iter().flat_map(|party| -> Vec<_> { of_party(party) }).collect()
}

/// Compares a downloaded file with the expected one; returns its number of rows.
async fn compare(recording: &Recording, ledger: &Ledger, pair: &(String, String), range: Range) -> usize {
    let (party, asset) = pair;
    let mut path = format!("/api/v2/ledgerentry/export?partyId={party}&assetId={asset}");
    for (name, bound) in [("start", range.0), ("end", range.1)] {
        if let Some(ns) = bound {
            path.push_str(&format!("&dateRange.{name}Timestamp={ns}"));
        }
    }
    let answer = recording.mesh.get(&path).await;
    assert_eq!(answer.status, 200, "{path}: {answer:?}");
    let (expected, rows) = ledger.file(party, asset, range);
    for (line, (found, expected)) in answer.text().lines().zip(expected.lines()).enumerate() {
        assert_eq!(found, expected, "line {} of {path}", line + 1);
    }
    assert_eq!(answer.text().len(), expected.len(), "{path}");
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
        let (ledger, pairs) = (Ledger::from_recording(recording), pairs(recording));
        let begun = Instant::now();
        let (mut rows, mut with_rows) = (0, 0);
        for pair in &pairs {
            let found = compare(recording, &ledger, pair, (None, None)).await;
            rows += found;
            with_rows += usize::from(found > 0);
        }
        // An entry between two parties is in the file of both.
        let sides = ledger.0.iter().map(|entry| if entry.from == entry.to { 1 } else { 2 });
        assert_eq!(rows, sides.sum::<usize>());
        let (pairs, ms) = (pairs.len(), begun.elapsed().as_millis());
        say(&format!(
            "ExportLedgerEntries: {pairs} pairs equal, {with_rows} of them with {rows} rows, these over gRPC too, in {ms} ms"
        ));
    });
}

#[test]
fn every_shape_of_date_range_gives_the_entries_in_it() {
    with_recording(async |recording| {
        let (ledger, pairs) = (Ledger::from_recording(recording), pairs(recording));
        let all: Vec<i64> = ledger.0.iter().map(|entry| entry.time).collect();
        let has_rows = |(party, asset): &&(String, String)| ledger.entries(party, asset).next().is_some();
        let given = env::var("MESH_TEST_LEDGER_PAIRS").ok();
        let seed = env::var("MESH_TEST_SEED").ok().map_or(20_230_118, |seed| seed.parse().unwrap());
        let chosen: Vec<&(String, String)> = match given.as_deref() {
            Some("all") => pairs.iter().collect(),
            number => {
                let number = number.map_or(PAIRS, |number| number.parse().unwrap());
                pairs.iter().filter(has_rows).choose_multiple(&mut SmallRng::seed_from_u64(seed), number)
            }
        };
        let begun = Instant::now();
        let (mut files, mut rows, mut empty) = (0, 0, 0);
        for pair in &chosen {
            let own: Vec<i64> = ledger.entries(&pair.0, &pair.1).map(|entry| entry.time).collect();
            for range in shapes(if own.is_empty() { &all } else { &own }) {
                let found = compare(recording, &ledger, pair, range).await;
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
        let accounts = recording.table("accounts");
        let owners: BTreeMap<&str, (&str, &str)> = accounts
            .rows()
            .map(|row| (row.text("id"), (row.text("party_id"), row.text("asset_id"))))
            .collect();
        let balances = recording.table("balances");
        let (mut totals, mut pairs, mut moved) = (BTreeMap::<_, i128>::new(), 0, 0);
        for (account, row) in balances.newest(|row| row.text("account_id"), |row| row.ns("block_time")) {
            *totals.entry(owners[account]).or_default() += row.number::<i128>("balance");
        }
        for (party, asset) in owners.values().collect::<BTreeSet<_>>() {
            let path = format!("/api/v2/ledgerentry/export?partyId={party}&assetId={asset}");
            let answer = recording.mesh.get(&path).await;
            let effects: i128 = answer.text().lines().skip(1).map(|line| effect(line, party)).sum();
            let total = totals.get(&(*party, *asset)).copied().unwrap_or_default();
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
