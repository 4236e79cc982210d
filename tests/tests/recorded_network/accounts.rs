//! ListAccounts: every account with its latest balance.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use crate::recorded_network::{
    check::{Check, UNKNOWN, with_check},
    files::Row,
    recording::Recording,
};

const PATH: &str = "/accounts";

/// The contract's names of account types (4.9).
pub(crate) const TYPES: [(i32, &str); 17] = [
    (0, "UNSPECIFIED"),
    (1, "INSURANCE"),
    (2, "SETTLEMENT"),
    (3, "MARGIN"),
    (4, "GENERAL"),
    (5, "FEES_INFRASTRUCTURE"),
    (6, "FEES_LIQUIDITY"),
    (7, "FEES_MAKER"),
    (9, "BOND"),
    (10, "EXTERNAL"),
    (11, "GLOBAL_INSURANCE"),
    (12, "GLOBAL_REWARD"),
    (13, "PENDING_TRANSFERS"),
    (14, "REWARD_MAKER_PAID_FEES"),
    (15, "REWARD_MAKER_RECEIVED_FEES"),
    (16, "REWARD_LP_RECEIVED_FEES"),
    (17, "REWARD_MARKET_PROPOSERS"),
];

/// All accounts in the order of the contract: party with `network` first, market, asset, number of the type.
struct Accounts(Vec<Value>);

impl Accounts {
    fn from_recording(recording: &Recording) -> Self {
        let balances = recording.table("balances");
        let newest = balances.newest(|row| row.text("account_id"), |row| row.ns("block_time"));
        let accounts = recording.table("accounts");
        let order = |row: Row<'_>| {
            let [party, market] = ["party_id", "market_id"].map(|column| row.text(column).to_owned());
            (party != "network", party, market, row.text("asset_id").to_owned(), row.number::<i32>("type"))
        };
        let sorted: BTreeMap<_, Row<'_>> = accounts.rows().map(|row| (order(row), row)).collect();
        let shown = sorted.into_values().map(|row| {
            let number: i32 = row.number("type");
            let (_, name) = TYPES.iter().find(|(known, _)| *known == number).unwrap();
            json!({
                "party": row.text("party_id"),
                "market": row.text("market_id"),
                "balance": newest.get(row.text("id")).map_or("0", |newest| newest.text("balance")),
                "asset": row.text("asset_id"),
                "type": format!("ACCOUNT_TYPE_{name}"),
            })
        });
        Self(shown.collect())
    }

    fn values(&self, field: &str) -> BTreeSet<&str> {
        self.0.iter().map(|account| account[field].as_str().unwrap()).collect()
    }

    /// Compares the answer to a filter with the accounts that pass it; returns their number.
    async fn compare(&self, check: &mut Check<'_>, filter: &str, passes: impl Fn(&Value) -> bool) -> usize {
        let found: Vec<&Value> = self.0.iter().filter(|account| passes(account)).collect();
        check.same(&format!("{PATH}{filter}"), &json!({"accounts": found}), found.len()).await;
        found.len()
    }
}

#[test]
fn all_accounts_are_listed_with_their_latest_balances() {
    with_check("ListAccounts, all", async |recording, check| {
        let accounts = Accounts::from_recording(recording);
        assert_eq!(accounts.0.len(), 182);
        for filter in ["", "?party=&market="] {
            assert_eq!(accounts.compare(check, filter, |_| true).await, 182);
        }
    });
}

#[test]
fn accounts_are_found_by_every_party_and_by_every_market() {
    with_check("ListAccounts, by party or market", async |recording, check| {
        let accounts = Accounts::from_recording(recording);
        let mut found = 0;
        for party in accounts.values("party") {
            found += accounts.compare(check, &format!("?party={party}"), |node| node["party"] == party).await;
        }
        assert_eq!(found, accounts.0.len());
        // "No market" is stored as the empty text, and an empty parameter is no filter.
        for market in accounts.values("market").into_iter().filter(|market| !market.is_empty()) {
            let filter = format!("?market={market}");
            assert!(accounts.compare(check, &filter, |node| node["market"] == market).await > 0);
        }
    });
}

#[test]
fn accounts_are_found_by_every_pair_of_party_and_market_whether_it_occurs_or_not() {
    with_check("ListAccounts, by party and market", async |recording, check| {
        let accounts = Accounts::from_recording(recording);
        let (mut occurring, mut not_occurring) = (0, 0);
        for party in accounts.values("party") {
            for market in accounts.values("market").into_iter().filter(|market| !market.is_empty()) {
                let filter = format!("?market={market}&party={party}");
                let passes = |node: &Value| node["party"] == party && node["market"] == market;
                match accounts.compare(check, &filter, passes).await {
                    0 => not_occurring += 1,
                    _ => occurring += 1,
                }
            }
        }
        assert!(occurring > 50 && not_occurring > 50, "{occurring} {not_occurring}");
    });
}

#[test]
fn unknown_owners_have_no_accounts_and_sixty_four_zeros_are_the_network() {
    with_check("ListAccounts, unknown ids, zeros and upper case", async |recording, check| {
        let accounts = Accounts::from_recording(recording);
        for filter in [format!("?party={UNKNOWN}"), format!("?market={UNKNOWN}")] {
            assert_eq!(accounts.compare(check, &filter, |_| false).await, 0);
        }
        let zeros = format!("?party={}", "0".repeat(64));
        assert!(accounts.compare(check, &zeros, |node| node["party"] == "network").await > 0);
        for (parameter, last) in [("party", accounts.values("party")), ("market", accounts.values("market"))]
        {
            let id = last.into_iter().rfind(|id| id.len() == 64).unwrap();
            let filter = format!("?{parameter}={}", id.to_uppercase());
            assert!(accounts.compare(check, &filter, |node| node[parameter] == id).await > 0);
        }
    });
}
