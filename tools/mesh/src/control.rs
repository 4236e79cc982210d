//! The commands that talk to a running mesh: `ps`, `stop`, `start`, `restart`, `scale`, `down`.

use std::time::Duration;

use mesh_launcher::{
    control::{Answer, ControlError, Request, Restarting, Row, ask},
    home::HomeError,
};
use tokio::time::{Instant, sleep, timeout_at};

use crate::{
    cli::HomeArgs,
    failure::{Failure, as_typed, failed},
    terminal::{print, print_json, print_line},
};

/// Longest wait for the end of a mesh, whose processes have 15 s to stop.
const DOWN_TIMEOUT: Duration = Duration::from_secs(20);
const DOWN_INTERVAL: Duration = Duration::from_millis(20);

pub(crate) async fn ps(home: &HomeArgs, as_json: bool) -> Result<(), Failure> {
    let home = home.home()?;
    let (rows, restarting) = match ask(&home, &Request::Ps).await {
        Ok(Answer::Rows { rows, restarting }) => (rows, restarting),
        Ok(other) => return Err(unexpected(&other)),
        Err(error @ ControlError::NotRunning(_)) => {
            print_line(&as_typed(&error.to_string()));
            (Vec::new(), Vec::new())
        }
        Err(error) => return Err(error.into()),
    };
    if as_json {
        return print_json(&rows);
    }
    if !rows.is_empty() || !restarting.is_empty() {
        print(&table(&rows, &restarting))?;
    }
    Ok(())
}

/// Stops a mesh and waits until it has ended: it holds the lock of its home until no process is left.
pub(crate) async fn down(home: &HomeArgs) -> Result<(), Failure> {
    let home = home.home()?;
    let deadline = Instant::now() + DOWN_TIMEOUT;
    match timeout_at(deadline, ask(&home, &Request::Shutdown)).await {
        // Without an answer, the mesh has ended already or hangs: the lock shows which.
        Ok(Ok(Answer::Done { .. }) | Err(ControlError::NoAnswer(..))) | Err(_) => {}
        Ok(Ok(Answer::Refused { reason })) => return Err(Failure::failed(reason)),
        Ok(Ok(other)) => return Err(unexpected(&other)),
        Ok(Err(error)) => return Err(error.into()),
    }
    loop {
        match home.lock() {
            Ok(_) => return Ok(()),
            Err(HomeError::Taken(_)) if Instant::now() < deadline => sleep(DOWN_INTERVAL).await,
            Err(HomeError::Taken(folder)) => {
                return Err(failed!(
                    "the mesh in {} has not ended within {} s; see its log {}",
                    folder.display(),
                    DOWN_TIMEOUT.as_secs(),
                    home.log("mesh", 0).display()
                ));
            }
            Err(error) => return Err(error.into()),
        }
    }
}

/// Gives the mesh an order: to stop, start, restart or scale processes.
pub(crate) async fn order(home: &HomeArgs, request: &Request) -> Result<(), Failure> {
    match ask(&home.home()?, request).await? {
        Answer::Done { note } => {
            note.iter().for_each(|note| print_line(&as_typed(note)));
            Ok(())
        }
        Answer::Refused { reason } => Err(Failure::failed(reason)),
        other => Err(unexpected(&other)),
    }
}

/// The failure for an answer of another kind than the request's.
pub(crate) fn unexpected(answer: &Answer) -> Failure {
    failed!("the mesh answered something else ({answer:?}); use the `mesh` that runs it")
}

/// Renders the rows with a header line, each column as wide as its widest value.
fn table(rows: &[Row], restarting: &[Restarting]) -> String {
    let mut lines = vec![["SERVICE", "REPLICA", "PID", "ADMIN"].map(str::to_owned)];
    lines.extend(rows.iter().map(|row| {
        let admin = row.admin.clone().unwrap_or_else(|| "-".to_owned());
        [row.service.clone(), row.replica.to_string(), row.pid.to_string(), admin]
    }));
    lines.extend(restarting.iter().map(|Restarting { service, replica, deaths }| {
        let state = format!("ended, waits for restart {deaths}");
        [service.clone(), replica.to_string(), "-".to_owned(), state]
    }));
    let width = |column: usize| lines.iter().map(|line| line[column].len()).max().unwrap_or(0);
    let (name, replica, pid) = (width(0), width(1), width(2));
    let lines = lines.iter().map(|[a, b, c, d]| format!("{a:<name$}  {b:>replica$}  {c:>pid$}  {d}"));
    lines.collect::<Vec<_>>().join("\n")
}
