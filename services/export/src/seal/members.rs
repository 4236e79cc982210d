//! The members of a segment and the statement that reads each: `history/trades.csv` by `sql/history/trades.sql`.

/// A member's name and its `COPY` statement.
macro_rules! member {
    ($path:literal) => {
        (concat!($path, ".csv"), include_str!(concat!("../../sql/", $path, ".sql")))
    };
}

/// All of them, in the order of the file (H2).
pub(super) const MEMBERS: [(&str, &str); 24] = [
    member!("history/balances"),
    member!("history/blocks"),
    member!("history/checkpoints"),
    member!("history/delegations"),
    member!("history/deposits"),
    member!("history/ledger"),
    member!("history/liquidity_provisions"),
    member!("history/margin_levels"),
    member!("history/market_data"),
    member!("history/markets"),
    member!("history/orders"),
    member!("history/positions"),
    member!("history/rewards"),
    member!("history/trades"),
    member!("history/withdrawals"),
    member!("currentstate/accounts"),
    member!("currentstate/chain"),
    member!("currentstate/current_balances"),
    member!("currentstate/delegations_current"),
    member!("currentstate/epochs"),
    member!("currentstate/network_limits"),
    member!("currentstate/network_parameters"),
    member!("currentstate/oracle_specs"),
    member!("currentstate/protocol_upgrade_proposals"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_exportable_table_is_a_member() {
        let tables: Vec<_> =
            mesh_history::TABLES.iter().map(|table| format!("history/{table}.csv")).collect();
        assert_eq!(MEMBERS[..15].iter().map(|(name, _)| *name).collect::<Vec<_>>(), tables);
        assert!(MEMBERS[15..].is_sorted());
    }
}
