//! `mesh doctor`: what is missing or wrong on this machine or in a running mesh, and what to do.
//!
//! Comes in: a home, ports, and the addresses of servers that are not the mesh's own. Goes out: one finding
//! per check. It starts nothing, changes nothing, and every wait ends within seconds.

mod finding;
mod machine;
mod ports;
mod servers;

use finding::{Finding, State, render};
use mesh_launcher::{
    control::{Answer, ControlError, Request, Row, ask},
    home::Home,
};

use crate::{
    cli::{DoctorArgs, PortArgs},
    failure::{Failure, as_typed, failed},
    terminal::{print, print_json},
};

/// Runs all checks and prints the findings; exit code 1 when something is wrong.
pub(crate) async fn doctor(args: &DoctorArgs) -> Result<(), Failure> {
    let home = args.home.home()?;
    let running = Running::query(&home).await;
    let mut findings = vec![
        Finding::of("postgres", machine::postgres()),
        Finding::of("nats-server", machine::nats_server()),
        Finding::of("cometbft", Ok(machine::cometbft())),
        Finding::of("home", machine::home(&home, &running)),
        Finding::of("segments", machine::segments(&home, &running)),
        Finding::of("disk", machine::disk(&home)),
    ];
    let PortArgs { host, port, grpc_port } = args.ports;
    findings.extend([port, grpc_port].map(|port| Finding::of("port", ports::free(host, port, &running))));
    findings.extend(servers::check_all(args, &running).await);
    if args.json {
        print_json(&findings)?;
    } else {
        print(&as_typed(&render(&findings)));
    }
    match findings.iter().filter(|finding| finding.state == State::Wrong).count() {
        0 => Ok(()),
        1 => Err(Failure::failed("one thing is wrong; the line above says what to do")),
        several => Err(failed!("{several} things are wrong; the lines above say what to do")),
    }
}

/// The mesh that runs in the home, if one does.
#[derive(Default)]
struct Running {
    rows: Vec<Row>,
    /// The variables of a service that reads the database, of the one that seals, and of the one that uses
    /// the node.
    variables: Vec<(String, String)>,
    /// Why a mesh that seems to run does not answer.
    silent: Option<String>,
}

impl Running {
    async fn query(home: &Home) -> Self {
        let rows = match ask(home, &Request::Ps).await {
            Ok(Answer::Rows { rows }) => rows,
            Err(ControlError::NotRunning(_)) => return Self::default(),
            Ok(_) => return Self { silent: Some("it answers something else".to_owned()), ..Self::default() },
            Err(error) => return Self { silent: Some(error.to_string()), ..Self::default() },
        };
        let mut running = Self { rows, ..Self::default() };
        for service in ["query", "export", "node-info"] {
            let answer = ask(home, &Request::Environment { name: service.to_owned() }).await;
            if let Ok(Answer::Environment { variables }) = answer {
                running.variables.extend(variables);
            }
        }
        running
    }

    fn is_there(&self) -> bool {
        !self.rows.is_empty()
    }

    /// The value of a variable of its services.
    fn variable(&self, name: &str) -> Option<&str> {
        self.variables.iter().rev().find(|(found, _)| found == name).map(|(_, value)| value.as_str())
    }
}
