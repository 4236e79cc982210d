//! The documented segment format is sufficient to splice the same exports with an independent program.

use std::{fs, process::Command};

use mesh_tests::{is_here, programs, say};

use super::handmade::{HandmadeSegments, Plan};

const DOCUMENT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/segments.md");

fn program() -> String {
    let document = fs::read_to_string(DOCUMENT).unwrap();
    let (_, behind) = document.split_once("```python\n").unwrap();
    behind.split_once("```").unwrap().0.to_owned()
}

#[tokio::test]
async fn the_documented_program_splices_what_the_gateway_serves() {
    if !is_here("python3") {
        say("skipped: the program of docs/segments.md, because there is no python3");
        return;
    }
    let table = |version, number: u64, text: &str| {
        Plan::new(version, number * 10 + 1, number * 10 + 10).with("trades", text)
    };
    let plans = vec![
        table(1, 0, "id,size\na,1\nb,\"2,5\"\n"),
        table(1, 1, "id,size\n"),
        table(1, 2, "id,size\nd,\"é\"\n"),
        table(2, 3, "id,size,price\nx,1,2\n"),
        table(2, 4, "id,size,cost\ny,\"\",\n"),
    ];
    let served = HandmadeSegments::write(plans).await.serve(1).await;
    let folder = tempfile::tempdir().unwrap();
    let (script, spliced) = (folder.path().join("splice.py"), folder.path().join("spliced.zip"));
    fs::write(&script, program()).unwrap();
    for (from, to) in [(1, 50), (1, 10), (11, 20), (21, 40)] {
        let path = format!("/api/v2/networkhistory/export?table=TABLE_TRADES&fromBlock={from}&toBlock={to}");
        let answer = served.mesh_client().get(&path).await;
        assert_eq!(answer.status, 200, "{answer:?}");
        let mut python = Command::new("python3");
        python.arg(&script).arg(served.segments.folder.path());
        python.args(["trades", &from.to_string(), &to.to_string()]);
        programs::output(python.arg(&spliced));
        assert!(fs::read(&spliced).unwrap() == answer.body, "{from}-{to}: other bytes");
    }
}
