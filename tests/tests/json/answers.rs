//! The form of answers: J1 to J10.

use mesh_testbed::Mesh;
use mesh_tests::{
    cases,
    client::MeshClient,
    fixture::{self, MARKET, ORACLE_SPEC},
};
use proto_msgs::Contract;
use serde_json::{Value, json};

use crate::json::shape;

/// Every full answer of the cases: operation and body.
async fn bodies(mesh: &MeshClient) -> Vec<(&'static str, Value)> {
    let mut bodies = Vec::new();
    let mut requests = cases::answered();
    requests.push(("GetOracleSpec", format!("/api/v2/oracle/spec/{}", "e2".repeat(32))));
    requests.push(("GetOracleSpec", format!("/api/v2/oracle/spec/{}", "e3".repeat(32))));
    requests.push(("GetWithdrawal", format!("/api/v2/withdrawal/{}", "d2".repeat(32))));
    requests.push(("GetWithdrawal", format!("/api/v2/withdrawal/{}", "d3".repeat(32))));
    requests.push(("ListCandleData", format!("/api/v2/candle?candleId=trades_candle_block_{MARKET}")));
    for (operation, path) in requests {
        let answer = mesh.get(&path).await;
        assert_eq!(answer.status, 200, "{path}: {answer:?}");
        bodies.push((operation, answer.json()));
    }
    bodies
}

/// All values of the fields with these names, in all answers.
async fn fields(names: &[&str]) -> Vec<(String, String)> {
    let bodies = bodies(&MeshClient::fixture().await).await;
    let mut texts = Vec::new();
    for (_, body) in &bodies {
        let mut found = Vec::new();
        shape::values(body, &mut found);
        let matching = found.into_iter().filter(|(name, _)| names.contains(name));
        texts.extend(
            matching.map(|(name, value)| (name.to_owned(), value.as_str().expect("a text").to_owned())),
        );
    }
    for name in names {
        assert!(texts.iter().any(|(found, _)| found == name), "no answer has a {name}");
    }
    texts
}

#[tokio::test]
async fn j1_bodies_are_json_and_accept_is_never_a_reason_to_refuse() {
    let mesh = MeshClient::fixture().await;
    for (_, path) in cases::answered() {
        for accept in
            ["application/json", "text/html", "image/png;q=0.1", "application/xml, */*;q=0", "\"", ""]
        {
            let answer = mesh.get_with(&path, "accept", accept).await;
            assert_eq!(answer.status, 200, "{path}, {accept}");
            assert_eq!(answer.header("content-type"), Some("application/json"), "{path}");
            answer.json();
        }
    }
    for kind in ["text/plain", "application/x-www-form-urlencoded", "nonsense"] {
        let request =
            mesh.request(reqwest::Method::POST, "/transaction").header("content-type", kind).body("{}");
        assert_eq!(mesh_testbed::Answer::to(request).await.status, 503, "{kind}");
    }
}

#[tokio::test]
async fn j2_to_j7_names_types_and_presence_are_those_of_the_contract() {
    let mesh = MeshClient::fixture().await;
    for (operation, body) in bodies(&mesh).await {
        let row = Contract::get().operations().iter().find(|row| row.name == operation).expect("declared");
        assert_eq!(shape::complaints(&row.reply, &body), Vec::<String>::new(), "{operation}: {body}");
    }
}

#[tokio::test]
async fn j7_empty_lists_are_there_and_null_is_nowhere() {
    let mesh = MeshClient::empty().await;
    let page = json!({"edges": [], "pageInfo":
        {"startCursor": "", "endCursor": "", "hasNextPage": false, "hasPreviousPage": false}});
    for (path, body) in [
        ("/accounts".to_owned(), json!({"accounts": []})),
        ("/api/v2/upgrade/proposals".to_owned(), json!({ "protocolUpgradeProposals": page })),
        (format!("/api/v2/candle?candleId=trades_candle_1_day_{MARKET}"), json!({ "candles": page })),
        ("/api/v2/rewards/epoch/summaries".to_owned(), json!({ "summaries": page })),
        ("/api/v2/delegations".to_owned(), json!({ "delegations": page })),
        ("/api/v2/upgrade/status".to_owned(), json!({"ready": false})),
    ] {
        let answer = mesh.get(&path).await;
        assert_eq!((answer.status, answer.json()), (200, body), "{path}");
    }
}

#[tokio::test]
async fn j7_unset_arms_and_unset_optional_fields_are_left_out() {
    let mesh = MeshClient::fixture().await;
    let spec = mesh.get(&format!("/api/v2/oracle/spec/{ORACLE_SPEC}")).await.json();
    let data = &spec["oracleSpec"]["externalDataSourceSpec"]["spec"]["data"];
    let arms: Vec<&str> = data.as_object().into_iter().flatten().map(|(name, _)| name.as_str()).collect();
    assert_eq!(arms, ["external"]);
    let keys: Vec<&Value> = data["external"]["oracle"]["filters"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|filter| &filter["key"])
        .collect();
    assert_eq!(keys[0]["numberDecimalPlaces"], "5");
    assert_eq!(keys[1].get("numberDecimalPlaces"), None);
    let withdrawal = mesh.get(&format!("/api/v2/withdrawal/{}", "d2".repeat(32))).await.json();
    assert_eq!(withdrawal["withdrawal"]["ext"], json!({}));
}

#[tokio::test]
async fn j8_times_are_nanoseconds_of_whole_microseconds() {
    let names = [
        "createdAt",
        "updatedAt",
        "createdTimestamp",
        "withdrawnTimestamp",
        "start",
        "lastUpdate",
        "proposeMarketEnabledFrom",
        "proposeAssetEnabledFrom",
    ];
    let times = fields(&names).await;
    for (name, time) in &times {
        assert!(time == "0" || time.ends_with("000"), "{name} is {time}");
    }
    assert!(times.iter().any(|(_, time)| time == "0"), "a time that is not set is 0");
    assert!(times.iter().any(|(_, time)| time.ends_with("456000")), "microseconds are kept");
}

#[tokio::test]
async fn j9_amounts_are_plain_decimal_integers_however_great() {
    let amounts = fields(&["amount", "balance", "high", "low", "open", "close", "volume"]).await;
    for (name, amount) in &amounts {
        let digits = amount.strip_prefix('-').unwrap_or(amount);
        let plain = !digits.is_empty() && digits.bytes().all(|digit| digit.is_ascii_digit());
        assert!(plain && (digits == "0" || !digits.starts_with('0')), "{name} is {amount}");
        assert_ne!(amount, "-0", "{name}");
    }
    assert!(amounts.iter().any(|(_, amount)| amount == "123456789012345678901234567"));
}

#[tokio::test]
async fn j9_an_amount_of_seventy_eight_digits_and_a_negative_one_are_shown_whole() {
    let database = fixture::database().await;
    let client = database.connect().await;
    let greatest = "9".repeat(78);
    let fill = format!(
        "INSERT INTO balances (account_id, block_time, tx_hash, balance) VALUES
         ('3', '2023-06-21', 'aa', {greatest}), ('4', '2023-06-21', 'aa', -{greatest});
         UPDATE withdrawals SET amount = 1e30"
    );
    client.batch_execute(&fill).await.expect("such amounts are stored");
    let mesh = Mesh::start(&database).await;
    let mesh = MeshClient::new(&mesh);
    let accounts = mesh.get(&format!("/accounts?party={}", "b1".repeat(32))).await.json();
    let balances: Vec<&Value> =
        accounts["accounts"].as_array().into_iter().flatten().map(|one| &one["balance"]).collect();
    assert_eq!(balances, [&json!(greatest), &json!(format!("-{greatest}"))]);
    let withdrawal = mesh.get(&format!("/api/v2/withdrawal/{}", "d1".repeat(32))).await.json();
    assert_eq!(withdrawal["withdrawal"]["amount"], json!(format!("1{}", "0".repeat(30))));
}

#[tokio::test]
async fn j10_ids_are_lower_case_hex_but_for_the_exceptions() {
    let ids =
        fields(&["id", "partyId", "party", "asset", "assetId", "market", "marketId", "nodeId", "hash"]).await;
    for (name, id) in &ids {
        let hex = id.len() == 64 && id.bytes().all(|digit| matches!(digit, b'0'..=b'9' | b'a'..=b'f'));
        let exception = match name.as_str() {
            "party" | "partyId" => id == "network",
            "asset" | "assetId" | "id" => id == "VOTE",
            "market" | "marketId" => id.is_empty(),
            _ => false,
        };
        assert!(hex || exception, "{name} is {id}");
    }
    let (address, hash) = (&fields(&["receiverAddress", "address"]).await, &fields(&["txHash"]).await);
    for (name, address) in address {
        assert!(address.len() == 42 && address.starts_with("0x"), "{name} is {address}");
    }
    assert!(hash.iter().any(|(_, hash)| hash == "0xABCDEF"), "the foreign chain's hash is its own text");
}
