//! One member of a segment: compared with the stored rows, staged, inserted.

use bytes::Bytes;
use futures_util::{Stream, StreamExt};
use mesh_store::{Copy, append::kinds, blocks::BLOCKS, within};
use sha2::{Digest, Sha256};

use super::SegmentImport;
use crate::{
    LoadError,
    copy_in::{CsvText, bad_row, copy_in, quoted, quoted_list},
    sequence::BlockSequence,
    staging::Staging,
    tables::{DERIVED, check_times, missing_in},
};

/// The table of the chain id, which is compared when a segment begins.
const CHAIN: &str = "chain";

/// Which rows of its table a member contains.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// The rows of the segment's blocks.
    Span,
    /// All rows up to the segment's last block.
    UpToEnd,
}

impl Scope {
    /// The SQL condition, which reads the bounds from settings of the transaction.
    fn condition(self) -> &'static str {
        match self {
            Self::Span => {
                "block_time >= current_setting('mesh.time_from')::timestamptz
                 AND block_time <= current_setting('mesh.time_to')::timestamptz"
            }
            Self::UpToEnd => "block_time <= current_setting('mesh.time_to')::timestamptz",
        }
    }
}

/// The text of a table in a segment, as the segment describes it.
#[derive(Debug, Clone, Copy)]
pub struct MemberText<'a> {
    /// The table.
    pub table: &'a str,
    /// Which rows.
    pub scope: Scope,
    /// The columns that the header names.
    pub columns: &'a [String],
    /// Rows after the header.
    pub rows: u64,
    /// SHA-256 of the text.
    pub sha256: [u8; 32],
}

/// The result for one member.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Taken {
    /// The database has the same rows.
    There,
    /// The rows were staged or inserted.
    Rows {
        /// Rows that the database did not have. Those of `blocks` are inserted at the commit.
        new: u64,
        /// Columns of the text that the table does not have.
        skipped_columns: Vec<String>,
        /// Columns of the table that the text does not have; they took their default.
        defaulted_columns: Vec<String>,
    },
    /// Skipped: triggers fill the table.
    Derived,
    /// Skipped: the schema has no such table.
    NoSuchTable,
}

impl SegmentImport<'_> {
    /// Imports a member; `blocks` must come first. The text is read only when rows
    /// are missing or differ.
    ///
    /// # Errors
    /// [`LoadError::Disagrees`] when the database holds other rows of the same heights; a row does not fit;
    /// the text breaks off.
    pub async fn take(
        &mut self,
        member: MemberText<'_>,
        text: impl Stream<Item = Result<Bytes, Box<dyn std::error::Error + Send + Sync>>>,
    ) -> Result<Taken, LoadError> {
        let MemberText { table, scope, columns: header, rows, .. } = member;
        if DERIVED.contains(&table) {
            return Ok(Taken::Derived);
        }
        if table == CHAIN {
            return Ok(Taken::There);
        }
        let Some(columns) = self.catalog.get(table) else { return Ok(Taken::NoSuchTable) };
        let stored = self.count(table, scope).await?;
        if stored == rows && (rows == 0 || self.is_stored(member, columns).await?) {
            return Ok(Taken::There);
        }
        let like = "INCLUDING DEFAULTS INCLUDING CONSTRAINTS";
        let staging = Staging::make(&self.transaction, table, header, columns, like).await?;
        let file = format!("{table} of {}", self.span.segment);
        let text = text.map(|piece| piece.map_err(|source| LoadError::Text(file.clone(), source)));
        let copied = CsvText {
            file: &file,
            relation: &staging.name,
            columns: &staging.columns,
            names: header,
            kinds: kinds(table, header),
            has_header: true,
            blocks: (table == BLOCKS).then(BlockSequence::default),
        };
        let staged = copy_in(&self.transaction, copied, text).await?;
        if staged != rows {
            return Err(self.disagrees(format!("{table} has {staged} rows, its metadata says {rows}")));
        }
        check_times(&self.transaction, table, &staging.name, &file).await?;
        let (skipped_columns, defaulted_columns) = (missing_in(columns, header), missing_in(header, columns));
        let new = if table == BLOCKS {
            self.check_blocks(&staging).await?;
            self.blocks = Some((staging, rows));
            rows.saturating_sub(stored)
        } else {
            let new = self.insert(table, scope, &staging, rows).await?;
            staging.drop(&self.transaction).await?;
            new
        };
        Ok(Taken::Rows { new, skipped_columns, defaulted_columns })
    }

    /// Inserts the staged rows that are missing, and checks that the table then has exactly the staged rows.
    pub(super) async fn insert(
        &mut self,
        table: &str,
        scope: Scope,
        staging: &Staging,
        rows: u64,
    ) -> Result<u64, LoadError> {
        let (target, columns, staged) = (quoted(table), &staging.known, &staging.name);
        let key = self.keys.get(table).filter(|key| !key.is_empty());
        let order = key.map(|key| format!("ORDER BY {}", quoted_list(key))).unwrap_or_default();
        let sql = format!(
            "INSERT INTO {target} ({columns}) SELECT {columns} FROM {staged} {order} ON CONFLICT DO NOTHING"
        );
        let inserted = self.transaction.execute(&sql, &[]).await;
        let new = inserted.map_err(|error| bad_row(&format!("{table} of {}", self.span.segment), error))?;
        if new < rows {
            // Compared as text: 1.5 and 1.50 are equal numbers, but different texts in a segment.
            let sql = format!(
                "SELECT count(*) FROM (SELECT ROW({columns})::text FROM {staged}
                 EXCEPT SELECT ROW({columns})::text FROM {target} WHERE {}) AS other",
                scope.condition()
            );
            let other: i64 = self.one(&sql).await?;
            if other > 0 {
                return Err(self.disagrees(format!("{other} rows of {table} are stored otherwise")));
            }
        }
        let stored = self.count(table, scope).await?;
        if stored != rows {
            let what = format!("{table} holds {stored} rows where the segment has {rows}");
            return Err(self.disagrees(what));
        }
        self.filled.insert(table.to_owned());
        Ok(new)
    }

    /// Checks that the stored blocks of the span are among the segment's.
    async fn check_blocks(&self, staging: &Staging) -> Result<(), LoadError> {
        let sql = format!(
            "SELECT min(height) FROM blocks AS stored
             WHERE (height BETWEEN {} AND {} OR {}) AND NOT EXISTS (
                SELECT FROM {} AS sealed
                WHERE ROW(sealed.height, sealed.block_time, sealed.hash)
                    = ROW(stored.height, stored.block_time, stored.hash))",
            self.span.heights.0,
            self.span.heights.1,
            Scope::Span.condition(),
            staging.name
        );
        match self.one::<Option<i64>>(&sql).await? {
            None => Ok(()),
            Some(height) => Err(self.disagrees(format!("it holds another block {height}"))),
        }
    }

    async fn count(&self, table: &str, scope: Scope) -> Result<u64, LoadError> {
        let sql = format!("SELECT count(*) FROM {} WHERE {}", quoted(table), scope.condition());
        Ok(self.one::<i64>(&sql).await?.unsigned_abs())
    }

    /// Whether sealing the stored rows would give exactly this text.
    async fn is_stored(&self, member: MemberText<'_>, columns: &[String]) -> Result<bool, LoadError> {
        let key = self.keys.get(member.table);
        let Some(key) = key.filter(|_| member.columns.iter().all(|name| columns.contains(name))) else {
            return Ok(false);
        };
        let sql = format!(
            "COPY (SELECT {} FROM {} WHERE {} ORDER BY {}) TO STDOUT (FORMAT csv, HEADER)",
            quoted_list(member.columns),
            quoted(member.table),
            member.scope.condition(),
            quoted_list(key)
        );
        let mut rows = Copy::begin(&self.transaction, &sql).await?;
        let mut digest = Sha256::new();
        while let Some(piece) = rows.next().await? {
            digest.update(&piece);
        }
        Ok(digest.finalize()[..] == member.sha256)
    }

    async fn one<T: for<'a> tokio_postgres::types::FromSql<'a>>(&self, sql: &str) -> Result<T, LoadError> {
        let row = within("comparing with what is stored", self.transaction.query_one(sql, &[])).await?;
        row.try_get(0).map_err(LoadError::in_step("comparing with what is stored"))
    }
}
