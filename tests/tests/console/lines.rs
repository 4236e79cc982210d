//! Every command line that the console prints runs against the mesh, as it is printed.

use std::{env, process::Command};

use mesh_tests::{program, say};

use super::{ASSET, MARKET, shared_page};

/// Lists that need no filter.
const LISTS: [&str; 10] = [
    "markets", "assets", "orders", "trades", "positions", "deposits", "withdrawals", "delegations",
    "rewards", "proposals",
];

/// The printed lines of a page in their order.
const LINES: &str = "[...document.querySelectorAll('.line code')].map(line => line.textContent)";

#[tokio::test]
async fn every_printed_command_line_runs() {
    let Some((_browser, console_mesh, page)) = shared_page().await else { return };
    console_mesh.mesh_client.until_first_segment().await;
    let first = async |table| console_mesh.first_id(table).await;
    let position = console_mesh.json("/api/v2/positions?pagination.first=1").await;
    let party = position["positions"]["edges"][0]["node"]["partyId"].as_str().unwrap();
    let ready = "document.querySelector('.line')";
    let mut views = vec![
        ("#/status".to_owned(), ready),
        (format!("#/markets/{MARKET}"), ready),
        (format!("#/party/{party}"), ready),
        (format!("#/explore/withdrawal/{}", first("withdrawals").await), ready),
        (format!("#/explore/order/{}?version=1", first("orders").await), ready),
        ("#/explore/orders?status=STATUS_FILLED&liveOnly=true".to_owned(), ready),
        (format!("#/explore/oracle-spec/{}", first("oracle_specs").await), ready),
        (format!("#/export/ledger?party={party}&asset={ASSET}"), ready),
        ("#/export/tables".to_owned(), ready),
        ("#/export?from=1".to_owned(), "document.querySelector('[data-digest]')"),
        (format!("#/submit?hash={}", "ab".repeat(32)), "document.querySelectorAll('.line').length === 6"),
    ];
    for list in LISTS {
        views.push((format!("#/explore/{list}?size=50&order=oldest"), ready));
    }
    views.push((format!("#/explore/accounts?party={party}"), ready));

    let path = format!("{}:{}", program("").display(), env::var("PATH").unwrap());
    let has_grpcurl = Command::new("grpcurl").arg("-version").output().is_ok();
    if !has_grpcurl {
        say("skipped: the lines of grpcurl; `go install github.com/fullstorydev/grpcurl/cmd/grpcurl@latest`");
    }
    let mut count = 0;
    for (view, is_there) in views {
        page.open(&view).await;
        page.until(is_there).await;
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("command.bin"), "a command").unwrap();
        for line in page.eval::<Vec<String>>(LINES).await {
            if line.starts_with("grpcurl ") && !has_grpcurl {
                continue;
            }
            // A file of the line before may have the same name.
            let _ = Command::new("sh").args(["-c", "rm -f *.zip"]).current_dir(&folder).status();
            // Without this option curl succeeds with an error of the gateway, too.
            let script = format!("curl() {{ command curl --fail-with-body -sS \"$@\"; }}; {line}");
            let mut shell = Command::new("sh");
            shell.args(["-c", &script]).env("PATH", &path).current_dir(&folder);
            let output = tokio::task::spawn_blocking(move || shell.output().unwrap()).await.unwrap();
            let [out, err] = [&output.stdout, &output.stderr].map(|bytes| String::from_utf8_lossy(bytes));
            // A hash that no node knows is an answer, too.
            let is_unknown = line.starts_with("mesh tx status") && out.contains("unknown");
            assert!(output.status.success() || is_unknown, "{view}: {line}: {out}{err}");
            assert!(line.starts_with("mesh") || !out.contains("\"success\": false"), "{view}: {line}: {out}");
            count += 1;
        }
    }
    assert!(count >= 20, "{count} lines");
    page.assert_quiet();
}
