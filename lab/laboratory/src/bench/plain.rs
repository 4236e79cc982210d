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
use mesh_query::{CANDLES, DELEGATIONS, MARKETS, POSITIONS, PROPOSALS, SUMMARIES, TRADES};
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

/// Few, so that equal requests, which the edge would share, are rarely concurrent.
const CONNECTIONS: u64 = 2;
const PAGE: u64 = 100;
/// Number of different pages of a list.
const PAGES: u64 = 100;

/// Lists of pages of exactly a hundred rows: by market, party or epoch, and two without a filter. The trades have
/// its own markets and parties, from 256 on.
const FILL: [&str; 8] = [
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
    "INSERT INTO trades (synthetic_time, tx_hash, block_time, seq_num, id, market_id, price, size, buyer, seller, buy_order,
        sell_order, type)
    SELECT time, 'tx', time, 0, lpad(to_hex(n), 64, '0'), lpad(to_hex(n % 100 + 256), 64, '0'), n, n,
        lpad(to_hex(n % 500 + 256), 64, '0'), lpad(to_hex(n / 100 % 500 + 256), 64, '0'), 'buy', 'sell', 1
    FROM generate_series(0, 99999) AS n,
        LATERAL (SELECT timestamptz '2024-01-01 00:00:00+00' + n * interval '1 second' AS time) AS times",
    "INSERT INTO positions_current
    SELECT lpad(to_hex(n % 100), 64, '0'), lpad(to_hex(n / 100), 64, '0'), n, n, n, n, timestamptz '2023-01-01 00:00:00+00',
        n, n, n, n, n, 'POSITION_STATUS_UNSPECIFIED'
    FROM generate_series(0, 99999) AS n",
    "INSERT INTO markets_current
    SELECT lpad(to_hex(n), 64, '0'), 'code', 'name', 'quote', 'asset', 1, 2, 'TRADING_MODE_CONTINUOUS', 'STATE_ACTIVE', n,
        timestamptz '2023-01-01 00:00:00+00'
    FROM generate_series(1, 10000) AS n",
    "INSERT INTO market_data (synthetic_time, tx_hash, block_time, seq_num, market, mark_price)
    SELECT time + n * interval '1 us', 'tx', time, n, lpad(to_hex(n), 64, '0'), n
    FROM generate_series(1, 10000) AS n, generate_series(1, 5) AS block,
        LATERAL (SELECT timestamptz '2023-01-01 00:00:00+00' + block * interval '1 second' AS time) AS times",
    "VACUUM ANALYZE trades_candle, rewards, protocol_upgrade_proposals_current, trades, positions_current, markets_current,
        market_data",
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
/// The id of a market or a party of the trades.
const TRADED: &str = "lpad(to_hex(:n::int + 256), 64, '0')";

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
    let proposals = pages(fixture, "/api/v2/upgrade/proposals", "protocolUpgradeProposals").await?;
    let markets = pages(fixture, "/api/v2/markets", "markets").await?;
    let cursor = |pages: &[String]| pages[1].split_once("after=").map(|(_, cursor)| cursor.to_owned());
    let (after_proposal, after_market) = (cursor(&proposals), cursor(&markets));
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
            statement: statement(&PROPOSALS, vec![None; PROPOSALS.filters.len()], after_proposal.as_deref())?,
            parameters: &["10001 - :n * 100", "''", "101"],
            greatest: 99,
            plain: "SELECT upgrade_block_height, network_release_tag, approvers, status::text
                FROM protocol_upgrade_proposals_current
                WHERE (upgrade_block_height, network_release_tag) < (10001 - :n * 100, '')
                ORDER BY upgrade_block_height DESC, network_release_tag DESC LIMIT 101",
        },
        Compared {
            names: ["markets", "markets, its statement", "markets, plain"],
            paths: markets,
            statement: statement(&MARKETS, vec![None; MARKETS.filters.len()], after_market.as_deref())?,
            parameters: &["lpad(to_hex(10001 - :n::int * 100), 64, '0')", "101"],
            greatest: 99,
            plain: "SELECT id, code, name, quote_name, settlement_asset, decimal_places, position_decimal_places, trading_mode::text,
                state::text, opened_at_ns, mark_price::text, best_bid_price::text, best_offer_price::text, open_interest::text
                FROM markets_current LEFT JOIN LATERAL (
                    SELECT mark_price, best_bid_price, best_offer_price, open_interest FROM market_data WHERE market = id
                    ORDER BY market_data.block_time DESC NULLS LAST, seq_num DESC LIMIT 1) AS newest ON true
                WHERE id < lpad(to_hex(10001 - :n::int * 100), 64, '0') ORDER BY id DESC LIMIT 101",
        },
        Compared {
            names: ["trades of a market", "trades of a market, its statement", "trades of a market, plain"],
            paths: paths(&|n| format!("/api/v2/trades?marketId={}&pagination.first={PAGE}", id(n + 256))),
            statement: statement(&TRADES, vec![text(), None, None, None], None)?,
            parameters: &[TRADED, "101"],
            greatest: 99,
            plain: "SELECT synthetic_time, id, market_id, price::text, size, buyer, seller, aggressor, buy_order, sell_order, type
                FROM trades WHERE market_id = lpad(to_hex(:n::int + 256), 64, '0')
                ORDER BY synthetic_time DESC NULLS LAST LIMIT 101",
        },
        Compared {
            names: ["trades of a party", "trades of a party, its statement", "trades of a party, plain"],
            paths: paths(&|n| format!("/api/v2/trades?partyId={}&pagination.first={PAGE}", id(n + 256))),
            statement: statement(&TRADES, vec![None, text(), None, None], None)?,
            parameters: &[TRADED, "101"],
            greatest: 99,
            plain: "(SELECT synthetic_time, id, market_id, price::text, size, buyer, seller, aggressor, buy_order, sell_order, type
                FROM trades WHERE buyer = lpad(to_hex(:n::int + 256), 64, '0')
                ORDER BY synthetic_time DESC NULLS LAST LIMIT 101) UNION ALL
                (SELECT synthetic_time, id, market_id, price::text, size, buyer, seller, aggressor, buy_order, sell_order, type
                FROM trades WHERE seller = lpad(to_hex(:n::int + 256), 64, '0')
                ORDER BY synthetic_time DESC NULLS LAST LIMIT 101) ORDER BY synthetic_time DESC NULLS LAST LIMIT 101",
        },
        Compared {
            names: ["positions", "positions, its statement", "positions, plain"],
            paths: paths(&|n| format!("/api/v2/positions?partyId={}&pagination.first={PAGE}", id(n))),
            statement: statement(&POSITIONS, vec![text(), None], None)?,
            parameters: &[ID, "101"],
            greatest: 99,
            plain: "SELECT party_id, market_id, pending_open_volume, round(pending_realised_pnl)::text,
                    round(pending_unrealised_pnl)::text, round(pending_average_entry_market_price)::text,
                    round(loss_socialisation_amount)::text, distressed_status::text, open_volume, realised_pnl::text,
                    unrealised_pnl::text, average_entry_price::text, block_time
                FROM positions_current WHERE party_id = lpad(to_hex(:n::int), 64, '0') ORDER BY market_id DESC LIMIT 101",
        },
    ];
    let title = format!("pages of {PAGE} rows, {CONNECTIONS} connections");
    compare(fixture, SectionName::Lists, &title, &pgbench, LIST_SETTINGS, compared).await
}

/// The paths of all pages of a list without filters: the first one, and one after the end of each.
async fn pages(fixture: &Fixture<'_>, list: &str, member: &str) -> Result<Vec<String>, Failure> {
    let first = format!("{list}?pagination.first={PAGE}");
    let mut paths = vec![first.clone()];
    while paths.len() < PAGES as usize {
        let url = format!("http://{}{}", fixture.edges.uncached, paths[paths.len() - 1]);
        let asked = async { reqwest::get(url).await?.error_for_status()?.json::<Json>().await };
        let page = asked.await.map_err(|error| cannot("read a page", &error))?;
        let end = page[member]["pageInfo"]["endCursor"].as_str();
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
