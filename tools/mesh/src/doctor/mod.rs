//! `mesh doctor`: what is missing or wrong on this machine or in a running mesh, and what to do.
//!
//! It checks the mesh that runs in the home, else what its last start has saved, and servers that are
//! named. It starts nothing, changes nothing, and every wait ends within seconds.

mod finding;
mod history;
mod machine;
mod ports;
mod servers;

use finding::{Checked, Finding, State, render};
use mesh_launcher::{
    control::{Answer, ControlError, Request, Restarting, Row, ask},
    home::Home,
    services::SERVICES,
};

use crate::{
    cli::DoctorArgs,
    failure::{Failure, as_typed, failed},
    processes::{NATS, POSTGRES},
    terminal::{print, print_json, printable},
};

/// Runs all checks and prints the findings; exit code 1 when something is wrong.
pub(crate) async fn doctor(args: &DoctorArgs) -> Result<(), Failure> {
    let home = args.home.home()?;
    let running = Running::query(&home).await;
    // The check of the home names a file that cannot be read.
    let saved = home.saved_state().ok();
    let has_other_database = saved.as_ref().is_some_and(|saved| saved.database.is_some());
    let needs_postgres = args.postgres.is_none()
        && if running.is_there() { running.has(POSTGRES) } else { !has_other_database };
    let needs_nats = args.nats.is_none() && (!running.is_there() || running.has(NATS));
    let mut findings = vec![
        Finding::of("postgres", where_needed(needs_postgres, machine::postgres(&home))),
        Finding::of("nats-server", where_needed(needs_nats, machine::nats_server())),
        Finding::of("cometbft", Ok(machine::cometbft())),
        Finding::of("home", machine::home(&home, &running)),
        Finding::of("segments", machine::segments(&home, &running)),
        Finding::of("disk", machine::disk(&home, &running)),
    ];
    findings.extend(history::check(&home, &running).await.map(|checked| Finding::of("history", checked)));
    let last = saved.as_ref().and_then(|saved| saved.ports);
    findings.extend(ports::check(args, last, &running).map(|checked| Finding::of("port", checked)));
    findings.extend(servers::check_all(args, &running, saved.as_ref()).await);
    if args.json {
        print_json(&findings)?;
    } else {
        print(&printable(&as_typed(&render(&findings))))?;
    }
    match findings.iter().filter(|finding| finding.state == State::Wrong).count() {
        0 => Ok(()),
        1 => Err(Failure::failed("one thing is wrong; the line above says what to do")),
        several => Err(failed!("{several} things are wrong; the lines above say what to do")),
    }
}

/// What `doctor` prints of the disk of a home if too little of it is free for a mesh.
pub(crate) fn full_disk(home: &Home) -> Option<String> {
    let disk = Finding::of("disk", machine::disk(home, &Running::default()));
    let is_full = disk.state == State::Wrong;
    is_full.then(|| format!("{}; {}", disk.says, disk.next.unwrap_or_default()))
}

/// The mesh that runs in the home, if one does.
#[derive(Default)]
struct Running {
    rows: Vec<Row>,
    /// Its processes that have ended by themselves and wait for their next start.
    restarting: Vec<Restarting>,
    /// The variables of its services. They name the same servers, and each service's user can read every table.
    variables: Vec<(String, String)>,
    /// Its services without a process.
    stopped: Vec<&'static str>,
    /// Why a mesh that seems to run does not answer.
    silent: Option<String>,
    /// The home belongs to another user, so nothing is known about its mesh.
    is_foreign: bool,
}

impl Running {
    async fn query(home: &Home) -> Self {
        let (rows, restarting) = match ask(home, &Request::Ps).await {
            Ok(Answer::Rows { rows, restarting }) => (rows, restarting),
            Err(ControlError::NotRunning(_)) => return Self::default(),
            Ok(_) => return Self { silent: Some("it answers something else".to_owned()), ..Self::default() },
            Err(error) => {
                let is_foreign = error.is_denied();
                return Self { silent: Some(error.to_string()), is_foreign, ..Self::default() };
            }
        };
        let mut running = Self { rows, restarting, ..Self::default() };
        for service in SERVICES {
            // A mesh that stores no blocks does not know `ingest`.
            let request = Request::Environment { name: service.name.to_owned() };
            let Ok(Answer::Environment { variables }) = ask(home, &request).await else { continue };
            running.variables.extend(variables);
            if !running.has(service.name) {
                running.stopped.push(service.name);
            }
        }
        running
    }

    fn is_there(&self) -> bool {
        !self.rows.is_empty() || !self.restarting.is_empty()
    }

    fn has(&self, process: &str) -> bool {
        let mut names = self.rows.iter().map(|row| &row.service);
        names.any(|name| name == process) || self.restarting.iter().any(|found| found.service == process)
    }

    fn variable(&self, name: &str) -> Option<&str> {
        self.variables.iter().rev().find(|(found, _)| found == name).map(|(_, value)| value.as_str())
    }
}

/// What is found of a program of this machine: it may be missing where no private server needs it.
fn where_needed(is_needed: bool, found: Checked) -> Checked {
    found.or_else(|fault| match is_needed {
        true => Err(fault),
        false => Ok("not needed: the mesh uses a server that it was given".to_owned()),
    })
}
