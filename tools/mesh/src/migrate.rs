//! Migrating a database that may have a history: the running span is sealed before its tables change (H7).

use mesh_export::{Sealing, Until};
use mesh_history::Segment;
use mesh_store::migrate::migrate_after;

use crate::failure::Failure;
use crate::seal::seal_in_turn;
use crate::up::say;

/// Brings the database at `url` to the newest schema. `closing` are the variables of whoever seals it, when it has
/// a history.
pub(crate) async fn migrate(url: &str, closing: Option<Vec<(String, String)>>) -> Result<(), Failure> {
    let before = async |_: &_| {
        let Some(variables) = closing else { return Ok(()) };
        say("sealing up to the newest block, because the tables of exports are about to change");
        let sealing = Sealing::configured(variables).map_err(Failure::configuration)?;
        let mut told = |segment: &Segment| say(&format!("sealed {}", segment.name));
        seal_in_turn(&sealing, Until::Newest, &mut told).await
    };
    migrate_after(url, before).await.map(|_| ())
}
