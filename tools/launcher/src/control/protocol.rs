//! Requests of a command line to a running mesh, and the answers: one JSON line each.

use serde::{Deserialize, Serialize};

/// A request of a command line to a running mesh.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "ask", deny_unknown_fields)]
pub enum Request {
    /// Lists the processes.
    Ps,
    /// Stops one replica, or all replicas of a name, until `Start`.
    Stop {
        /// The process's name.
        name: String,
        /// The replica, or all.
        replica: Option<u32>,
    },
    /// Starts processes that `Stop` stopped.
    Start {
        /// The process's name.
        name: String,
        /// The replica, or all.
        replica: Option<u32>,
    },
    /// Replaces the replicas in turn.
    Restart {
        /// The process's name.
        name: String,
    },
    /// Changes the number of replicas.
    Scale {
        /// The service's name.
        name: String,
        /// The desired number of replicas.
        replicas: u32,
    },
    /// Asks for the variables of a service, so that a command can use the configuration of its replicas.
    Environment {
        /// The service's name.
        name: String,
    },
    /// Stops the whole mesh; answered before the stop begins.
    Shutdown,
}

/// One process of a running mesh.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Row {
    /// The process's name.
    pub service: String,
    /// Its replica number, from 0.
    pub replica: u32,
    /// Its process id.
    pub pid: u32,
    /// The base URL of its admin port, when it has one and has written it.
    pub admin: Option<String>,
}

/// A process that has ended by itself and waits for its next start.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Restarting {
    /// The process's name.
    pub service: String,
    /// Its replica number, from 0.
    pub replica: u32,
    /// How often it has ended without a stop.
    pub deaths: u64,
}

/// An answer of a running mesh.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "answer")]
pub enum Answer {
    /// The processes.
    Rows {
        /// One row per process that has a pid.
        rows: Vec<Row>,
        /// Those that wait for their next start; a mesh of an earlier release does not list them.
        #[serde(default)]
        restarting: Vec<Restarting>,
    },
    /// The variables of a service; a later entry of the same name wins.
    Environment {
        /// Name and value, secrets among them.
        variables: Vec<(String, String)>,
    },
    /// It is done.
    Done {
        /// A remark for the user.
        note: Option<String>,
    },
    /// It was not done.
    Refused {
        /// Why, and what to do next.
        reason: String,
    },
}
