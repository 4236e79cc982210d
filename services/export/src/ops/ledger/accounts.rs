//! Accounts as ledger records name them.

use std::{collections::HashMap, sync::Arc};

use mesh_store::{ReadError, Row, RowReader, Unreadable};
use proto_msgs::v2::AccountType;
use quick_cache::sync::Cache;

use super::field::write_text;

/// Most cached accounts, some 300 bytes each.
pub(crate) const MAX_ACCOUNTS: usize = 16_384;

/// An account.
#[derive(Debug)]
pub(crate) struct Account {
    pub(crate) party: Option<String>,
    pub(crate) asset: Option<String>,
    /// Market, party and type as fields of a record, each behind its comma.
    pub(crate) fields: Vec<u8>,
}

impl Account {
    /// The account of a row with its id; `None` when the row holds none.
    fn read(row: &RowReader<'_>) -> Result<Option<(String, Self)>, ReadError> {
        let Some(id) = row.get("id")? else { return Ok(None) };
        let (market, party): (Option<&str>, Option<&str>) = (row.get("market_id")?, row.get("party_id")?);
        let has_type = row.get::<Option<i32>>("type")?.is_some();
        let kind: AccountType = row.numbered("type")?;
        let mut fields = Vec::with_capacity(160);
        write_text(&mut fields, market);
        write_text(&mut fields, party);
        write_text(&mut fields, has_type.then(|| type_name(kind)));
        Ok(Some((id, Self { party: party.map(str::to_owned), asset: row.get("asset_id")?, fields })))
    }
}

/// A cache of accounts. An id is the hash of the account's fields, so that entries never become stale.
pub(crate) type AccountCache = Cache<String, Arc<Account>>;

/// The accounts that one walk has looked up, including those that are not stored.
pub(crate) struct AccountLookup {
    cache: Arc<AccountCache>,
    known: HashMap<String, Option<Arc<Account>>>,
}

impl AccountLookup {
    /// An empty lookup in front of a cache.
    pub(crate) fn new(cache: Arc<AccountCache>) -> Self {
        Self { cache, known: HashMap::new() }
    }

    /// Whether it holds more accounts than the cache would.
    pub(crate) fn is_large(&self) -> bool {
        self.known.len() > MAX_ACCOUNTS
    }

    /// An account, `Some(None)` when it is not stored; `None` when it has to be read first.
    pub(crate) fn find(&mut self, id: &str) -> Option<Option<Arc<Account>>> {
        if let Some(known) = self.known.get(id) {
            return Some(known.clone());
        }
        let cached = self.cache.get(id)?;
        self.known.insert(id.to_owned(), Some(Arc::clone(&cached)));
        Some(Some(cached))
    }

    /// Adds the accounts of these rows and returns their ids.
    ///
    /// # Errors
    /// When the rows do not hold what their statement promises.
    pub(crate) fn add_rows(
        &mut self,
        rows: &[Row],
        unreadable: &Unreadable,
    ) -> Result<Vec<String>, ReadError> {
        let mut ids = Vec::new();
        for row in rows {
            let row = RowReader::new(row, "accounts", "id", unreadable);
            let Some((id, account)) = Account::read(&row)? else { continue };
            let account = Arc::new(account);
            self.cache.insert(id.clone(), Arc::clone(&account));
            self.known.insert(id.clone(), Some(account));
            ids.push(id);
        }
        Ok(ids)
    }

    /// Marks those of these accounts as not stored that are not known.
    pub(crate) fn mark_absent(&mut self, ids: Vec<String>) {
        for id in ids {
            self.known.entry(id).or_default();
        }
    }
}

/// The name of a type without its prefix (L4).
fn type_name(kind: AccountType) -> &'static str {
    let name = kind.as_str_name();
    name.strip_prefix("ACCOUNT_TYPE_").unwrap_or(name)
}
