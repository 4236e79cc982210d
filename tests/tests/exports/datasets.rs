//! ListDatasets: what the segments have of each table, compared with what PostgreSQL prints, and the columns of
//! the schema.

use mesh_tests::assert_has;
use serde_json::{Value, json};

use super::{HandmadeSegments, Plan, *};

const DATASETS: &str = "/api/v2/datasets";

async fn datasets(mesh_client: &MeshClient) -> Vec<Value> {
    let answer = mesh_client.get(DATASETS).await;
    assert_eq!(answer.status, 200, "{answer:?}");
    answer.json()["datasets"].as_array().unwrap().clone()
}

fn number(dataset: &Value, name: &str) -> u64 {
    dataset[name].as_str().unwrap_or_else(|| panic!("{name} is no text: {dataset}")).parse().unwrap()
}

#[tokio::test]
async fn each_table_has_the_blocks_rows_and_bytes_that_postgresql_has() {
    let mesh_client = MeshClient::sealed_fixture().await;
    let database = &fixture::sealed_mesh().await.database;
    let client = database.connect().await;
    let times = "SELECT (extract(epoch FROM block_time) * 1000000000)::bigint::text FROM blocks
        WHERE height IN (1, 3) ORDER BY height";
    let times = client.query(times, &[]).await.unwrap();
    let times = [0, 1].map(|row: usize| times[row].get::<_, String>(0));
    let version = database.schema_version().await.to_string();
    let datasets = datasets(&mesh_client).await;
    let listed: Vec<_> = datasets.iter().map(|dataset| dataset["table"].as_str().unwrap()).collect();
    let expected: Vec<_> = mesh_tests::tables();
    assert_eq!(listed, expected.iter().map(|(_, table)| table).collect::<Vec<_>>(), "by name");
    for (dataset, (name, table)) in datasets.iter().zip(&expected) {
        assert_eq!(dataset["enum"], *name);
        assert_eq!((number(dataset, "firstBlock"), number(dataset, "lastBlock")), (1, 3), "{table}");
        let [first, last] = &times;
        assert_has(
            dataset,
            &json!({"firstTime": first, "lastTime": last, "segments": 3, "schemaVersions": [version]}),
        );
        let text = copy(table, &[(1, 3)]).await;
        let mut reader = csv::Reader::from_reader(text.as_slice());
        let columns = dataset["columns"].as_array().unwrap();
        let names: Vec<_> = columns.iter().map(|column| column["name"].as_str().unwrap()).collect();
        assert_eq!(reader.headers().unwrap().iter().collect::<Vec<_>>(), names, "{table}");
        assert_eq!(reader.records().map(Result::unwrap).count() as u64, number(dataset, "rows"), "{table}");
        // Each of the three segments has a header line.
        let header = text.iter().position(|byte| *byte == b'\n').unwrap() + 1;
        assert_eq!((text.len() + 2 * header) as u64, number(dataset, "bytes"), "{table}");
        let path = format!("/api/v2/networkhistory/export?fromBlock=1&toBlock=3&table={name}");
        let rows = mesh_client.send("HEAD", &path).await.header("x-total-rows").unwrap().to_owned();
        assert_eq!(dataset["rows"], rows, "{table}");
    }
}

#[tokio::test]
async fn a_column_has_type_and_description_and_a_unit_when_it_needs_one() {
    let datasets = datasets(&MeshClient::fixture().await).await;
    let column = |table: &str, name: &str| {
        let dataset = datasets.iter().find(|dataset| dataset["table"] == table).unwrap();
        dataset["columns"].as_array().unwrap().iter().find(|column| column["name"] == name).unwrap().clone()
    };
    let unit = "10^-decimal_places of the market";
    let price = json!({"name": "price", "type": "numeric(78,0)", "description": "Price", "unit": unit});
    assert_eq!(column("trades", "price"), price);
    let hash = json!({"name": "hash", "type": "text", "description": "Hash of the block, 64 hex digits"});
    assert_eq!(column("blocks", "hash"), hash);
    let labels = "Status; one of STATUS_UNSPECIFIED, STATUS_OPEN, STATUS_CANCELLED, STATUS_FINALIZED";
    assert_has(&column("deposits", "status"), &json!({"type": "text", "description": labels}));
}

#[tokio::test]
async fn before_the_first_segment_the_figures_are_zero() {
    for dataset in datasets(&MeshClient::fixture().await).await {
        for name in ["firstBlock", "lastBlock", "firstTime", "lastTime", "rows", "bytes"] {
            assert_eq!(dataset[name], "0", "{name}: {dataset}");
        }
        assert_eq!((&dataset["segments"], &dataset["schemaVersions"]), (&json!(0), &json!([])), "{dataset}");
        assert!(!dataset["columns"].as_array().unwrap().is_empty(), "{dataset}");
    }
}

#[tokio::test]
async fn a_table_counts_the_segments_that_have_it_across_gaps_and_schema_versions() {
    let plans = vec![
        Plan::new(1, 1, 10).with("trades", "id\n1\n2\n"),
        Plan::new(2, 11, 20).with("orders", "id\n").with("trades", "id,size\n3,\"4\n\"\n"),
        Plan::new(2, 31, 40).with("orders", "id\n5\n").with("trades", "id,size\n"),
    ];
    let served = HandmadeSegments::write(plans).await.serve(1).await;
    let datasets = datasets(&served.mesh_client()).await;
    let figures = |table: &str| {
        let dataset = datasets.iter().find(|dataset| dataset["table"] == table).unwrap();
        let mut figures = dataset.clone();
        figures.as_object_mut().unwrap().remove("columns");
        figures
    };
    let trades = json!({
        "table": "trades", "enum": "TABLE_TRADES", "firstBlock": "1", "lastBlock": "40",
        "firstTime": "1687257001000000000", "lastTime": "1687257040000000000", "rows": "3", "bytes": "30",
        "segments": 3, "schemaVersions": ["1", "2"],
    });
    assert_eq!(figures("trades"), trades);
    let orders = json!({
        "table": "orders", "enum": "TABLE_ORDERS", "firstBlock": "11", "lastBlock": "40",
        "firstTime": "1687257011000000000", "lastTime": "1687257040000000000", "rows": "1", "bytes": "8",
        "segments": 2, "schemaVersions": ["2"],
    });
    assert_eq!(figures("orders"), orders);
    assert_eq!(figures("blocks")["segments"], 0, "no segment has the table");
}
