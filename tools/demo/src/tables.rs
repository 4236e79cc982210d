//! The tables that the demo network fills, without those that the database derives from them.

use std::sync::LazyLock;

/// Declares the tables with their names in the database, in the order of writing.
macro_rules! tables {
    ($($table:ident = $name:literal),+ $(,)?) => {
        /// A table that the demo network writes, in the order of writing: `blocks` comes last, so that a
        /// block is visible once all its rows are there.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[repr(usize)]
        #[allow(missing_docs)]
        pub enum Table {
            $($table),+
        }

        impl Table {
            /// Every table in the order of writing.
            pub const ALL: [Table; Table::COUNT] = [$(Table::$table),+];

            /// Number of tables.
            pub const COUNT: usize = [$($name),+].len();

            /// Name in the database.
            #[must_use]
            pub fn name(self) -> &'static str {
                [$($name),+][self as usize]
            }
        }
    };
}

tables! {
    Chain = "chain",
    NetworkParameters = "network_parameters",
    NetworkLimits = "network_limits",
    Epochs = "epochs",
    Accounts = "accounts",
    OracleSpecs = "oracle_specs",
    ProtocolUpgradeProposals = "protocol_upgrade_proposals",
    Markets = "markets",
    Deposits = "deposits",
    Withdrawals = "withdrawals",
    Ledger = "ledger",
    Balances = "balances",
    Orders = "orders",
    Trades = "trades",
    Positions = "positions",
    MarginLevels = "margin_levels",
    LiquidityProvisions = "liquidity_provisions",
    MarketData = "market_data",
    Delegations = "delegations",
    Rewards = "rewards",
    Checkpoints = "checkpoints",
    Blocks = "blocks",
}

static COLUMNS: LazyLock<[Vec<String>; Table::COUNT]> =
    LazyLock::new(|| Table::ALL.map(|table| mesh_store::migrate::columns(table.name())));

impl Table {
    /// Names of the columns in the order of the schema, which is that of the values in a row.
    pub fn columns(self) -> impl Iterator<Item = &'static str> {
        COLUMNS[self as usize].iter().map(String::as_str)
    }
}
