//! Section "depth": page 1 and page 10,000 of a list of a million rows over HTTP, alternating, in both
//! orders. That both touch as many buffers of the database is asserted by the test `deep_pages`.

use std::time::Instant;

use mesh::{
    failure::{Failure, cannot},
    terminal::print_line,
};
use serde_json::Value;

use super::{
    reads::Fixture,
    section::{Line, Section, quantile},
    sections::SectionName,
};
use crate::{metrics, private::Servers};

const ROWS: u64 = 1_000_000;
const PAGE: u64 = 100;
/// Requests of each page before the measured ones.
const WARM_UP: u32 = 20;

/// Rows of 100 epochs, parties and nodes, stored in an order unrelated to that of the list.
const FILL: &str =
    "INSERT INTO delegations_current (party_id, node_id, epoch_id, amount, tx_hash, block_time, seq_num)
    SELECT lpad(to_hex(n / 100 % 100), 64, '0'), lpad(to_hex(n % 100), 64, '0'), n / 10000, n, 'tx',
        timestamptz '2023-01-01 00:00:00+00', n
    FROM (SELECT step * 618033 % 1000000 AS n FROM generate_series(0, 999999::int8) AS step) AS numbers
    ON CONFLICT DO NOTHING";

/// Fills the list and measures both pages in both orders.
pub(super) async fn measure(fixture: &Fixture<'_>) -> Result<Section, Failure> {
    let Fixture { servers, runs, .. } = fixture;
    fill(servers).await?;
    let list = format!("http://{}/api/v2/delegations", fixture.edges.uncached);
    print_line(&format!("timing {runs} requests of each page"));
    let (mut lines, mut worst) = (Vec::new(), 0.0_f64);
    for (order, newest_first) in [("newest first", true), ("oldest first", false)] {
        let took = time_in_turns(&format!("{list}?pagination.newestFirst={newest_first}"), *runs).await?;
        let medians = took.each_ref().map(|took| quantile(took, 0.5));
        worst = worst.max(medians[1] / medians[0]);
        for (number, (took, median)) in [1, ROWS / PAGE].into_iter().zip(took.iter().zip(medians)) {
            let line = Line::new("page", &format!("{order}, page {number}"))
                .value(("median ms", "medianMs"), 2, median)
                .value(("p95 ms", "p95Ms"), 2, quantile(took, 0.95));
            lines.push(line);
        }
    }
    let title = format!("depth: {ROWS} delegations, pages of {PAGE}, {runs} requests each in turns");
    let found = ("deep page / first page, median of the worse order".to_owned(), worst);
    Ok(Section::new(SectionName::Depth, &title, &lines, "", &[found]).with("runs", *runs))
}

/// Fills the list, unless another section has done so.
pub(super) async fn fill(servers: &Servers) -> Result<(), Failure> {
    print_line("filling a list of 1,000,000 delegations");
    let fill = [FILL, "VACUUM ANALYZE delegations_current", "CHECKPOINT"];
    servers.execute("fill the list", &fill).await
}

/// Milliseconds of the requests of the first page and of the last one.
async fn time_in_turns(list: &str, runs: u32) -> Result<[Vec<f64>; 2], Failure> {
    let client = metrics::local_client();
    let get = async |query: &str| {
        let asked = async {
            let response = client.get(format!("{list}{query}")).send().await?;
            response.error_for_status()?.json::<Value>().await
        };
        let mut body = asked.await.map_err(|error| cannot("read a page", &error))?;
        Ok::<_, Failure>(body["delegations"].take())
    };
    // The row before the last page.
    let end = get(&format!("&pagination.last={}", PAGE + 1)).await?;
    let cursor = end["edges"][0]["cursor"].as_str().unwrap_or_default();
    let first = format!("&pagination.first={PAGE}");
    let queries = [first.clone(), format!("{first}&pagination.after={cursor}")];
    let mut took: [Vec<f64>; 2] = Default::default();
    for run in 0..WARM_UP + runs {
        for (number, query) in queries.iter().enumerate() {
            let begun = Instant::now();
            let page = get(query).await?;
            let ms = begun.elapsed().as_secs_f64() * 1e3;
            let is_whole = page["edges"].as_array().is_some_and(|edges| edges.len() as u64 == PAGE);
            if !is_whole || page["pageInfo"]["hasNextPage"] != (number == 0) {
                return Err(Failure::failed(format!("{list}{query} is not the page that was asked for")));
            }
            if run >= WARM_UP {
                took[number].push(ms);
            }
        }
    }
    Ok(took)
}
