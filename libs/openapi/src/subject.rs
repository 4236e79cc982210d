//! The subjects by which the document groups its operations, as tags. Viewers show them in this order, and
//! generated clients have a class or a module for each.

use crate::json::{Json, object};

/// A group of operations.
struct Subject {
    tag: &'static str,
    description: &'static str,
    operations: &'static [&'static str],
}

/// The tag of what no subject lists: the gateway's own pages.
pub(crate) const GATEWAY: &str = "Gateway";

const SUBJECTS: [Subject; 6] = [
    Subject {
        tag: "Markets",
        description: "Markets with their prices, order books, trades, candles, the assets they settle in, and oracle specifications.",
        operations: &[
            "ListMarkets", "GetMarketDepth", "ListTrades", "ListCandleData", "ListCandleIntervals",
            "ListAssets", "GetOracleSpec",
        ],
    },
    Subject {
        tag: "Accounts",
        description: "What parties have and want: balances, positions, orders, delegations, rewards, deposits and \
            withdrawals.",
        operations: &[
            "GetPortfolio", "ListAccounts", "ListPositions", "ListOrders", "GetOrder", "ListDelegations",
            "ListEpochRewardSummaries", "ListDeposits", "ListWithdrawals", "GetWithdrawal",
        ],
    },
    Subject {
        tag: "Trading",
        description: "Submits signed transactions and reports their status.",
        operations: &[
            "SubmitTransaction", "CheckTransaction", "SubmitRawTransaction", "CheckRawTransaction",
            "GetTransaction",
        ],
    },
    Subject {
        tag: "Network",
        description: "The newest block, limits of the network, its software and upgrades of it.",
        operations: &[
            "LastBlockHeight", "GetNetworkLimits", "Info", "GetProtocolUpgradeStatus",
            "ListProtocolUpgradeProposals",
        ],
    },
    Subject {
        tag: "History",
        description: "Downloads: tables of the whole history, its sealed segments, and the ledger of a party.",
        operations: &[
            "ListDatasets", "ListAllNetworkHistorySegments", "ExportNetworkHistory", "ExportLedgerEntries",
        ],
    },
    Subject {
        tag: GATEWAY,
        description: "The gateway itself: live updates, health, limits and this document.",
        operations: &[],
    },
];

/// The tag of an operation of the contract.
pub(crate) fn of(operation: &str) -> &'static str {
    let subject = SUBJECTS.iter().find(|subject| subject.operations.contains(&operation));
    subject.map_or(GATEWAY, |subject| subject.tag)
}

/// The place of an operation among all of them, for readers.
pub(crate) fn place(operation: &str) -> Option<usize> {
    SUBJECTS.iter().flat_map(|subject| subject.operations).position(|listed| *listed == operation)
}

/// The tags of the document with their descriptions.
pub(crate) fn tags() -> Vec<Json> {
    let tag = |subject: &Subject| object! { "name" => subject.tag, "description" => subject.description };
    SUBJECTS.iter().map(tag).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proto_msgs::Contract;

    use super::*;

    #[test]
    fn every_operation_has_one_subject() {
        let listed: Vec<_> = SUBJECTS.iter().flat_map(|subject| subject.operations).copied().collect();
        let operations = Contract::get().operations();
        assert_eq!(listed.len(), operations.len(), "{listed:?}");
        let named: BTreeSet<_> = operations.iter().map(|operation| operation.name.as_str()).collect();
        assert_eq!(listed.into_iter().collect::<BTreeSet<_>>(), named);
    }
}
