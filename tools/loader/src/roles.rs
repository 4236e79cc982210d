//! The service users of a database: one for each service that uses it, with the service's name. Their rights
//! are in `grants.sql`.

use mesh_store::connect;
use tokio_postgres::Client;

use crate::LoadError;

/// The users that have grants.
pub const USERS: [&str; 4] = ["query", "node-info", "export", "ingest"];

const GRANTS: &str = include_str!("../grants.sql");

/// Key of the lock against creating the same user in two processes at the same time ("meshrole").
const LOCK: i64 = 0x6d65_7368_726f_6c65;

/// Creates the logins on the server at `url`, or changes their passwords. Needs an owner with CREATEROLE; the
/// rights in a database are granted when it is migrated.
///
/// # Errors
/// When the server cannot be reached or refuses.
pub async fn create_logins(url: &str, passwords: &[(String, String)]) -> Result<(), LoadError> {
    let client = connect(url, "mesh roles").await?;
    // Released with the session.
    let locked = client.execute("SELECT pg_advisory_lock($1)", &[&LOCK]).await;
    locked.map_err(LoadError::in_step("waiting for the lock of roles"))?;
    for (user, password) in passwords {
        let known = client.query_opt("SELECT FROM pg_roles WHERE rolname = $1", &[user]).await;
        let known = known.map_err(LoadError::in_step("looking for a user"))?;
        let verb = if known.is_none() { "CREATE" } else { "ALTER" };
        // The statement takes no parameters.
        let sql = "SELECT format('%s ROLE %I LOGIN PASSWORD %L', $1::text, $2::text, $3::text)";
        let make = client.query_one(sql, &[&verb, user, password]).await;
        let make: String = make.map_err(LoadError::in_step("naming a user"))?.get(0);
        client.batch_execute(&make).await.map_err(LoadError::in_step("making a user"))?;
    }
    Ok(())
}

/// Grants the users that exist on the server their rights in the connected database.
pub(crate) async fn grant(client: &Client) -> Result<(), LoadError> {
    client.batch_execute(GRANTS).await.map_err(LoadError::in_step("granting users their rights"))
}
