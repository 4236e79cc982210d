//! The users of a database beside its owner: one for each service that reads it, named like the service. What they may do
//! is said in `grants.sql` alone.

use tokio_postgres::Client;

use crate::{error::StoreError, session};

/// The users that have grants.
pub const USERS: [&str; 3] = ["query", "node-info", "export"];

const GRANTS: &str = include_str!("../grants.sql");

/// Keeps processes that share a server from making the same user at the same time ("meshrole").
const LOCK: i64 = 0x6d65_7368_726f_6c65;

/// Makes the users known to the server at `url` and gives each its password. Needs an owner who may make roles; what they
/// may do in a database is said when that is migrated.
///
/// # Errors
/// When the server cannot be reached or refuses.
pub async fn let_in(url: &str, passwords: &[(String, String)]) -> Result<(), StoreError> {
    let client = session::connect(url, "mesh roles").await?;
    // Given back with the session.
    let locked = client.execute("SELECT pg_advisory_lock($1)", &[&LOCK]).await;
    locked.map_err(StoreError::in_step("waiting for the lock of roles"))?;
    for (user, password) in passwords {
        let known = client.query_opt("SELECT FROM pg_roles WHERE rolname = $1", &[user]).await;
        let known = known.map_err(StoreError::in_step("looking for a user"))?;
        let verb = if known.is_none() { "CREATE" } else { "ALTER" };
        // A statement that makes a role takes no parameters.
        let (user, password) = (user.replace('"', "\"\""), password.replace('\'', "''"));
        let make = format!("{verb} ROLE \"{user}\" LOGIN PASSWORD '{password}'");
        client.batch_execute(&make).await.map_err(StoreError::in_step("making a user"))?;
    }
    Ok(())
}

/// Grants the users what they may do in the connected database, as far as the server knows them.
pub(crate) async fn grant(client: &Client) -> Result<(), StoreError> {
    client.batch_execute(GRANTS).await.map_err(StoreError::in_step("granting users their rights"))
}
