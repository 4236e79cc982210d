//! Section "as-of": PostgreSQL's processor time for a page as of one of the last 100,000 blocks, and for the newest
//! page of the same list by the same filters, and the same for the book of a market. pgbench runs both, as in section "lists". No plan may have a
//! sequential scan.

use mesh::{
    failure::{Failure, cannot},
    processes::POSTGRES,
};
use mesh_problem::Problem;
use mesh_query::{ACCOUNTS, BOOK, CANDLES, ORDERS, PAST_BOOK, POSITIONS, TRADES};
use mesh_store::{LIST_SETTINGS, List, PageRequest, PageSizes, Past, Statement, TimeUs, Value, Window};
use tokio_postgres::{Client, SimpleQueryMessage};

use super::{
    comparison,
    lists::{CLIENTS, PAGE, numbered},
    postgres_client::{Bench, PostgresClient},
    section::Figures,
    world::World,
};

/// Fills the history.
const FILL: &str = include_str!("../../sql/past.sql");
/// Time of block 0 there, seconds since the Unix epoch.
const GENESIS_S: i64 = 1_704_067_200;
/// The oldest block that is read, and the distance to the next one.
const FIRST: u64 = 100_001;
const STEP: u64 = 997;
/// Number of blocks that are read.
const BLOCKS: u64 = 100;

/// A filtered column, and the number of different ids in it.
type Ids = (&'static str, u64);

/// The pages: a list, and the columns by which it is filtered.
const PAGES: [(&List, &[Ids]); 9] = [
    (&ORDERS, &[]),
    (&ORDERS, &[("market_id", 50)]),
    (&ORDERS, &[("party_id", 5000)]),
    (&ORDERS, &[("party_id", 5000), ("is_live", 1)]),
    (&POSITIONS, &[("party_id", 10_000)]),
    (&ACCOUNTS, &[("party_order", 1000)]),
    (&TRADES, &[("market_id", 50)]),
    (&CANDLES, &[("interval", 0), ("market_id", 50)]),
    (&TRADES, &[]),
];

/// Runs the comparison.
pub(super) async fn measure(world: &World<'_>) -> Result<Figures, Failure> {
    let pgbench = PostgresClient::find(&world.servers, "pgbench")?;
    world.servers.execute("fill the history", &[FILL, "VACUUM ANALYZE", "CHECKPOINT"]).await?;
    let database = world.servers.connect(LIST_SETTINGS).await?;
    let server = world.mesh.watch(&[POSTGRES]);
    let bench = Bench { clients: CLIENTS, settings: LIST_SETTINGS, length: world.length() };
    let (mut sides, mut worst) = (Vec::new(), f64::NAN);
    let lists = PAGES.map(|(list, columns)| {
        let names: Vec<&str> = columns.iter().map(|(column, _)| *column).collect();
        let name = format!("{} by {}", list.name, names.join(", "));
        (name, Box::new(move |number, past: Option<&Past>| page(list, columns, number, past)) as Statements)
    });
    let book: (String, Statements) =
        ("book of a market".to_owned(), Box::new(|number, past| Ok(book(number, past))));
    for (name, statement) in lists.into_iter().chain([book]) {
        let of = |is_past: bool| {
            let statements = (0..BLOCKS).map(|number| {
                let height = FIRST + number * STEP;
                let time = TimeUs((GENESIS_S + height.cast_signed()) * 1_000_000);
                let past = Past { height, time, is_sealed: true, delegation_epoch: 0, reward_epoch: 0 };
                statement(number, is_past.then_some(&past))
            });
            let statements = statements.collect::<Result<Vec<_>, Problem>>();
            let statements = statements.map_err(|problem| Failure::failed(format!("{name}: {problem}")))?;
            numbered(&statements).ok_or_else(|| Failure::failed(format!("{name} has no statements")))
        };
        let last = BLOCKS.cast_signed() - 1;
        let side = |name: &str, sql: &str| pgbench.side(name, &server, bench, sql, 0..=last);
        let (past, newest) = (of(true)?, of(false)?);
        check_plan(&database, &name, &past).await?;
        let both = [side(&format!("{name}, as of a block"), &past)?, side(&name, &newest)?];
        let [past, newest] = comparison::run_rounds(both).await?;
        worst = worst.max(past.cost() / newest.cost());
        sides.extend([past, newest]);
    }
    Ok(comparison::figures(&format!("pages of {PAGE} rows, {CLIENTS} connections"), &sides, vec![worst]))
}

/// The statement of a number, of now or as of a block.
type Statements = Box<dyn Fn(u64, Option<&Past>) -> Result<Statement, Problem>>;

fn page(
    list: &'static List,
    columns: &[Ids],
    number: u64,
    past: Option<&Past>,
) -> Result<Statement, Problem> {
    let request = PageRequest { first: Some(PAGE.into()), ..PageRequest::default() };
    let window = Window::read(list, request, PageSizes { default: 1000, greatest: 5000 })?;
    Ok(list.statement(&window, filters(list, columns, number), past))
}

fn book(number: u64, past: Option<&Past>) -> Statement {
    let mut parameters = vec![Value::Text(id(number, 50)), Value::Integer(PAGE.into())];
    parameters.extend(past.map(|past| Value::Time(past.time)));
    Statement { sql: if past.is_some() { PAST_BOOK } else { BOOK }, parameters }
}

/// One of `ids` ids, distributed over them.
fn id(number: u64, ids: u64) -> String {
    format!("{:064x}", number * 37 % ids)
}

/// Fails when the generic plan has a sequential scan of more than the head.
async fn check_plan(database: &Client, name: &str, statement: &str) -> Result<(), Failure> {
    let explain = format!(
        "DEALLOCATE ALL; PREPARE page (int) AS {}; EXPLAIN EXECUTE page (8)",
        statement.replace("[:n + 1]", "[$1 + 1]")
    );
    let plan = database.simple_query(&explain).await.map_err(|error| cannot("explain a page", &error))?;
    let lines = plan.iter().filter_map(|message| match message {
        SimpleQueryMessage::Row(row) => row.get(0),
        _ => None,
    });
    let scan = lines.into_iter().find(|line| line.contains("Seq Scan") && !line.contains("last_block"));
    scan.map_or(Ok(()), |line| Err(Failure::failed(format!("{name}, as of a block: {}", line.trim()))))
}

/// The values of a list's filters.
fn filters(list: &List, columns: &[Ids], number: u64) -> Vec<Option<Value>> {
    let value = |column: &str, ids: u64| match column {
        "is_live" => Value::Small(1),
        "interval" => Value::Text("1_minute".to_owned()),
        "party_order" => Value::party(&id(number, ids)),
        _ => Value::Text(id(number, ids)),
    };
    let of = |filter: &mesh_store::Filter| {
        let column = super::lists::column(filter)?;
        let (_, ids) = columns.iter().find(|(name, _)| *name == column)?;
        Some(value(column, *ids))
    };
    list.filters.iter().map(of).collect()
}
