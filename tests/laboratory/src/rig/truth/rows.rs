//! The rows that the drill writes, and their statements. Numbers are mapped to ids, so that few keys have many
//! versions.

/// Time of block 0, seconds since the Unix epoch. Blocks are one second apart.
pub(super) const GENESIS_S: i64 = 1_687_255_200;
/// The asset of all rows.
pub(super) const ASSET: &str = "f100000000000000000000000000000000000000000000000000000000000000";
/// Greatest number of accounts: one of each type per party.
pub(super) const ACCOUNTS: i64 = 24;
/// Stored numbers and names of account types.
const ACCOUNT_TYPES: [(i64, &str); 6] = [
    (1, "ACCOUNT_TYPE_INSURANCE"),
    (2, "ACCOUNT_TYPE_SETTLEMENT"),
    (3, "ACCOUNT_TYPE_MARGIN"),
    (4, "ACCOUNT_TYPE_GENERAL"),
    (9, "ACCOUNT_TYPE_BOND"),
    (12, "ACCOUNT_TYPE_GLOBAL_REWARD"),
];

/// A row to write; `at` is its block's time in seconds.
#[derive(Debug, Clone)]
pub(super) enum Row {
    Block { height: i64 },
    Account { number: i64 },
    Balance { account: i64, at: i64, balance: i64 },
    Delegation { epoch: i64, party: i64, node: i64, at: i64, sequence: i64, amount: i64 },
    Withdrawal { number: i64, at: i64, status: &'static str, reference: i64 },
    OracleSpec { number: i64, at: i64, status: &'static str },
    Reward { epoch: i64, market: i64, kind: &'static str, amount: i64, at: i64, sequence: i64 },
    Trade { market: i64, at: i64, micros: i64, price: i64, size: i64 },
    Proposal { height: i64, approvers: Vec<String>, status: &'static str, at: i64 },
    Limits { at: i64, flags: i64 },
}

/// An id of 64 hexadecimal digits.
pub(super) fn id(kind: char, number: i64) -> String {
    format!("{kind}{number:063x}")
}

/// The id of a party.
pub(super) fn party(number: i64) -> String {
    if number == 0 { "network".to_owned() } else { id('b', number) }
}

/// The time of a block, seconds.
pub(super) fn time_s(height: i64) -> i64 {
    GENESIS_S + height
}

/// Sort key of accounts: those of the network come first; then party, market, asset and stored type.
pub(super) type AccountKey = (bool, String, String, &'static str, i64);

/// The sort key of an account number, and the name of the account's type.
pub(super) fn account(number: i64) -> (AccountKey, &'static str) {
    let market = if number % 3 == 0 { String::new() } else { id('a', number % 3) };
    let (kind, name) = ACCOUNT_TYPES[(number / 4).unsigned_abs() as usize % ACCOUNT_TYPES.len()];
    ((number % 4 != 0, party(number % 4), market, ASSET, kind), name)
}

/// The five flags of the network's limits.
pub(super) fn bits(flags: i64) -> [bool; 5] {
    [0, 1, 2, 3, 4].map(|bit| flags >> bit & 1 == 1)
}

impl Row {
    /// The statement that writes it.
    pub(super) fn sql(&self) -> String {
        let time = |seconds: &i64| format!("to_timestamp({seconds})");
        let (table, values) = match self {
            Self::Block { height } => {
                ("blocks", format!("{}, {height}, '{height:064x}'", time(&time_s(*height))))
            }
            Self::Account { number } => {
                let ((_, party, market, asset, kind), _) = account(*number);
                let key = format!("'{number}', '{party}', '{asset}', '{market}', {kind}");
                ("accounts", format!("{key}, 'tx', {}", time(&GENESIS_S)))
            }
            Self::Balance { account, at, balance } => {
                ("balances", format!("'{account}', {}, 'tx', {balance}", time(at)))
            }
            Self::Delegation { epoch, party: number, node, at, sequence, amount } => {
                let key = format!("'{}', '{}', {epoch}", party(*number), id('c', *node));
                ("delegations", format!("{key}, {amount}, 'tx', {}, {sequence}", time(at)))
            }
            Self::Withdrawal { number, at, status, reference } => {
                let key = format!("'{}', '{}', 250, '{ASSET}'", id('d', *number), party(1));
                let times = format!("{}, to_timestamp(0), '{{}}', 'tx', {}", time(&GENESIS_S), time(at));
                ("withdrawals", format!("{key}, '{status}', '{reference}', '', {times}"))
            }
            Self::OracleSpec { number, at, status } => {
                let key = format!("'{}', {}, {}", id('e', *number), time(&GENESIS_S), time(at));
                ("oracle_specs", format!("{key}, NULL, NULL, '{status}', 'tx', {}, NULL", time(at)))
            }
            Self::Reward { epoch, market, kind, amount, at, sequence } => {
                let key = format!("'{}', '{ASSET}', '{}', '{kind}', {epoch}", party(1), id('a', *market));
                ("rewards", format!("{key}, {amount}, 1, {0}, 'tx', {0}, {sequence}", time(at)))
            }
            Self::Trade { market, at, micros, price, size } => {
                let synthetic = format!("{} + {micros} * interval '1 microsecond'", time(at));
                let key =
                    format!("{synthetic}, 'tx', {}, {micros}, 'trade', '{}'", time(at), id('a', *market));
                ("trades", format!("{key}, {price}, {size}, 'b', 's', 1, 'bo', 'so', 1"))
            }
            Self::Proposal { height, approvers, status, at } => {
                let approvers = approvers.join(",");
                let values = format!("{height}, 'v1', '{{{approvers}}}', '{status}', 'tx', {}", time(at));
                ("protocol_upgrade_proposals", values)
            }
            Self::Limits { at, flags } => {
                let flags = bits(*flags).map(|flag| flag.to_string()).join(", ");
                ("network_limits", format!("{0}, 'tx', {flags}, {0}, to_timestamp(0)", time(at)))
            }
        };
        format!("INSERT INTO {table} VALUES ({values});")
    }
}
