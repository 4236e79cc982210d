//! Migrating a database that may have a history: the running span is sealed before its tables change (H7).

use mesh_export::{Sealing, Until};
use mesh_history::Segment;
use mesh_store::migrate::migrate_after;

use crate::{
    cli::MigrateArgs,
    failure::Failure,
    seal::{seal_in_turn, variables},
    terminal::print_line,
    up::backing::reach_postgres,
};

/// Migrates alone: a job of its own before the services of a new release, which find everything done.
pub(crate) async fn run(args: &MigrateArgs) -> Result<(), Failure> {
    let url = args.database.url()?;
    reach_postgres(&url).await?;
    migrate(&url, args.history.as_deref().map(|root| variables(&url, root))).await?;
    print_line("the database has the newest schema");
    Ok(())
}

/// Brings the database at `url` to the newest schema. `closing` are the variables of whoever seals it, when
/// it has a history.
pub(crate) async fn migrate(url: &str, closing: Option<Vec<(String, String)>>) -> Result<(), Failure> {
    let before = async |_: &_| {
        let Some(variables) = closing else { return Ok(()) };
        print_line("sealing up to the newest block, because the tables of exports are about to change");
        let sealing = Sealing::configured(variables).map_err(Failure::configuration)?;
        let mut told = |segment: &Segment| print_line(&format!("sealed {}", segment.name));
        seal_in_turn(&sealing, Until::Newest, &mut told).await
    };
    migrate_after(url, before).await.map(|_| ())
}
