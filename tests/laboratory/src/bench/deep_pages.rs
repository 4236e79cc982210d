//! Section "depth": page 1 and page 10,000 of a list of a million rows over HTTP, alternating.
//!
//! The median latency of the deep page may be at most 1.3 times that of the first. The table also shows how
//! many buffers the list's statement touches in the database.

use std::time::Instant;

use mesh::{
    failure::{Failure, cannot},
    terminal::print_line,
};
use mesh_query::DELEGATIONS;
use mesh_store::{LIST_SETTINGS, PageRequest, PageSizes, Value, Window};
use serde_json::{Value as Json, json};
use tokio_postgres::Client;

use super::{
    reads::Fixture,
    section::{Line, Section, quantile, rounded},
};
use crate::{metrics, private::Servers};

const ROWS: u64 = 1_000_000;
const PAGE: u64 = 100;
/// Greatest allowed ratio of the two medians.
const RATIO_AT_MOST: f64 = 1.3;
/// Requests of each page before the measured ones.
const WARM_UP: u32 = 20;

/// Rows of 100 epochs, parties and nodes, stored in an order unrelated to that of the list.
const FILL: &str =
    "INSERT INTO delegations_current (party_id, node_id, epoch_id, amount, tx_hash, block_time, seq_num)
    SELECT lpad(to_hex(n / 100 % 100), 64, '0'), lpad(to_hex(n % 100), 64, '0'), n / 10000, n, 'tx',
        timestamptz '2023-01-01 00:00:00+00', n
    FROM (SELECT step * 618033 % 1000000 AS n FROM generate_series(0, 999999::int8) AS step) AS numbers
    ON CONFLICT DO NOTHING";

/// One of the compared pages.
struct Page {
    number: u64,
    query: String,
    buffers: i64,
    took_us: Vec<f64>,
}

/// Fills the list and measures both pages in both orders.
pub(super) async fn measure(fixture: &Fixture<'_>) -> Result<Section, Failure> {
    let Fixture { servers, runs, .. } = fixture;
    fill(servers).await?;
    let list = format!("http://{}/api/v2/delegations", fixture.edges.uncached);
    let client = Http { client: metrics::local_client(), list };
    print_line(&format!("timing {runs} requests of each page"));
    let mut orders = Vec::new();
    for newest_first in [true, false] {
        let pages = time_in_turns(&client, servers, newest_first, *runs).await?;
        orders.push((if newest_first { "newest first" } else { "oldest first" }, pages));
    }
    Ok(section(&orders, *runs))
}

/// Fills the list, unless another section has done so.
pub(super) async fn fill(servers: &Servers) -> Result<(), Failure> {
    print_line("filling a list of 1,000,000 delegations");
    let fill = [FILL, "VACUUM ANALYZE delegations_current", "CHECKPOINT"];
    servers.execute("fill the list", &fill).await
}

async fn time_in_turns(
    client: &Http,
    servers: &Servers,
    newest_first: bool,
    runs: u32,
) -> Result<[Page; 2], Failure> {
    let reading = servers.connect(&format!("-c jit=off {LIST_SETTINGS}")).await?;
    let order = format!("pagination.newestFirst={newest_first}");
    // The row before the last page.
    let end = client.page(&format!("?{order}&pagination.last={}", PAGE + 1)).await?;
    let edge = &end["edges"][0];
    let page = async |number, after: Option<&str>| {
        let cursor = after.map_or_else(String::new, |cursor| format!("&pagination.after={cursor}"));
        let query = format!("?{order}&pagination.first={PAGE}{cursor}");
        let buffers = buffers(&reading, newest_first, after).await?;
        Ok::<_, Failure>(Page { number, query, buffers, took_us: Vec::new() })
    };
    let mut pages = [page(1, None).await?, page(ROWS / PAGE, edge["cursor"].as_str()).await?];
    for run in 0..WARM_UP + runs {
        for page in &mut pages {
            let begun = Instant::now();
            let body = client.page(&page.query).await?;
            let took = begun.elapsed();
            let whole = body["edges"].as_array().is_some_and(|edges| edges.len() as u64 == PAGE);
            let at_its_place = body["pageInfo"]["hasNextPage"] == (page.number == 1);
            if !whole || !at_its_place {
                return Err(Failure::failed(format!("page {} is not what was asked for", page.number)));
            }
            if run >= WARM_UP {
                page.took_us.push(took.as_secs_f64() * 1e6);
            }
        }
    }
    Ok(pages)
}

/// An HTTP client for pages of the list.
struct Http {
    client: reqwest::Client,
    list: String,
}

impl Http {
    /// Reads a page.
    async fn page(&self, query: &str) -> Result<Json, Failure> {
        let asked = async {
            let response = self.client.get(format!("{}{query}", self.list)).send().await?;
            response.error_for_status()?.json::<Json>().await
        };
        let mut body = asked.await.map_err(|error| cannot("read a page", &error))?;
        Ok(body["delegations"].take())
    }
}

/// Number of shared buffers that the statement touches for the page after a cursor.
async fn buffers(reading: &Client, newest_first: bool, after: Option<&str>) -> Result<i64, Failure> {
    let request = PageRequest { after, newest_first: Some(newest_first), ..PageRequest::default() };
    let size = PAGE as usize;
    let window = Window::read(&DELEGATIONS, request, PageSizes { default: size, greatest: size });
    let window = window.map_err(|problem| Failure::failed(problem.to_string()))?;
    let statement = DELEGATIONS.statement(&window, vec![None; DELEGATIONS.filters.len()]);
    let arguments: Vec<_> = statement.parameters.iter().map(Value::to_literal).collect();
    let explained = async {
        reading.batch_execute(&format!("DEALLOCATE ALL; PREPARE page AS {}", statement.sql)).await?;
        let explain =
            format!("EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) EXECUTE page({})", arguments.join(", "));
        Ok(reading.query_one(&explain, &[]).await?.get::<_, Json>(0))
    };
    let plan = explained.await.map_err(|error: tokio_postgres::Error| cannot("explain the list", &error))?;
    let number = |name: &str| plan[0]["Plan"][name].as_i64().unwrap_or_default();
    Ok(number("Shared Hit Blocks") + number("Shared Read Blocks"))
}

fn section(orders: &[(&str, [Page; 2])], runs: u32) -> Section {
    let (mut lines, mut figures, mut worst) = (Vec::new(), Vec::new(), 0.0_f64);
    for (order, pages) in orders {
        let medians = pages.each_ref().map(|page| quantile(&page.took_us, 0.5));
        let ratio = medians[1] / medians[0];
        worst = worst.max(ratio);
        let mut shown = Vec::new();
        for (page, median) in pages.iter().zip(medians) {
            let p95 = quantile(&page.took_us, 0.95);
            let line = Line::new("page", &format!("{order}, page {}", page.number))
                .cell("median ms", format!("{:.2}", median / 1000.0))
                .cell("p95 ms", format!("{:.2}", p95 / 1000.0))
                .cell("buffers", page.buffers.to_string());
            lines.push(
                line.cell("ratio", if page.number == 1 { String::new() } else { format!("{ratio:.2}") }),
            );
            shown.push(json!({
                "page": page.number, "medianUs": median.round(), "p95Us": p95.round(), "buffers": page.buffers,
            }));
        }
        figures.push(json!({ "order": order, "pages": shown, "ratio": rounded(ratio) }));
    }
    let title = format!("depth: {ROWS} delegations, pages of {PAGE}, {runs} requests each in turns");
    let verdict = if worst <= RATIO_AT_MOST {
        Ok(())
    } else {
        Err(Failure::failed(format!(
            "the deep page took {worst:.2} times as long as the first, {RATIO_AT_MOST} is allowed; look at the plan of \
             the list's statement"
        )))
    };
    Section {
        table: Line::table(&title, &lines),
        figures: json!({
            "section": "depth", "list": "delegations", "rows": ROWS, "pageSize": PAGE, "runs": runs,
            "ratioAtMost": RATIO_AT_MOST, "orders": figures,
        }),
        verdict,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(number: u64, took_us: &[f64]) -> Page {
        Page { number, query: String::new(), buffers: 110, took_us: took_us.to_vec() }
    }

    #[test]
    fn a_deep_page_may_be_somewhat_slower_and_not_more() {
        let found =
            |deep| section(&[("newest first", [page(1, &[10.0, 11.0, 90.0]), page(10_000, &[deep])])], 3);
        let fine = found(13.0);
        assert!(fine.verdict.is_ok());
        assert_eq!(fine.figures["orders"][0]["ratio"], 1.182);
        assert!(fine.table.contains("newest first, page 10000"), "{}", fine.table);
        let slow = found(15.0).verdict.unwrap_err().to_string();
        assert!(slow.contains("1.36 times"), "{slow}");
    }
}
