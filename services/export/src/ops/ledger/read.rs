//! Reads of ledger entries from a database that has reached the bound of the export.

use std::sync::Arc;

use mesh_problem::Problem;
use mesh_store::{Parameter, Row, Store, TimeUs, head_of};
use proto_msgs::numbers::export_ledger_entries::LEDGER;

use super::merge::ReadRequest;

/// What is read of which database: nothing later than the bound, nothing later than `until`.
#[derive(Clone)]
pub(super) struct Source {
    pub(super) store: Store,
    pub(super) bound: Option<TimeUs>,
    pub(super) until: Option<TimeUs>,
}

/// One read that is to be made.
pub(super) enum Read {
    /// What these accounts sent (or else received), a request each.
    OfAccounts { requests: Vec<ReadRequest>, accounts: Vec<(Arc<str>, bool)> },
    /// The entries of everybody, those of these accounts kept.
    Scan { request: ReadRequest, accounts: Arc<[Arc<str>]> },
}

/// The rows of one read.
pub(super) struct Batch {
    pub(super) requests: Vec<ReadRequest>,
    pub(super) rows: Vec<Row>,
}

impl Source {
    /// Runs a statement that returns the head with its rows (L7).
    pub(super) async fn list(
        &self,
        sql: &'static str,
        parameters: &[Parameter<'_>],
    ) -> Result<Vec<Row>, Problem> {
        let failed = |error: mesh_store::ReadError| error.problem(LEDGER);
        let rows = self.store.list("ledger", sql, parameters, None).await.map_err(failed)?;
        let head = rows.first().map(head_of).transpose().map_err(failed)?;
        let head = head.flatten().map(|(_, time_ns)| TimeUs::at_or_before_ns(time_ns));
        if head < self.bound {
            return Err(Problem::unavailable("the database is behind this export"));
        }
        Ok(rows)
    }

    /// Makes a read.
    pub(super) async fn read(self, read: Read) -> Result<Batch, Problem> {
        match read {
            Read::OfAccounts { requests, accounts } => {
                let (accounts, sends): (Vec<&str>, Vec<bool>) =
                    accounts.iter().map(|(account, sends)| (&**account, sends)).unzip();
                let (blocks, times): (Vec<TimeUs>, Vec<TimeUs>) =
                    requests.iter().map(|request| request.after).unzip();
                let most: Vec<i64> = requests.iter().map(|request| request.rows as i64).collect();
                let sql = include_str!("../../../sql/ledger_entries.sql");
                let rows = self.list(sql, &[&accounts, &sends, &blocks, &times, &most, &self.until]).await?;
                Ok(Batch { requests, rows })
            }
            Read::Scan { request, accounts } => {
                let accounts: Vec<&str> = accounts.iter().map(|account| &**account).collect();
                let (block, time) = request.after;
                let sql = include_str!("../../../sql/ledger_scan.sql");
                let most = request.rows as i64;
                let rows = self.list(sql, &[&accounts, &block, &time, &most, &self.until]).await?;
                Ok(Batch { requests: vec![request], rows })
            }
        }
    }
}
