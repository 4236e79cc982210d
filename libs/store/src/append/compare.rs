//! Compares the rows of a block with the stored ones.

use tokio_postgres::{Client, types::ToSql};

use super::{CopyText, NewBlock, Table, is_of_row, tables};
use crate::{error::StoreError, time::TimeUs};

const STEP: &str = "comparing rows";

pub(super) async fn compare(client: &Client, block: &NewBlock) -> Result<Vec<String>, StoreError> {
    let sql = "SELECT hash, block_time FROM blocks WHERE height = $1";
    let stored = client.query_opt(sql, &[&block.height.cast_signed()]).await;
    let stored = stored.map_err(StoreError::in_step("reading a stored block"))?;
    let stored = stored.map(|row| (row.get::<_, String>(0), row.get::<_, TimeUs>(1)));
    let mut lines = Vec::new();
    match stored {
        Some((hash, time)) if hash == block.hash && time == block.time => {}
        Some((hash, time)) => {
            let NewBlock { height, hash: expected, time: expected_time, .. } = block;
            lines.push(format!("blocks: {height} {expected} {expected_time} is stored as {hash} {time}"));
        }
        None => return Ok(vec![format!("blocks: height {} is not stored", block.height)]),
    }
    for table in tables() {
        let empty = CopyText::default();
        let text = block.rows.get(table.name).unwrap_or(&empty);
        lines.extend(compare_table(client, table, text, block.time).await?);
    }
    Ok(lines)
}

/// The values go to the server as texts, which it reads as the types of the columns.
async fn compare_table(
    client: &Client,
    table: &Table,
    text: &CopyText,
    time: TimeUs,
) -> Result<Vec<String>, StoreError> {
    let types = column_types(client, table).await?;
    let (name, values) = (table.name, text.columns(table.columns.len()));
    let sql = statement(table, &types);
    let mut parameters: Vec<&(dyn ToSql + Sync)> = vec![&time];
    parameters.extend(values.iter().map(|values| values as &(dyn ToSql + Sync)));
    let found = match client.query(&sql, &parameters).await {
        Ok(found) => found,
        Err(error) => {
            let refused = error.as_db_error().filter(|cause| is_of_row(cause));
            let line =
                refused.map(|cause| format!("{name}: a decoded value is refused: {}", cause.message()));
            return line.map(|line| vec![line]).ok_or_else(|| StoreError::in_step(STEP)(error));
        }
    };
    let line = |row: &tokio_postgres::Row| {
        format!("{name}: {}: {}", row.get::<_, String>(0), row.get::<_, String>(1))
    };
    Ok(found.iter().map(line).collect())
}

/// The types of a table's columns, in their order.
async fn column_types(client: &Client, table: &Table) -> Result<Vec<String>, StoreError> {
    let names: Vec<&str> = table.columns.iter().map(|column| column.name.as_str()).collect();
    let sql = "SELECT format_type(atttypid, atttypmod)
        FROM unnest($1::text[]) WITH ORDINALITY AS column_name (name, place)
        JOIN pg_attribute ON attname = name AND attrelid = $2::text::regclass ORDER BY place";
    let rows = client.query(sql, &[&names, &table.name]).await.map_err(StoreError::in_step(STEP))?;
    Ok(rows.iter().map(|row| row.get(0)).collect())
}

/// The statement that finds the rows that only one side has. $1: the time of the block, then the texts of each column.
fn statement(table: &Table, types: &[String]) -> String {
    let count = table.columns.len();
    let number = |index: usize| index + 2;
    let given: Vec<String> = (0..count).map(|index| format!("${}::text[]", number(index))).collect();
    let cells: Vec<String> = (0..count).map(|index| format!("c{index}")).collect();
    let typed = types.iter().zip(&cells).zip(&table.columns);
    let typed: Vec<String> =
        typed.map(|((kind, cell), column)| format!("{cell}::{kind} AS \"{}\"", column.name)).collect();
    let (name, columns) = (table.name, table.column_names());
    format!(
        "WITH expected AS (SELECT {} FROM unnest({}) AS given ({})),
            stored AS (SELECT {columns} FROM {name} WHERE block_time = $1)
        SELECT 'not stored', to_jsonb(missing)::text
            FROM (SELECT * FROM expected EXCEPT ALL SELECT * FROM stored) AS missing
        UNION ALL
        SELECT 'not decoded', to_jsonb(extra)::text
            FROM (SELECT * FROM stored EXCEPT ALL SELECT * FROM expected) AS extra",
        typed.join(", "),
        given.join(", "),
        cells.join(", "),
    )
}
