//! What a command line asks of a running mesh, and what the mesh answers: one JSON line each.

use serde::{Deserialize, Serialize};

/// What a command line asks of a running mesh.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "ask", deny_unknown_fields)]
pub enum Request {
    /// Lists the processes.
    Ps,
    /// Holds one replica down, or all replicas of a name.
    Stop {
        /// The process's name.
        name: String,
        /// The replica, or all.
        replica: Option<u32>,
    },
    /// Brings back what was held down.
    Start {
        /// The process's name.
        name: String,
        /// The replica, or all.
        replica: Option<u32>,
    },
    /// Replaces the replicas one after the other.
    Restart {
        /// The process's name.
        name: String,
    },
    /// Changes the number of replicas.
    Scale {
        /// The service's name.
        name: String,
        /// How many there shall be.
        replicas: u32,
    },
    /// Asks for the variables that a service is given, so that a command does as its replicas do.
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
    /// Its number among its like, from 0.
    pub replica: u32,
    /// Its process id.
    pub pid: u32,
    /// The base of its admin address, when it has one and has said it.
    pub admin: Option<String>,
}

/// What a running mesh answers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "answer")]
pub enum Answer {
    /// The processes.
    Rows {
        /// One row per process that has a pid.
        rows: Vec<Row>,
    },
    /// The variables of a service; a later entry of the same name wins.
    Environment {
        /// Name and value, secrets among them.
        variables: Vec<(String, String)>,
    },
    /// It is done.
    Done {
        /// What a person may want to know besides.
        note: Option<String>,
    },
    /// It was not done.
    Refused {
        /// Why, and what to do next.
        reason: String,
    },
}
