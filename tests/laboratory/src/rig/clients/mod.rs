//! The clients of the drills: those who read, those who download and those who submit, and what became of
//! each of them. A drill chooses which of them there are, and what happens to the mesh meanwhile.

pub(crate) mod connection;
pub(crate) mod crowd;
pub(crate) mod download;
pub(crate) mod downloaders;
pub(crate) mod files;
pub(crate) mod heads;
pub(crate) mod judge;
pub(crate) mod load;
pub(crate) mod memory;
pub(crate) mod node;
pub(crate) mod samples;
pub(crate) mod seen;
pub(crate) mod submitters;
