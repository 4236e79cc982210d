//! Accounts as ledger records name them.

use std::{collections::HashMap, sync::Arc};

use mesh_store::{ReadError, Row};
use proto_msgs::v2::AccountType;
use quick_cache::sync::Cache;

use super::record::write_text;

/// Accounts that are remembered, some 300 bytes each.
const KEPT_AT_MOST: usize = 16_384;

/// An account.
#[derive(Debug)]
pub(crate) struct Account {
    pub(crate) party: Option<String>,
    pub(crate) asset: Option<String>,
    /// Market, party and type as fields of a record, each behind its comma.
    pub(crate) fields: Vec<u8>,
}

impl Account {
    /// The account of a row with its id; nothing when there is none in it.
    fn read(row: &Row) -> Result<Option<(String, Self)>, ReadError> {
        let Some(id) = row.try_get("id")? else { return Ok(None) };
        let (market, party): (Option<&str>, Option<&str>) =
            (row.try_get("market_id")?, row.try_get("party_id")?);
        let mut fields = Vec::with_capacity(160);
        write_text(&mut fields, market);
        write_text(&mut fields, party);
        write_text(&mut fields, type_name(row.try_get("type")?));
        Ok(Some((id, Self { party: party.map(str::to_owned), asset: row.try_get("asset_id")?, fields })))
    }
}

/// Accounts that were met lately. An id is the hash of what is kept of it, so that this is never out of date.
pub(crate) struct Accounts {
    kept: Cache<String, Arc<Account>>,
}

impl Default for Accounts {
    fn default() -> Self {
        Self { kept: Cache::new(KEPT_AT_MOST) }
    }
}

/// The accounts of one walk, those included that are not stored.
pub(crate) struct Met {
    lately: Arc<Accounts>,
    known: HashMap<String, Option<Arc<Account>>>,
}

impl Met {
    /// None yet.
    pub(crate) fn none(lately: Arc<Accounts>) -> Self {
        Self { lately, known: HashMap::new() }
    }

    /// Whether these are more than are remembered anyway.
    pub(crate) fn are_many(&self) -> bool {
        self.known.len() > KEPT_AT_MOST
    }

    /// Says whether an account has to be read before [`Met::get`] can tell it.
    pub(crate) fn lacks(&mut self, id: &str) -> bool {
        if self.known.contains_key(id) {
            return false;
        }
        match self.lately.kept.get(id) {
            Some(account) => {
                self.known.insert(id.to_owned(), Some(account));
                false
            }
            None => true,
        }
    }

    /// Takes what was read, and gives the ids.
    ///
    /// # Errors
    /// When the rows do not hold what their statement promises.
    pub(crate) fn learn(&mut self, rows: &[Row]) -> Result<Vec<String>, ReadError> {
        let mut ids = Vec::new();
        for row in rows {
            let Some((id, account)) = Account::read(row)? else { continue };
            let account = Arc::new(account);
            self.lately.kept.insert(id.clone(), Arc::clone(&account));
            self.known.insert(id.clone(), Some(account));
            ids.push(id);
        }
        Ok(ids)
    }

    /// Takes it that these accounts are not stored, unless they are known.
    pub(crate) fn are_absent(&mut self, ids: Vec<String>) {
        for id in ids {
            self.known.entry(id).or_default();
        }
    }

    /// An account that is stored.
    pub(crate) fn get(&self, id: &str) -> Option<&Account> {
        self.known.get(id)?.as_deref()
    }
}

/// The name of a type without its prefix (L4).
fn type_name(number: Option<i32>) -> Option<&'static str> {
    let number = number?;
    let known = AccountType::try_from(number).unwrap_or_else(|_| {
        tracing::warn!(number, "an account has a type that nobody knows");
        AccountType::Unspecified
    });
    let name = known.as_str_name();
    Some(name.strip_prefix("ACCOUNT_TYPE_").unwrap_or(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_type_is_a_name_without_its_prefix() {
        assert_eq!(type_name(Some(3)), Some("MARGIN"));
        assert_eq!(type_name(Some(99)), Some("UNSPECIFIED"));
        assert_eq!(type_name(None), None);
    }
}
