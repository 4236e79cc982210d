//! The tables of the schema, read from the database's catalog.

use std::collections::BTreeMap;

use mesh_store::append::TIMED;
use tokio_postgres::GenericClient;

use crate::LoadError;

/// Tables that triggers fill from the others. CSV files of these names are skipped.
pub(crate) const DERIVED: [&str; 14] = [
    "assets_current", "current_balances", "delegations_current", "deposits_current", "first_rows_of_epochs",
    "last_block", "markets_current", "network_parameters_current", "orders_current", "orders_rested",
    "positions_current", "protocol_upgrade_proposals_current", "trades_candle", "withdrawals_current",
];

/// Tables with rows of blocks that are in no segment: these may be loaded at any time.
pub(crate) const UNSEALED: [&str; 1] = ["assets"];

/// Tables that segments have as their state at the end of a span.
pub(crate) const STATES: [&str; 6] = [
    "accounts", "epochs", "network_limits", "network_parameters", "oracle_specs",
    "protocol_upgrade_proposals",
];

/// The columns of each table that can be loaded, by table.
pub(crate) type Catalog = BTreeMap<String, Vec<String>>;

/// The names that a list of columns does not have.
pub(crate) fn missing_in(columns: &[String], names: &[String]) -> Vec<String> {
    names.iter().filter(|name| !columns.contains(name)).cloned().collect()
}

/// Checks the times that the rows of a relation, of the form of `table`, have of their own.
pub(crate) async fn check_times(
    client: &impl GenericClient,
    table: &str,
    relation: &str,
    file: &str,
) -> Result<(), LoadError> {
    let Some((_, column)) = TIMED.iter().find(|(timed, _)| *timed == table) else { return Ok(()) };
    let sql = format!(
        "SELECT {column}::text, block_time::text FROM {relation}
         WHERE {column} < block_time OR {column} >= block_time + interval '1 s' LIMIT 1"
    );
    let found = client.query_opt(&sql, &[]).await.map_err(LoadError::in_step("looking for times of rows"))?;
    found.map_or(Ok(()), |row| {
        let (time, block_time) = (row.get::<_, String>(0), row.get::<_, String>(1));
        let reason = format!("{column} is {time}, which is not in the second after block_time, {block_time}");
        Err(LoadError::bad_file(file, None, reason))
    })
}

/// The tables of the schema that contains `blocks`, and the columns that can be written.
pub(crate) async fn catalog(client: &impl GenericClient) -> Result<Catalog, LoadError> {
    let sql = "SELECT relation.relname::text, array_agg(attname::text ORDER BY attnum)
        FROM pg_class AS relation JOIN pg_attribute ON attrelid = relation.oid
        WHERE relation.relnamespace = (SELECT relnamespace FROM pg_class WHERE oid = to_regclass('blocks'))
            AND relkind IN ('r', 'p')
            AND relname <> 'refinery_schema_history' AND attnum > 0 AND NOT attisdropped AND attgenerated = ''
        GROUP BY 1";
    let rows = client.query(sql, &[]).await;
    let rows = rows.map_err(LoadError::in_step("reading the tables of the schema"))?;
    Ok(rows.iter().map(|row| (row.get(0), row.get(1))).collect())
}
