//! The members of a segment and the `COPY` statement that reads each: `history/trades.csv` by
//! `sql/history.sql` for that table, `currentstate/chain.csv` by `sql/currentstate/chain.sql`.

use mesh_history::{ExportTable, TABLES};

const HISTORY: &str = include_str!("../../sql/history.sql");

/// A table's name and its statement.
macro_rules! current_state {
    ($($table:literal)*) => {
        [$(($table, include_str!(concat!("../../sql/currentstate/", $table, ".sql")))),*]
    };
}

const CURRENT_STATE: [(&str, &str); 9] = current_state! {
    "accounts"
    "chain"
    "current_balances"
    "delegations_current"
    "epochs"
    "network_limits"
    "network_parameters"
    "oracle_specs"
    "protocol_upgrade_proposals"
};

/// Name and statement of every member, in the order of the file (H2).
pub(super) fn all() -> impl Iterator<Item = (String, String)> {
    let history =
        TABLES.iter().map(|table| (format!("history/{}.csv", table.name), history_statement(table)));
    let current =
        CURRENT_STATE.map(|(table, statement)| (format!("currentstate/{table}.csv"), statement.to_owned()));
    history.chain(current)
}

/// The statement that reads a table's rows of one span. The span's times are settings of the transaction.
pub fn history_statement(table: &ExportTable) -> String {
    HISTORY.replace("{table}", table.name).replace("{order_by}", table.order_by)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_are_in_the_order_of_the_file() {
        let names: Vec<String> = all().map(|(name, _)| name).collect();
        assert_eq!((names.len(), names[0].as_str()), (24, "history/balances.csv"));
        assert!(names[..15].is_sorted() && names[15..].is_sorted());
    }

    #[test]
    fn a_statement_names_its_table_and_its_order() {
        let table = ExportTable { name: "trades", order_by: "synthetic_time" };
        let statement = history_statement(&table);
        assert!(statement.contains("FROM trades\n") && statement.contains("ORDER BY synthetic_time\n"));
    }
}
