//! The members of a segment and the `COPY` statement that reads each: `history/trades.csv` by
//! `sql/history.sql` for that table, `currentstate/chain.csv` by `sql/currentstate/chain.sql`.

use std::collections::BTreeMap;

use proto_msgs::v2::Table;

use super::SealError;

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

/// Name and statement of every member, in the order of the file (H2). `keys` are the columns of each table's
/// primary key, by which its rows are ordered, so that equal data make equal bytes.
///
/// # Errors
/// A table without a primary key.
pub(super) fn all(keys: &BTreeMap<String, Vec<String>>) -> Result<Vec<(String, String)>, SealError> {
    let mut members = Vec::new();
    for table in Table::exportable() {
        let name = table.relation();
        let key = keys.get(&name).ok_or_else(|| SealError::Unfit(format!("{name} has no primary key")))?;
        members.push((format!("history/{name}.csv"), history_statement(&name, key)));
    }
    let current =
        CURRENT_STATE.map(|(table, statement)| (format!("currentstate/{table}.csv"), statement.to_owned()));
    members.extend(current);
    Ok(members)
}

/// The statement that reads a table's rows of one span in the order of its `key`. The span's times are
/// settings of the transaction.
pub fn history_statement(table: &str, key: &[String]) -> String {
    HISTORY.replace("{table}", table).replace("{order_by}", &key.join(", "))
}
