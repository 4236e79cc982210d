//! What all parts of the network share: parties, and accounts with their balances. Money moves only by
//! [`Draft::transfer`], so that every movement has a ledger row with the running balances of both sides.

use std::collections::{BTreeMap, BTreeSet, HashMap};

pub(crate) use proto_msgs::v2::AccountType as Kind;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::{
    block::{Draft, Executed},
    catalogue::{ASSETS, VOTE},
    plan::Plan,
    random::Random,
};

/// Party number of the network itself.
pub(crate) const NETWORK: u16 = u16::MAX;
/// Market number of accounts that belong to no market.
const NO_MARKET: u16 = u16::MAX;
/// Limit of the parties that are no part of the plan: users, and receivers of their transfers.
const MOST_USERS: usize = 50_000;

/// The key of an account: there is one per asset, party, market and kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) struct Key {
    pub(crate) asset: u8,
    pub(crate) party: u16,
    pub(crate) market: u16,
    pub(crate) kind: Kind,
}

impl Key {
    /// A party's own account, outside of all markets.
    pub(crate) fn general(asset: u8, party: u16) -> Key {
        Key { asset, party, market: NO_MARKET, kind: Kind::General }
    }

    /// An account of the network that belongs to no market.
    pub(crate) fn global(asset: u8, kind: Kind) -> Key {
        Key { asset, party: NETWORK, market: NO_MARKET, kind }
    }
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct Account {
    key: Key,
    id: String,
    balance: i128,
}

/// Parties, markets and assets by their numbers, and accounts.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct World {
    /// Number of parties of the plan. Those that came by transactions follow.
    pub(crate) traders: u16,
    parties: Vec<String>,
    markets: Vec<String>,
    assets: Vec<String>,
    /// Parties and assets of the faucet's credits.
    pub(crate) credited: BTreeSet<(u16, u8)>,
    accounts: Vec<Account>,
    /// The places of accounts and parties; rebuilt after reading a state file.
    #[serde(skip)]
    index: BTreeMap<Key, usize>,
    #[serde(skip)]
    numbers: HashMap<String, u16>,
    /// Accounts that the present block moved, with the hash of the transaction that did it last.
    #[serde(skip)]
    moved: BTreeMap<usize, String>,
}

impl World {
    pub(crate) fn new(plan: &Plan, markets: usize) -> Self {
        let mut random = Random::new(plan.seed, 0x6e_616d_6573);
        let asset_id = |symbol: &str| hex::encode(Sha256::digest(format!("demo asset {symbol}")));
        let mut assets: Vec<String> = ASSETS.iter().map(|asset| asset_id(asset.symbol)).collect();
        assets[usize::from(VOTE)] = ASSETS[usize::from(VOTE)].symbol.to_owned();
        let mut world = World {
            traders: plan.parties as u16,
            parties: (0..plan.parties).map(|_| random.id()).collect(),
            markets: (0..markets).map(|_| random.id()).collect(),
            assets,
            credited: BTreeSet::new(),
            accounts: Vec::new(),
            index: BTreeMap::new(),
            numbers: HashMap::new(),
            moved: BTreeMap::new(),
        };
        world.rebuild();
        world
    }

    /// Rebuilds the state that the state file leaves out.
    pub(crate) fn rebuild(&mut self) {
        self.index = self.accounts.iter().enumerate().map(|(at, account)| (account.key, at)).collect();
        self.numbers = self.parties.iter().cloned().zip(0..).collect();
    }

    pub(crate) fn party_id(&self, party: u16) -> &str {
        self.parties.get(usize::from(party)).map_or("network", String::as_str)
    }

    /// Id of a market; empty for accounts that belong to none.
    pub(crate) fn market_id(&self, market: u16) -> &str {
        self.markets.get(usize::from(market)).map_or("", String::as_str)
    }

    pub(crate) fn asset_id(&self, asset: u8) -> &str {
        &self.assets[usize::from(asset)]
    }

    pub(crate) fn asset(&self, id: &str) -> Option<u8> {
        self.assets.iter().zip(0..).find_map(|(known, number)| (known == id).then_some(number))
    }

    /// The number of a party that the network knows.
    pub(crate) fn party(&self, id: &str) -> Option<u16> {
        self.numbers.get(id).copied()
    }

    /// The number of a party, which is added when it is new; `None` when there are too many.
    pub(crate) fn party_or_new(&mut self, id: &str) -> Option<u16> {
        if self.party(id).is_none() && self.parties.len() < usize::from(self.traders) + MOST_USERS {
            self.numbers.insert(id.to_owned(), self.parties.len() as u16);
            self.parties.push(id.to_owned());
        }
        self.party(id)
    }

    pub(crate) fn balance(&self, key: Key) -> i128 {
        self.index.get(&key).map_or(0, |&at| self.accounts[at].balance)
    }

    /// Ids and balances of all accounts whose balance is not zero.
    pub(crate) fn balances(&self) -> BTreeMap<String, String> {
        let funded = self.accounts.iter().filter(|account| account.balance != 0);
        funded.map(|account| (account.id.clone(), account.balance.to_string())).collect()
    }
}

impl Draft<'_> {
    /// Id of an account; creates the account at its first use.
    pub(crate) fn account_id(&mut self, key: Key) -> String {
        let at = self.open(key);
        self.world.accounts[at].id.clone()
    }

    /// Finds an account, or creates it with its row.
    pub(crate) fn open(&mut self, key: Key) -> usize {
        if let Some(&at) = self.world.index.get(&key) {
            return at;
        }
        let (party, asset) = (self.world.party_id(key.party), self.world.asset_id(key.asset));
        let market = self.world.market_id(key.market);
        let id = hex::encode(Sha256::digest([asset, party, market, key.kind.as_str_name()].concat()));
        row! { self, accounts:
            id: id, party_id: party, asset_id: asset, market_id: market, type: key.kind as i64,
        }
        let at = self.world.accounts.len();
        self.world.accounts.push(Account { key, id, balance: 0 });
        self.world.index.insert(key, at);
        at
    }

    /// Moves money; `reason` is the type of the transfer without `TRANSFER_TYPE_`. Nothing happens for
    /// amounts of zero or less.
    pub(crate) fn transfer(&mut self, from: Key, to: Key, amount: i128, reason: &str) {
        if amount <= 0 || from == to {
            return;
        }
        let (from, to) = (self.open(from), self.open(to));
        for (at, change) in [(from, -amount), (to, amount)] {
            self.world.accounts[at].balance += change;
            self.world.moved.insert(at, self.transaction.clone());
        }
        let (from, to) = (&self.world.accounts[from], &self.world.accounts[to]);
        row! { self, ledger:
            account_from_id: from.id, account_to_id: to.id, quantity: amount,
            account_from_balance: from.balance, account_to_balance: to.balance,
            type: format!("TRANSFER_TYPE_{reason}"),
        }
    }

    /// Moves at most the given amount, limited by the account's balance; returns the amount moved.
    pub(crate) fn take(&mut self, from: Key, to: Key, wanted: i128, reason: &str) -> i128 {
        let amount = wanted.min(self.world.balance(from)).max(0);
        self.transfer(from, to, amount, reason);
        amount
    }

    /// Writes the new balance of every account that the block moved, as a row of the transaction that moved
    /// it last: there is one row for each account and block.
    pub(crate) fn write_balances(&mut self, executed: &mut HashMap<String, &mut Executed>) {
        for (at, hash) in std::mem::take(&mut self.world.moved) {
            let rows = self.as_transaction(&hash, |draft| {
                let account = &draft.world.accounts[at];
                row! { draft, balances: account_id: account.id, balance: account.balance }
            });
            executed.get_mut(&hash).map_or(&mut self.rows, |executed| &mut executed.rows).append(rows);
        }
    }
}
