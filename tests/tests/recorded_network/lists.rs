//! Every list of the contract, with every filter, page by page; and the recorded candles.

use std::pin::pin;

use bytes::Bytes;
use futures_util::SinkExt as _;
use mesh_oracles::{Listing, Question};
use mesh_tests::{bases, env_number, filtered, lists};
use rand::{SeedableRng as _, rngs::SmallRng};
use serde_json::Value;

use crate::recorded_network::{Check, Recording, with_recording};

/// Most values of a filter, and most combinations of filters, for one list.
const MOST: usize = 10;

async fn listing(recording: &Recording, target: &str) -> Listing {
    recording.oracle.listing(&Question::read(target).unwrap()).await.unwrap()
}

async fn markets(recording: &Recording) -> Vec<String> {
    let rows = recording.oracle.client().query("SELECT DISTINCT id FROM markets ORDER BY id", &[]).await;
    rows.unwrap().iter().map(|row| row.get(0)).collect()
}

#[test]
fn every_list_is_what_its_oracle_computes_whole_filtered_and_page_by_page() {
    with_recording(async |recording| {
        let seed = env_number("MESH_TEST_SEED", 20_230_118);
        let (mut random, markets) = (SmallRng::seed_from_u64(seed), markets(recording).await);
        for operation in lists() {
            let check = Check { recording, names_head: true };
            let (mut rows, bases) = (0, bases(operation, &markets));
            for (number, base) in bases.iter().enumerate() {
                let all = listing(recording, base).await;
                rows += all.rows.len();
                // Of the candles of all markets and intervals, some are filtered and walked.
                if number % 9 != 0 {
                    check.pages(base, &all, &[]).await;
                    continue;
                }
                check.pages(base, &all, &[1 + all.rows.len() / 20, 1000]).await;
                for target in filtered(operation, base, &all, (MOST, &mut random)) {
                    let found = listing(recording, &target).await;
                    check.pages(&target, &found, &[1 + found.rows.len() / 3]).await;
                }
            }
            // No upgrade was proposed.
            assert_eq!(rows > 0, operation.name != "ListProtocolUpgradeProposals", "{}", operation.name);
        }
    });
}

/// `candles.csv`, which is not loaded, has the candles that the network itself computed.
#[test]
fn the_candles_of_the_oracle_are_those_that_were_recorded() {
    with_recording(async |recording| {
        let client = recording.database.connect().await;
        let table = "CREATE TEMP TABLE candles (candle_id text, market_id text, interval text,
            period_start timestamptz, open text, close text, high text, low text, volume text,
            last_update_in_period timestamptz)";
        client.batch_execute(table).await.unwrap();
        let copied = client.copy_in("COPY candles FROM STDIN (FORMAT csv, HEADER)").await.unwrap();
        let file = std::fs::read(recording.folder.join("candles.csv")).unwrap();
        let mut copied = pin!(copied);
        copied.send(Bytes::from(file)).await.unwrap();
        copied.close().await.unwrap();
        let nodes = include_str!("candles.sql");
        let mut found = 0;
        for row in client.query(nodes, &[]).await.unwrap() {
            // Seconds with nine decimals are nanoseconds without the point.
            let recorded = row.get::<_, Value>(1).to_string().replace('.', "");
            let target = format!("/api/v2/candle?candleId={}", row.get::<_, &str>(0));
            let nodes: Vec<Value> =
                listing(recording, &target).await.rows.into_iter().map(|row| row.node).collect();
            found += nodes.len();
            assert_eq!(Value::from(nodes).to_string(), recorded, "{target}");
        }
        assert_eq!(found, 78);
    });
}
