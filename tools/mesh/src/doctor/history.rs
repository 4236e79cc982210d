//! Check of the sealed history of the running mesh: its segments can be opened, and they are one chain.

use std::time::Duration;

use mesh_export::Sealing;
use mesh_launcher::{
    control::{Answer, Request, ask},
    home::Home,
};
use mesh_problem::error_chain;
use tokio::time::timeout;

use super::{
    Running,
    finding::{Checked, Fault},
    machine::segment_folder,
};

/// A listing opens every segment, also those of a bucket.
const WITHIN: Duration = Duration::from_secs(10);

/// `None` without an `export` that keeps a history, and if the folder of the segments does not exist: opening the store
/// would create it.
pub(super) async fn check(home: &Home, running: &Running) -> Option<Checked> {
    running.variable("MESH_HISTORY_URL")?;
    let folder = segment_folder(home, running);
    if folder.as_ref().is_some_and(|folder| !folder.is_dir()) {
        return None;
    }
    let request = Request::Environment { name: "export".to_owned() };
    let Ok(Answer::Environment { variables }) = ask(home, &request).await else { return None };
    let sealing = match Sealing::configured(variables) {
        Ok(sealing) => sealing,
        Err(mistakes) => return Some(Err(Fault::wrong(mistakes, "correct the variables of `export`"))),
    };
    Some(match timeout(WITHIN, sealing.fault()).await {
        Ok(Ok(None)) => Ok("every segment can be opened, and they are one chain".to_owned()),
        Ok(Ok(Some(fault))) => {
            let folder = folder.map_or("DIR".to_owned(), |folder| folder.display().to_string());
            let next =
                format!("copy it again from a back-up; `mesh history verify {folder}` checks every byte");
            Err(Fault::wrong(format!("the sealed history is not whole: {fault}"), next))
        }
        Ok(Err(error)) => Err(Fault::warning(
            format!("not checked: {}", error_chain(&error)),
            "correct the database or the store of the segments first",
        )),
        Err(_) => Err(Fault::warning(
            format!("not checked: the segments were not listed within {WITHIN:?}"),
            "a large bucket takes longer: `mesh seal` lists all of it, `mesh history verify DIR` reads a copy",
        )),
    })
}
