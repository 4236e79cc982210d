//! Pages of accounts (contract 4.9): parts of the whole answer, in its order.

use mesh_testbed::{Database, Mesh};
use mesh_tests::{client::MeshClient, problem::assert_problem};
use serde_json::Value;

use crate::paging::list::{MARKET, PARTY, cursor_of_json};

/// Accounts of the network and of three parties, two of whose types the contract does not know.
const ACCOUNTS: &str = "INSERT INTO accounts (id, party_id, asset_id, market_id, type, tx_hash, block_time)
    SELECT party || ' ' || market || ' ' || asset || ' ' || type, party, asset, market, type, 'tx',
        '2023-01-01 00:00:00+00'
    FROM unnest(ARRAY['network', repeat('0', 64), repeat('f', 64), $party]) AS party,
        unnest(ARRAY['', $market]) AS market, unnest(ARRAY['A', 'VOTE', 'a']) AS asset,
        unnest(ARRAY[99, 4, 98, 12]) AS type;
    UPDATE accounts SET type = NULL WHERE type = 12;
    INSERT INTO balances SELECT id, block_time, 'tx', coalesce(type, 0) FROM accounts WHERE asset_id = 'A';";

async fn start() -> (Database, Mesh, MeshClient) {
    let database = Database::fresh().await;
    let accounts =
        ACCOUNTS.replace("$party", &format!("'{PARTY}'")).replace("$market", &format!("'{MARKET}'"));
    database.connect().await.batch_execute(&accounts).await.unwrap();
    let mesh = Mesh::start(&database).await;
    let mesh_client = MeshClient::new(&mesh);
    (database, mesh, mesh_client)
}

async fn get(mesh: &MeshClient, filters: &str, page: &str) -> Value {
    let answer = mesh.get(&format!("/accounts?{filters}{page}")).await;
    assert_eq!(answer.status, 200, "{filters}{page}: {answer:?}");
    answer.json()
}

fn accounts(page: &Value) -> Vec<Value> {
    page["accounts"].as_array().unwrap().clone()
}

/// The pages of a walk, in display order.
async fn walk(mesh: &MeshClient, filters: &str, size: usize, is_forward: bool) -> Vec<Value> {
    let (count, position) = if is_forward { ("first", "after") } else { ("last", "before") };
    let (mut walked, mut cursor) = (Vec::new(), String::new());
    loop {
        let query = format!("&pagination.{count}={size}&pagination.{position}={cursor}");
        let page = get(mesh, filters, &query).await;
        let info = &page["pageInfo"];
        let (next, previous) =
            ((&info["endCursor"], &info["hasNextPage"]), (&info["startCursor"], &info["hasPreviousPage"]));
        let ((end, has_more), (_, has_less)) = if is_forward { (next, previous) } else { (previous, next) };
        assert_eq!(has_less, !cursor.is_empty(), "{filters} {query}");
        let mut rows = accounts(&page);
        if is_forward {
            walked.append(&mut rows);
        } else {
            rows.append(&mut walked);
            walked = rows;
        }
        if has_more == false {
            return walked;
        }
        cursor = end.as_str().unwrap().to_owned();
    }
}

#[tokio::test]
async fn pages_of_accounts_are_parts_of_the_whole_answer() {
    let (_database, _mesh, mesh) = start().await;
    for (filters, count) in [
        (String::new(), 96),
        (format!("party={PARTY}"), 24),
        ("party=network".to_owned(), 24),
        (format!("market={MARKET}"), 48),
        (format!("party=network&market={MARKET}"), 12),
        (format!("party={}", "e".repeat(64)), 0),
    ] {
        let whole = get(&mesh, &filters, "").await;
        assert_eq!(whole.as_object().unwrap().len(), 1, "no page info: {whole}");
        let whole = accounts(&whole);
        assert_eq!(whole.len(), count, "{filters}");
        for size in [1, 7, 1000] {
            for is_forward in [true, false] {
                let walked = walk(&mesh, &filters, size, is_forward).await;
                assert_eq!(walked, whole, "{filters} by {size}, forward: {is_forward}");
            }
        }
        for order in ["true", "false"] {
            let page = get(&mesh, &filters, &format!("&pagination.newestFirst={order}")).await;
            assert_eq!(accounts(&page), whole, "the order is always the same");
        }
    }
}

/// The types of an owner's accounts, by the balances that equal their numbers.
#[tokio::test]
async fn accounts_of_unknown_types_are_sorted_by_the_number_of_the_type() {
    let (_database, _mesh, mesh) = start().await;
    for page in ["", "&pagination.first=9"] {
        let answer = get(&mesh, &format!("party={PARTY}&market={MARKET}"), page).await;
        let of_asset = accounts(&answer).into_iter().filter(|account| account["asset"] == "A");
        let balances: Vec<_> = of_asset.map(|account| account["balance"].clone()).collect();
        assert_eq!(balances, ["0", "4", "98", "99"], "{page}");
    }
}

#[tokio::test]
async fn a_cursor_of_accounts_names_party_market_asset_and_type() {
    let (_database, _mesh, mesh) = start().await;
    let cursor = |number: &str| {
        cursor_of_json(&format!(r#"{{"o":"account","k":["network","{MARKET}","a","{number}"]}}"#))
    };
    let page = get(&mesh, "", "&pagination.first=24").await;
    let last = cursor("99");
    assert_eq!(page["pageInfo"]["endCursor"], last);
    // Between two accounts.
    let beside = cursor("100");
    for cursor in [last, beside] {
        let next = get(&mesh, "", &format!("&pagination.first=1&pagination.after={cursor}")).await;
        assert_eq!(accounts(&next)[0]["party"], "0".repeat(64));
    }
    let foreign = cursor_of_json(r#"{"o":"delegation","k":["1","2","3"]}"#);
    let refused = mesh.get(&format!("/accounts?pagination.after={foreign}")).await;
    assert_problem(&refused, 400, 3, 10_028);
    assert_problem(&mesh.get("/accounts?pagination.first=0").await, 400, 3, 10_028);
}
