//! The right answer of every operation that reads the store: one statement per operation (`<operation>.sql`),
//! which computes it from the history tables as directly as possible, and this runner, which reads the
//! request, pages the rows of a list by section 3 of the contract, and encodes the answer.

mod listing;
mod question;

use futures_util::future::try_join_all;
pub use listing::{Listing, Row, cursor, query, texts};
pub use question::{Leaf, Question, leaves, operation_of};
use serde_json::Value;
use tokio_postgres::{Client, Error, Statement, types::Type};

/// The statements by their operations: the files of this folder.
const STATEMENTS: &[(&str, &str)] = include!(concat!(env!("OUT_DIR"), "/statements.rs"));

/// Whether an operation has an oracle.
pub fn knows(operation: &str) -> bool {
    STATEMENTS.iter().any(|(known, _)| *known == operation)
}

/// A session that answers questions about one database.
pub struct Oracle {
    client: Client,
    /// In the order of [`STATEMENTS`].
    statements: Vec<Statement>,
}

impl Oracle {
    /// Prepares the statements on a connection.
    ///
    /// # Errors
    /// When the database does not accept them.
    pub async fn open(client: Client) -> Result<Self, Error> {
        client.batch_execute("SET TIME ZONE 'UTC'; SET jit = off").await?;
        client.batch_execute(include_str!("../functions.sql")).await?;
        // The one parameter is the request.
        let prepared = STATEMENTS.iter().map(|(_, sql)| client.prepare_typed(sql, &[Type::JSONB]));
        let statements = try_join_all(prepared).await?;
        Ok(Self { client, statements })
    }

    /// As [`open`](Self::open), for answers as of the block that [`at_block`](Self::at_block) names: its rows and those
    /// before it are all that there are.
    ///
    /// # Errors
    /// When the database does not accept the statements.
    pub async fn of_the_past(client: Client) -> Result<Self, Error> {
        client.batch_execute(include_str!("past.sql")).await?;
        Self::open(client).await
    }

    /// From now on the answers are those as of the block of this height.
    ///
    /// # Errors
    /// When the connection is gone.
    pub async fn at_block(&self, height: u64) -> Result<(), Error> {
        self.client.batch_execute(&format!("SET oracle.height = {height}")).await
    }

    /// The session itself: the answers see what its open transaction has written.
    pub fn client(&self) -> &Client {
        &self.client
    }

    /// The answer to a request, `None` when it is that there is no such object. A downloaded file is a text.
    ///
    /// # Errors
    /// When the database cannot answer.
    pub async fn answer(&self, question: &Question) -> Result<Option<Value>, Error> {
        if question.is_list() {
            return Ok(Some(self.listing(question).await?.answer(&question.pagination)));
        }
        let rows = self.rows(question).await?;
        rows.first().map(|row| row.try_get(0)).transpose()
    }

    /// All rows of a list that pass the filters of a request.
    ///
    /// # Errors
    /// When the database cannot answer.
    pub async fn listing(&self, question: &Question) -> Result<Listing, Error> {
        let rows = self.rows(question).await?;
        let read = |row: &tokio_postgres::Row| {
            Ok(Row::new(row.try_get(0)?, row.try_get::<_, Value>(1)?, row.try_get(2)?))
        };
        let rows = rows.iter().map(read).collect::<Result<_, Error>>()?;
        Ok(Listing::new(&question.operation.reply, rows))
    }

    async fn rows(&self, question: &Question) -> Result<Vec<tokio_postgres::Row>, Error> {
        let place = STATEMENTS.iter().position(|(operation, _)| *operation == question.operation.name);
        let place = place.unwrap_or_else(|| panic!("{} has no oracle", question.operation.name));
        self.client.query(&self.statements[place], &[&question.parameters]).await
    }
}
