//! Section "lists": PostgreSQL's processor time for the statement of a page of each list, and for the plain
//! statement that gives the same rows. pgbench runs both, prepared and with the same settings.
//!
//! Pages and plain statements follow from the declarations of the lists, and the rows from the schema: a new
//! list is measured, too.
//!
//! Section "as-of": PostgreSQL's processor time for a page as of one of the last 100,000 blocks, and for the newest
//! page of the same list by the same filters, and the same for the book of a market. pgbench runs both, as in section
//! "lists". No plan may have a sequential scan.

use mesh::{
    failure::{Failure, cannot},
    processes::POSTGRES,
};
use mesh_oracles::cursor;
use mesh_problem::Problem;
use mesh_query::{ACCOUNTS, BOOK, CANDLES, LISTS, ORDERS, PAST_BOOK, POSITIONS, TRADES};
use mesh_store::{
    Filter, KeyKind, LIST_SETTINGS, List, PageRequest, PageSizes, Past, Statement, TimeUs, Value, Window,
};
use tokio_postgres::{Client, SimpleQueryMessage};

use super::{
    comparison::{self, Side},
    cost::MeasuredProcess,
    postgres_client::{Bench, PostgresClient},
    section::Figures,
    world::World,
};
use crate::private::connect;

pub(super) const CLIENTS: u64 = 2;
pub(super) const PAGE: u8 = 100;

/// Fills the tables of a list.
const FILL: &str = include_str!("../../sql/fill_list.sql");

/// The filtered columns whose values are the same in all rows: the primary key without the key of the list.
const FIXED: &str = "SELECT attname::text FROM pg_index JOIN pg_attribute ON attrelid = indrelid
    WHERE indisprimary AND indrelid = $1::text::regclass AND attnum = ANY (indkey)";

/// A row of a list.
struct Sample {
    cursor: String,
    /// The values of the columns of the list's filters; empty for other filters.
    columns: Vec<String>,
}

/// A kind of page of a list.
struct Page<'a> {
    list: &'static List,
    samples: &'a [Sample],
    /// Whether each of the list's filters is given.
    given: Vec<bool>,
    is_from_position: bool,
}

/// Pairs of statements that are compared, each a page of a list and what it is compared with.
struct Pages<'a> {
    world: &'a World<'a>,
    pgbench: PostgresClient,
    database: Client,
    server: Vec<MeasuredProcess>,
    sides: Vec<Side<'a>>,
    /// The greatest ratio of costs so far.
    worst: f64,
}

impl<'a> Pages<'a> {
    /// Fills the tables.
    async fn start(world: &'a World<'a>, what: &str, fill: &[&str]) -> Result<Self, Failure> {
        let pgbench = PostgresClient::find(&world.servers, "pgbench")?;
        world.servers.execute(what, &[fill, &["VACUUM ANALYZE", "CHECKPOINT"]].concat()).await?;
        let settings = LIST_SETTINGS.replace(' ', "%20");
        let database = connect(&format!("{}?options={settings}", world.servers.database.url())).await?;
        let server = world.mesh.watch(&[POSTGRES]);
        Ok(Self { world, pgbench, database, server, sides: Vec::new(), worst: f64::NAN })
    }

    /// Compares two statements of the numbers up to the last one.
    async fn compare(&mut self, pair: [(&str, &str); 2], last: i64) -> Result<(), Failure> {
        let bench = Bench { clients: CLIENTS, settings: LIST_SETTINGS, length: self.world.length() };
        let side = |(name, statement): (&str, &str)| {
            self.pgbench.side(name, &self.server, bench, statement, 0..=last)
        };
        let [one, other] = comparison::run_rounds([side(pair[0])?, side(pair[1])?]).await?;
        self.worst = self.worst.max(one.cost() / other.cost());
        self.sides.extend([one, other]);
        Ok(())
    }

    fn figures(&self) -> Figures {
        let title = format!("pages of {PAGE} rows, {CLIENTS} connections");
        comparison::figures(&title, &self.sides, vec![self.worst])
    }
}

/// Section "lists".
pub(super) async fn lists(world: &World<'_>) -> Result<Figures, Failure> {
    let mut statements = vec![FILL.to_owned()];
    for List { table, key, .. } in LISTS {
        let keys = key.iter().map(|column| column.name).collect::<Vec<_>>().join(",");
        statements.push(format!("SELECT pg_temp.fill('{table}', '{{{keys}}}')"));
    }
    let statements: Vec<&str> = statements.iter().map(String::as_str).collect();
    let mut compared = Pages::start(world, "fill the lists", &statements).await?;
    for list in LISTS {
        let samples = samples(&compared.database, list).await?;
        for page in pages(&compared.database, list, &samples).await? {
            let (name, statement, plain) = (page.name(), page.statement()?, page.plain()?);
            check(&compared.database, &name, &statement, &plain).await?;
            let name_of_plain = format!("{name}, plain");
            let pair = [(&*name, &*statement), (&*name_of_plain, &*plain)];
            compared.compare(pair, samples.len() as i64 - 1).await?;
        }
    }
    Ok(compared.figures())
}

/// Rows at equal distances in the list.
async fn samples(database: &Client, list: &List) -> Result<Vec<Sample>, Failure> {
    let key = list.key.iter().map(|column| match column.kind {
        KeyKind::Time => format!("(extract(epoch FROM {}) * 1000000000)::int8::text", column.name),
        KeyKind::Integer | KeyKind::Text => format!("{}::text", column.name),
        KeyKind::Party => format!("coalesce(nullif(substr({}, 2), ''), 'network')", column.name),
    });
    let column = |filter| column(filter).map_or("''".to_owned(), |column| format!("{column}::text"));
    let columns: Vec<String> = list.filters.iter().map(column).collect();
    let keys: Vec<&str> = list.key.iter().map(|column| column.name).collect();
    let statement = format!(
        "SELECT ARRAY[{}], ARRAY[{}]::text[]
        FROM (SELECT *, row_number() OVER (ORDER BY {}) AS place FROM {}) AS rows WHERE place % 1000 = 500",
        key.collect::<Vec<_>>().join(", "),
        columns.join(", "),
        keys.join(", "),
        list.table,
    );
    let rows = database.query(&statement, &[]).await.map_err(|error| cannot("read a list", &error))?;
    let sample = |row: &tokio_postgres::Row| Sample {
        cursor: cursor(list.name, &row.get::<_, Vec<String>>(0)),
        columns: row.get(1),
    };
    Ok(rows.iter().map(sample).collect())
}

/// The pages of a list by each filter that has an index; without one, from a position. Filters of columns that
/// identify a row together with the key are always given.
async fn pages<'a>(
    database: &Client,
    list: &'static List,
    samples: &'a [Sample],
) -> Result<Vec<Page<'a>>, Failure> {
    let rows = database.query(FIXED, &[&list.table]).await;
    let rows = rows.map_err(|error| cannot("read a primary key", &error))?;
    let primary: Vec<String> = rows.iter().map(|row| row.get(0)).collect();
    let is_key = |column: &str| list.key.iter().any(|key| key.name == column);
    let is_fixed = |filter: &Filter| {
        column(filter).is_some_and(|column| !is_key(column) && primary.iter().any(|name| name == column))
    };
    let has_index = |filter: &Filter| {
        let first = &list.key[0];
        let begins_key = |column: &str| first.name == column && first.kind != KeyKind::Integer;
        column(filter).is_some_and(|column| begins_key(column) || list.indexed.contains(&column))
    };
    let page = |given, is_from_position| Page { list, samples, given, is_from_position };
    let fixed: Vec<bool> = list.filters.iter().map(is_fixed).collect();
    let filtered = list.filters.iter().enumerate().filter(|(_, filter)| has_index(filter));
    let by_filter = filtered.map(|(number, _)| {
        let mut given = fixed.clone();
        given[number] = true;
        page(given, false)
    });
    let by_filter: Vec<Page<'_>> = by_filter.collect();
    Ok(if by_filter.is_empty() { vec![page(fixed, true)] } else { by_filter })
}

/// The column that a filter compares; the first one of two.
pub(super) fn column(filter: &Filter) -> Option<&'static str> {
    match filter {
        Filter::Equal(column)
        | Filter::AnyOf(column)
        | Filter::Flag(column)
        | Filter::EitherOf([column, _]) => Some(column),
        Filter::AtLeast | Filter::AtMost | Filter::Matches(_) => None,
    }
}

/// A filter's value as it is stored: statuses of orders are numbers, all others texts.
fn value_of(filter: &Filter, stored: &str) -> Value {
    match (filter, stored.parse()) {
        (Filter::AnyOf("status"), Ok(number)) => Value::Small(number),
        _ => Value::Text(stored.to_owned()),
    }
}

impl Page<'_> {
    fn name(&self) -> String {
        let given = self.list.filters.iter().zip(&self.given).filter(|(_, given)| **given);
        let columns = given.filter_map(|(filter, _)| Some(format!(" by {}", column(filter)?)));
        let position = if self.is_from_position { " from a position" } else { "" };
        format!("{}{}{position}", self.list.name, columns.collect::<String>())
    }

    /// The statement of the mesh for one of the samples, and its parameters as expressions over the number of
    /// the sample, `:n`.
    fn expressions(&self) -> Result<(&'static str, Vec<String>), Failure> {
        let of_sample = |sample: &Sample| {
            let after = self.is_from_position.then_some(&*sample.cursor);
            let request = PageRequest { first: Some(PAGE.into()), after, ..PageRequest::default() };
            let window = Window::read(self.list, request, PageSizes { default: 1000, greatest: 5000 });
            let window =
                window.map_err(|problem| Failure::failed(format!("{}: {problem}", self.list.name)))?;
            let values = self.list.filters.iter().zip(&sample.columns).zip(&self.given);
            let filters = values.map(|((filter, value), given)| given.then(|| value_of(filter, value)));
            let filters = filters.collect();
            Ok(self.list.statement(&window, filters, None))
        };
        let statements: Vec<Statement> =
            self.samples.iter().map(of_sample).collect::<Result<_, Failure>>()?;
        expressions(&statements).ok_or_else(|| Failure::failed(format!("{} has no rows", self.list.name)))
    }

    fn statement(&self) -> Result<String, Failure> {
        let (sql, expressions) = self.expressions()?;
        Ok(substituted(sql, &expressions))
    }

    /// The plain statement with the same rows: a walk along an index for each column of a filter.
    fn plain(&self) -> Result<String, Failure> {
        let (_, expressions) = self.expressions()?;
        let List { table, key, columns, is_grouped, filters, indexed, .. } = self.list;
        let given: Vec<&Filter> =
            filters.iter().zip(&self.given).filter(|(_, given)| **given).map(|(filter, _)| filter).collect();
        let is_flag = |filter: &&Filter| matches!(filter, Filter::Flag(_));
        let with_value = given.iter().filter(|filter| !is_flag(filter)).count();
        let (values, rest) = expressions.split_at(with_value);
        let Some((limit, position)) = rest.split_last() else { return Ok(String::new()) };
        let keys: Vec<&str> = key.iter().map(|column| column.name).collect();
        let is_own = given.iter().any(|filter| column(filter).is_some_and(|name| indexed.contains(&name)));
        // The order of the index that a filter has for itself.
        let order = keys.join(" DESC, ") + " DESC";
        let order = if is_own { order.replacen(" DESC", " DESC NULLS LAST", 1) } else { order };
        let walk = |side: usize| {
            let column = |filter: &Filter| match filter {
                Filter::EitherOf(columns) => columns[side],
                filter => column(filter).unwrap_or_default(),
            };
            let flags = given.iter().filter(|filter| is_flag(filter));
            let mut conditions: Vec<String> = flags.map(|filter| column(filter).to_owned()).collect();
            let compared = given.iter().filter(|filter| !is_flag(filter)).zip(values);
            conditions.extend(compared.map(|(filter, value)| format!("{} = {value}", column(filter))));
            if self.is_from_position {
                let keys = keys[..position.len()].join(", ");
                conditions.push(format!("({keys}) < ({})", position.join(", ")));
            }
            let (keys, columns, conditions) = (keys.join(", "), columns.join(", "), conditions.join(" AND "));
            let columns = if columns.is_empty() { keys.clone() } else { format!("{keys}, {columns}") };
            let group = if *is_grouped { format!("GROUP BY {keys} ") } else { String::new() };
            format!("SELECT {columns} FROM {table} WHERE {conditions} {group}ORDER BY {order} LIMIT {limit}")
        };
        Ok(match given.iter().any(|filter| matches!(filter, Filter::EitherOf(_))) {
            true => format!("({}) UNION ALL ({}) ORDER BY {order} LIMIT {limit}", walk(0), walk(1)),
            false => walk(0),
        })
    }
}

/// The text of statements of one shape, and their parameters as expressions over the number of the statement, `:n`.
fn expressions(statements: &[Statement]) -> Option<(&'static str, Vec<String>)> {
    let Statement { sql, parameters } = statements.first()?;
    let expression = |place: usize| {
        let values = statements.iter().map(|statement| statement.parameters[place].to_literal());
        let values: Vec<String> = values.collect();
        match values.iter().all(|value| *value == values[0]) {
            true => values[0].clone(),
            false => format!("(ARRAY[{}])[:n + 1]", values.join(", ")),
        }
    };
    Some((sql, (0..parameters.len()).map(expression).collect()))
}

fn substituted(sql: &str, expressions: &[String]) -> String {
    let numbered = expressions.iter().enumerate().rev();
    numbered.fold(sql.to_owned(), |sql, (place, text)| sql.replace(&format!("${}", place + 1), text))
}

/// A statement that is the one of number `:n` of these, which have one shape.
pub(super) fn numbered(statements: &[Statement]) -> Option<String> {
    let (sql, expressions) = expressions(statements)?;
    Some(substituted(sql, &expressions))
}

/// Checks that both statements give the same number of rows, a page at least; that of the mesh has one more,
/// for the head.
async fn check(database: &Client, name: &str, statement: &str, plain: &str) -> Result<(), Failure> {
    let mut rows = [0; 2];
    for (rows, statement) in rows.iter_mut().zip([statement, plain]) {
        let page = database.query(&statement.replace("[:n + 1]", "[8]"), &[]).await;
        *rows = page.map_err(|error| cannot("read a page", &error))?.len();
    }
    let is_page = rows[0] == rows[1] + 1 && rows[1] >= usize::from(PAGE);
    is_page.then_some(()).ok_or_else(|| {
        Failure::failed(format!("{name} gives {} rows and plain {}, not a page", rows[0] - 1, rows[1]))
    })
}

/// Fills the history.
const PAST: &str = include_str!("../../sql/past.sql");
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

/// Section "as-of".
pub(super) async fn as_of(world: &World<'_>) -> Result<Figures, Failure> {
    let mut compared = Pages::start(world, "fill the history", &[PAST]).await?;
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
        let (past, newest) = (of(true)?, of(false)?);
        check_plan(&compared.database, &name, &past).await?;
        let name_of_past = format!("{name}, as of a block");
        let pair = [(&*name_of_past, &*past), (&*name, &*newest)];
        compared.compare(pair, BLOCKS.cast_signed() - 1).await?;
    }
    Ok(compared.figures())
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
