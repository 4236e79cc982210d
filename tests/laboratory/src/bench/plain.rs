//! Sections "lists" and "points": PostgreSQL's processor time for an answer of the mesh, for its statement by
//! pgbench, and for the plain statement that gives the same rows by pgbench, prepared as well and with the same
//! settings.
//!
//! Statement and plain statement are compared. An answer of the mesh costs the database more than its
//! statement: a session that sleeps between two answers is woken, and finds the caches used by others.

use mesh::{
    failure::{Failure, cannot},
    processes::POSTGRES,
    terminal::print_line,
};
use mesh_query::{CANDLES, DELEGATIONS, PROPOSALS, SUMMARIES};
use mesh_store::{LIST_SETTINGS, List, PageRequest, PageSizes, Value, Window};
use serde_json::Value as Json;
use tempfile::NamedTempFile;

use super::{
    comparison::{self, REQUESTS, Side},
    deep_pages,
    load::Load,
    postgres_client::{PLANNED_ONCE, PostgresClient, script},
    reads::Fixture,
    section::Section,
    sections::SectionName,
    withdrawals,
};

/// Few, so that equal requests are hardly ever made at the same time, which the edge would share.
const CONNECTIONS: u64 = 2;
const PAGE: u64 = 100;
/// Number of different pages of a list.
const PAGES: u64 = 100;

/// Lists of pages of exactly a hundred rows: by market, by epoch, and one without a filter.
const FILL: [&str; 4] = [
    "INSERT INTO trades_candle
    SELECT '1_minute', lpad(to_hex(n % 100), 64, '0'), timestamptz '2023-01-01 00:00:00+00' + n / 100 * interval '1 minute',
        100000 + n, 100000 + n, 100000 + n, 100000 + n, n, timestamptz '2023-01-01 00:00:00+00',
        timestamptz '2023-01-01 00:00:00+00'
    FROM generate_series(0, 99999) AS n",
    "INSERT INTO rewards
    SELECT lpad(to_hex(party), 64, '0'), lpad(to_hex(line % 5), 64, '0'), lpad(to_hex(line / 5), 64, '0'), 'MAKER', epoch,
        line, 0.5, timestamptz '2023-01-01 00:00:00+00', 'tx', timestamptz '2023-01-01 00:00:00+00' + epoch * interval '1 day',
        line * 2 + party
    FROM generate_series(0, 1) AS party, generate_series(0, 99) AS line, generate_series(0, 999) AS epoch",
    "INSERT INTO protocol_upgrade_proposals_current
    SELECT n, 'v1.0.' || n, ARRAY[lpad(to_hex(n), 64, '0')], 'PROTOCOL_UPGRADE_PROPOSAL_STATUS_PENDING', 'tx', now()
    FROM generate_series(1, 10000) AS n",
    "VACUUM ANALYZE trades_candle, rewards, protocol_upgrade_proposals_current",
];

/// Withdrawals whose ids are numbers for pgbench, which has no random texts, and well-formed for the gateway.
const FILL_POINTS: [&str; 2] = [
    "INSERT INTO withdrawals
    SELECT lpad(to_hex(id::int8 - 1000000000000000000), 64, '0'), party_id, amount, asset, status, ref, foreign_tx_hash,
        created_timestamp, withdrawn_timestamp, ext, tx_hash, block_time
    FROM withdrawals WHERE length(id) = 19",
    "VACUUM ANALYZE withdrawals",
];

/// An id with the number `:n`.
const ID: &str = "lpad(to_hex(:n::int), 64, '0')";

/// What is read in three ways.
struct Compared {
    /// Names of the sides.
    names: [&'static str; 3],
    paths: Vec<String>,
    /// The statement of the mesh.
    statement: String,
    /// Its parameters as expressions of SQL over `:n`.
    parameters: &'static [&'static str],
    /// The plain statement over `:n`.
    plain: &'static str,
    /// The greatest `:n`, from 0 on.
    greatest: i64,
}

/// The statement for a page of a list, given these filters; their values do not matter.
fn statement(
    list: &'static List,
    filters: Vec<Option<Value>>,
    after: Option<&str>,
) -> Result<String, Failure> {
    let request = PageRequest { first: i32::try_from(PAGE).ok(), after, ..PageRequest::default() };
    let window = Window::read(list, request, PageSizes { default: 1000, greatest: 5000 });
    let window = window.map_err(|problem| Failure::failed(format!("{}: {problem}", list.name)))?;
    Ok(list.statement(&window, filters).sql.to_owned())
}

/// Section "lists".
pub(super) async fn lists(fixture: &Fixture<'_>) -> Result<Section, Failure> {
    let Some(pgbench) = PostgresClient::find(&fixture.servers, "pgbench")? else {
        return Ok(Section::skipped(SectionName::Lists, "there is no pgbench"));
    };
    deep_pages::fill(&fixture.servers).await?;
    fixture.servers.execute("fill the lists", &FILL).await?;
    let id = |number| format!("{number:064x}");
    let text = || Some(Value::Text(String::new()));
    let epoch = || Some(Value::Integer(0));
    let proposals = proposal_pages(fixture).await?;
    let cursor = proposals[1].split_once("after=").map(|(_, cursor)| cursor.to_owned());
    let paths = |path: &dyn Fn(u64) -> String| (0..PAGES).map(path).collect();
    let compared = [
        Compared {
            names: ["delegations", "delegations, its statement", "delegations, plain"],
            paths: paths(&|n| format!("/api/v2/delegations?partyId={}&pagination.first={PAGE}", id(n))),
            statement: statement(&DELEGATIONS, vec![text(), None, None], None)?,
            parameters: &[ID, "101"],
            greatest: 99,
            plain: "SELECT epoch_id, party_id, node_id, coalesce(amount, 0)::text FROM delegations_current
                WHERE party_id = lpad(to_hex(:n::int), 64, '0')
                ORDER BY epoch_id DESC NULLS LAST, node_id DESC LIMIT 101",
        },
        Compared {
            names: ["candles", "candles, its statement", "candles, plain"],
            paths: paths(&|n| {
                let market = id(n);
                format!("/api/v2/candle?candleId=trades_candle_1_minute_{market}&pagination.first={PAGE}")
            }),
            statement: statement(&CANDLES, vec![text(), text(), None, None], None)?,
            parameters: &["'1_minute'", ID, "101"],
            greatest: 99,
            plain: "SELECT period_start, last_update_in_period, high::text, low::text, open::text, close::text, volume::text
                FROM trades_candle WHERE interval = '1_minute' AND market_id = lpad(to_hex(:n::int), 64, '0')
                ORDER BY period_start DESC LIMIT 101",
        },
        Compared {
            names: ["summaries", "summaries, its statement", "summaries, plain"],
            paths: paths(&|n| {
                format!(
                    "/api/v2/rewards/epoch/summaries?filter.fromEpoch={n}&filter.toEpoch={n}&pagination.first={PAGE}"
                )
            }),
            statement: statement(&SUMMARIES, vec![epoch(), epoch(), None, None], None)?,
            parameters: &[":n", ":n", "101"],
            greatest: 99,
            plain: "SELECT epoch_id, market_id, asset_id, reward_type, coalesce(sum(amount), 0)::text FROM rewards
                WHERE epoch_id >= :n AND epoch_id <= :n
                GROUP BY epoch_id, market_id, asset_id, reward_type
                ORDER BY epoch_id DESC, market_id DESC, asset_id DESC, reward_type DESC LIMIT 101",
        },
        Compared {
            names: ["proposals", "proposals, its statement", "proposals, plain"],
            paths: proposals,
            statement: statement(&PROPOSALS, vec![None; PROPOSALS.filters.len()], cursor.as_deref())?,
            parameters: &["10001 - :n * 100", "''", "101"],
            greatest: 99,
            plain: "SELECT upgrade_block_height, network_release_tag, approvers, status::text
                FROM protocol_upgrade_proposals_current
                WHERE (upgrade_block_height, network_release_tag) < (10001 - :n * 100, '')
                ORDER BY upgrade_block_height DESC, network_release_tag DESC LIMIT 101",
        },
    ];
    let title = format!("pages of {PAGE} rows, {CONNECTIONS} connections");
    compare(fixture, SectionName::Lists, &title, &pgbench, LIST_SETTINGS, compared).await
}

/// The paths of all pages of the proposals: the first one, and one after the end of each.
async fn proposal_pages(fixture: &Fixture<'_>) -> Result<Vec<String>, Failure> {
    let first = format!("/api/v2/upgrade/proposals?pagination.first={PAGE}");
    let mut paths = vec![first.clone()];
    while paths.len() < PAGES as usize {
        let url = format!("http://{}{}", fixture.edges.uncached, paths[paths.len() - 1]);
        let asked = async { reqwest::get(url).await?.error_for_status()?.json::<Json>().await };
        let page = asked.await.map_err(|error| cannot("read a page", &error))?;
        let end = page["protocolUpgradeProposals"]["pageInfo"]["endCursor"].as_str();
        let end = end.ok_or_else(|| Failure::failed(format!("there is no such page: {page}")))?;
        paths.push(format!("{first}&pagination.after={end}"));
    }
    Ok(paths)
}

/// Section "points".
pub(super) async fn points(fixture: &Fixture<'_>) -> Result<Section, Failure> {
    let Some(pgbench) = PostgresClient::find(&fixture.servers, "pgbench")? else {
        return Ok(Section::skipped(SectionName::Points, "there is no pgbench"));
    };
    fixture.servers.execute("fill in withdrawals", &FILL_POINTS).await?;
    let compared = [Compared {
        names: ["withdrawals", "withdrawals, its statement", "withdrawals, plain"],
        paths: (0..withdrawals::ROWS).map(|number| format!("/api/v2/withdrawal/{number:064x}")).collect(),
        statement: withdrawals::STATEMENT.to_owned(),
        parameters: &[ID],
        greatest: withdrawals::ROWS.cast_signed() - 1,
        plain: "SELECT id, party_id, trim_scale(amount)::text, asset, status::text, ref, foreign_tx_hash,
                created_timestamp, withdrawn_timestamp, ext
            FROM withdrawals WHERE id = lpad(to_hex(:n::int), 64, '0') ORDER BY block_time DESC LIMIT 1",
    }];
    let title = format!("{} withdrawals by id, {CONNECTIONS} connections", withdrawals::ROWS);
    compare(fixture, SectionName::Points, &title, &pgbench, PLANNED_ONCE, compared).await
}

async fn compare<const N: usize>(
    fixture: &Fixture<'_>,
    name: SectionName,
    title: &str,
    pgbench: &PostgresClient,
    settings: &'static str,
    compared: [Compared; N],
) -> Result<Section, Failure> {
    print_line(&format!("reading {name} from the mesh and by pgbench"));
    let server = fixture.mesh.watch(&[POSTGRES]);
    let (mut sides, mut worst) = (Vec::new(), f64::NAN);
    for Compared { names: [mesh, own, plainly], paths, statement, parameters, plain, greatest } in compared {
        let scripts = [script(&statement, parameters, 0..=greatest)?, script(plain, &[], 0..=greatest)?];
        let by_pgbench = |name, script: &NamedTempFile| {
            let (pgbench, watched, length) = (pgbench.clone(), server.clone(), fixture.length);
            let path = script.path().to_owned();
            let bench = move || pgbench.bench(&path, (CONNECTIONS, settings), &watched, length);
            Side::blocking(name, REQUESTS, bench)
        };
        let load = Load::paths(fixture.edges.uncached, paths, CONNECTIONS, fixture.length);
        let [mesh, own, plain] = comparison::run_rounds([
            Side::load(mesh, load, server.clone()),
            by_pgbench(own, &scripts[0]),
            by_pgbench(plainly, &scripts[1]),
        ])
        .await?;
        worst = worst.max(own.cost().zip(plain.cost()).map_or(f64::NAN, |(one, other)| one / other));
        sides.extend([mesh, own, plain]);
    }
    let found = ("statement / plain statement, CPU time of PostgreSQL, the worst".to_owned(), worst);
    Ok(comparison::section(name, title, &sides, &[found]))
}
