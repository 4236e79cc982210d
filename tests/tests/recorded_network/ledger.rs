//! ExportLedgerEntries: the file of every party and asset, compared with the recording's files; and the sums of
//! its effects compared with the balances (I4). Date ranges are tested in `services/export`.

use mesh_oracles::Question;

use crate::recorded_network::recording::{Recording, with_recording};

/// All pairs of a party and an asset, with the number of their entries.
const PAIRS: &str = include_str!("pairs.sql");

/// Compares a downloaded file with that of the oracle; returns its number of rows.
async fn compare(recording: &Recording, party: &str, asset: &str) -> usize {
    let path = format!("/api/v2/ledgerentry/export?partyId={party}&assetId={asset}");
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
        let over_grpc = recording.rpc.download_file(&path).await;
        assert!(over_grpc == answer.body, "{path} over gRPC: {} bytes", over_grpc.len());
    }
    rows
}

#[test]
fn the_ledger_of_every_party_and_asset_is_what_was_recorded() {
    with_recording(async |recording| {
        let pairs = recording.oracle.client().query(PAIRS, &[]).await.unwrap();
        let (mut rows, mut entries) = (0, 0);
        for pair in &pairs {
            rows += compare(recording, pair.get(0), pair.get(1)).await;
            entries += pair.get::<_, i64>(2);
        }
        // An entry between two parties is in the file of both.
        assert_eq!(i64::try_from(rows), Ok(entries));
        assert!(rows > 400, "{rows}");
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
        for row in recording.oracle.client().query(totals, &[]).await.unwrap() {
            let [party, asset, total] = [0, 1, 2].map(|column| row.get::<_, &str>(column));
            let total: i128 = total.parse().unwrap();
            let path = format!("/api/v2/ledgerentry/export?partyId={party}&assetId={asset}");
            let answer = recording.mesh.get(&path).await;
            let effects: i128 = answer.text().lines().skip(1).map(|line| effect(line, party)).sum();
            assert_eq!(effects, total, "{party} {asset}");
        }
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
