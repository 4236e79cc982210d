//! The state that all parts of the network share: parties, and accounts with their balances. Money moves only
//! by [`World::transfer`], so that every movement has a ledger row with the running balances of both sides.

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
/// Limit of the parties that are no part of the plan: users, and receivers of their transfers.
const MOST_USERS: usize = 50_000;
/// Market number of accounts that belong to no market.
pub(crate) const NO_MARKET: u16 = u16::MAX;

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

/// Parties, markets by name, and accounts.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct World {
    pub(crate) party_ids: Vec<String>,
    pub(crate) market_ids: Vec<String>,
    /// Parties that came by transactions. Their numbers follow those of the plan.
    users: Vec<String>,
    /// Parties and assets of the faucet's credits.
    pub(crate) credited: BTreeSet<(u16, u8)>,
    asset_ids: Vec<String>,
    accounts: Vec<Account>,
    serial: u64,
    /// The index of each account in `accounts`; rebuilt after reading a state file.
    #[serde(skip)]
    index: BTreeMap<Key, usize>,
    /// The number of each party; rebuilt likewise.
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
        let mut world = World {
            party_ids: (0..plan.parties).map(|_| random.id()).collect(),
            market_ids: (0..markets).map(|_| random.id()).collect(),
            asset_ids: (0..)
                .zip(ASSETS)
                .map(|(at, asset)| if at == VOTE { asset.symbol.to_owned() } else { asset_id(asset.symbol) })
                .collect(),
            users: Vec::new(),
            credited: BTreeSet::new(),
            accounts: Vec::new(),
            serial: 0,
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
        self.numbers = self.party_ids.iter().chain(&self.users).cloned().zip(0..).collect();
    }

    pub(crate) fn party_id(&self, party: u16) -> &str {
        let at = usize::from(party);
        let user = || self.users.get(at.checked_sub(self.party_ids.len())?);
        self.party_ids.get(at).or_else(user).map_or("network", String::as_str)
    }

    /// The number of a party that the network knows.
    pub(crate) fn party(&self, id: &str) -> Option<u16> {
        self.numbers.get(id).copied()
    }

    /// The number of a party, which is added when it is new; `None` when there are too many.
    pub(crate) fn party_or_new(&mut self, id: &str) -> Option<u16> {
        if let Some(party) = self.party(id) {
            return Some(party);
        }
        if self.users.len() >= MOST_USERS {
            return None;
        }
        let party = (self.party_ids.len() + self.users.len()) as u16;
        self.users.push(id.to_owned());
        self.numbers.insert(id.to_owned(), party);
        Some(party)
    }

    /// The number of an asset.
    pub(crate) fn asset(&self, id: &str) -> Option<u8> {
        self.asset_ids.iter().zip(0..).find_map(|(known, number)| (known == id).then_some(number))
    }

    /// Ids and balances of all accounts.
    pub(crate) fn balances(&self) -> impl Iterator<Item = (&str, i128)> {
        self.accounts.iter().map(|account| (account.id.as_str(), account.balance))
    }

    pub(crate) fn market_id(&self, market: u16) -> &str {
        self.market_ids.get(usize::from(market)).map_or("", String::as_str)
    }

    pub(crate) fn asset_id(&self, asset: u8) -> &str {
        &self.asset_ids[usize::from(asset)]
    }

    pub(crate) fn party_count(&self) -> u16 {
        self.party_ids.len() as u16
    }

    /// The next number of a counter, for unique ids.
    pub(crate) fn next_serial(&mut self) -> u64 {
        self.serial += 1;
        self.serial
    }

    pub(crate) fn balance(&self, key: Key) -> i128 {
        self.index.get(&key).map_or(0, |&at| self.accounts[at].balance)
    }

    /// Id of an account; creates the account at its first use.
    pub(crate) fn account_id(&mut self, draft: &mut Draft, key: Key) -> String {
        let at = self.open(draft, key);
        self.accounts[at].id.clone()
    }

    /// Finds an account, or creates it with its row.
    pub(crate) fn open(&mut self, draft: &mut Draft, key: Key) -> usize {
        if let Some(&at) = self.index.get(&key) {
            return at;
        }
        let (asset, party, market) =
            (self.asset_id(key.asset), self.party_id(key.party), self.market_id(key.market));
        let mut hasher = Sha256::new();
        for part in [asset, party, market, key.kind.as_str_name()] {
            hasher.update(part);
        }
        let id = hex::encode(hasher.finalize());
        let hash = draft.hash();
        let row = draft.rows.row("accounts").text(&id).text(party).text(asset).text(market);
        row.number(key.kind as i64).text(&hash).time(draft.time).end();
        let at = self.accounts.len();
        self.accounts.push(Account { key, id, balance: 0 });
        self.index.insert(key, at);
        at
    }

    /// Moves money; `reason` is the type of the transfer without `TRANSFER_TYPE_`. Nothing happens for amounts of
    /// zero or less.
    pub(crate) fn transfer(&mut self, draft: &mut Draft, from: Key, to: Key, amount: i128, reason: &str) {
        if amount <= 0 || from == to {
            return;
        }
        let (from, to) = (self.open(draft, from), self.open(draft, to));
        self.accounts[from].balance -= amount;
        self.accounts[to].balance += amount;
        self.moved.insert(from, draft.hash());
        self.moved.insert(to, draft.hash());
        let position = draft.next_position();
        let hash = draft.hash();
        let (from, to) = (&self.accounts[from], &self.accounts[to]);
        let row = draft.rows.row("ledger").time(draft.time.plus_us(position)).text(&from.id).text(&to.id);
        let row = row.number(amount).text(&hash).time(draft.time).time(draft.time);
        row.number(from.balance).number(to.balance).text(&format!("TRANSFER_TYPE_{reason}")).end();
    }

    /// Moves at most the given amount, limited by the account's balance; returns the amount moved.
    pub(crate) fn take(&mut self, draft: &mut Draft, from: Key, to: Key, wanted: i128, reason: &str) -> i128 {
        let amount = wanted.min(self.balance(from)).max(0);
        self.transfer(draft, from, to, amount, reason);
        amount
    }

    /// Writes the new balance of every account that the block moved, as a row of the transaction that moved it
    /// last: there is one row for each account and block.
    pub(crate) fn flush(&mut self, draft: &mut Draft, executed: &mut HashMap<String, &mut Executed>) {
        for (at, hash) in std::mem::take(&mut self.moved) {
            let account = &self.accounts[at];
            let rows = executed.get_mut(&hash).map_or(&mut draft.rows, |executed| &mut executed.rows);
            let row = rows.row("balances").text(&account.id).time(draft.time);
            row.text(&hash).number(account.balance).end();
        }
    }
}
