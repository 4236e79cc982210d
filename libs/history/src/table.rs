//! The tables that can be exported.

/// A table that is sealed and exported: member `history/<name>.csv` of each segment (H2), `TABLE_<NAME>` in
/// the contract.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ExportTable {
    /// Its name in the database.
    pub name: &'static str,
    /// Columns that order its rows within a segment: its key (DATA_MODEL 2), so that equal data make equal
    /// bytes.
    pub order_by: &'static str,
}

/// All of them, by name.
pub const TABLES: [ExportTable; 15] = [
    ExportTable { name: "balances", order_by: "block_time, account_id" },
    ExportTable { name: "blocks", order_by: "block_time" },
    ExportTable { name: "checkpoints", order_by: "block_time, seq_num" },
    ExportTable { name: "delegations", order_by: "block_time, seq_num" },
    ExportTable { name: "deposits", order_by: "id, party_id, block_time" },
    ExportTable { name: "ledger", order_by: "ledger_entry_time" },
    ExportTable { name: "liquidity_provisions", order_by: "id, block_time" },
    ExportTable { name: "margin_levels", order_by: "block_time, account_id" },
    ExportTable { name: "market_data", order_by: "synthetic_time" },
    ExportTable { name: "markets", order_by: "id, block_time" },
    ExportTable { name: "orders", order_by: "block_time, seq_num" },
    ExportTable { name: "positions", order_by: "block_time, party_id, market_id" },
    ExportTable { name: "rewards", order_by: "block_time, seq_num" },
    ExportTable { name: "trades", order_by: "synthetic_time" },
    ExportTable { name: "withdrawals", order_by: "id, party_id, block_time" },
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_are_sorted_by_name() {
        assert!(TABLES.is_sorted_by_key(|table| table.name));
    }
}
