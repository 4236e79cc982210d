//! `mesh migrate`: migrates a database. One with a history has its running span sealed before tables of
//! exports change (H7).

use std::{pin::pin, time::Duration};

use mesh_export::{Sealing, Until};
use mesh_history::Segment;
use mesh_loader::migrate::{blocker, migrate_after};
use mesh_store::schema::SchemaState;
use tokio::time::timeout;

use crate::{
    failure::Failure,
    seal::{seal_in_turn, variables},
    terminal::print_line,
    up::backing::reach_postgres,
};

/// Interval at which a migration that takes longer is checked for a session that it waits for.
const CHECK_INTERVAL: Duration = Duration::from_secs(1);

/// Runs `mesh migrate`, the job that precedes the services of a new release.
pub(crate) async fn run(url: &str, history: Option<&str>) -> Result<(), Failure> {
    let state = migrate_named(url, history).await?;
    if state.applied <= state.newest {
        print_line("the database has the newest schema");
    }
    Ok(())
}

/// Migrates a database that an option names; `history` is the root of its own history, if it has one.
pub(crate) async fn migrate_named(url: &str, history: Option<&str>) -> Result<SchemaState, Failure> {
    reach_postgres(url).await?;
    migrate(url, history.map(|root| variables(url, root))).await
}

/// Brings the database at `url` to the newest schema, and returns its state; the schema of a later release is kept and
/// named. `sealing_variables` configure the sealer when the database has a history.
pub(crate) async fn migrate(
    url: &str,
    sealing_variables: Option<Vec<(String, String)>>,
) -> Result<SchemaState, Failure> {
    let before = async |_: &_| {
        let Some(variables) = sealing_variables else { return Ok(()) };
        print_line("sealing up to the newest block, because the tables of exports are about to change");
        let sealing = Sealing::configured(variables).map_err(Failure::configuration)?;
        let mut on_sealed = |segment: &Segment| print_line(&format!("sealed {}", segment.name));
        seal_in_turn(&sealing, Until::Newest, &mut on_sealed).await
    };
    let mut migrating = pin!(migrate_after(url, before));
    let mut is_reported = false;
    loop {
        match timeout(CHECK_INTERVAL, &mut migrating).await {
            Ok(migrated) => {
                let state = migrated?.state;
                if state.applied > state.newest {
                    let (applied, newest) = (state.applied, state.newest);
                    print_line(&format!(
                        "the database has the schema {applied} of a later release and is not changed; this one has {newest}"
                    ));
                }
                return Ok(state);
            }
            Err(_) if is_reported => {}
            Err(_) => {
                // A failure is that of the migration, too.
                let blocker = timeout(CHECK_INTERVAL, blocker(url)).await;
                if let Ok(Ok(Some(blocker))) = blocker {
                    print_line(&format!("the migration waits for {blocker}"));
                    is_reported = true;
                }
            }
        }
    }
}
