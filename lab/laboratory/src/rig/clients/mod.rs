//! The clients of the drills: readers, downloaders and submitters, and their results. A drill chooses which
//! clients run, and which faults the mesh gets meanwhile.

pub(crate) mod connection;
pub(crate) mod consistency;
pub(crate) mod download;
pub(crate) mod download_results;
pub(crate) mod downloaders;
pub(crate) mod files;
pub(crate) mod followers;
pub(crate) mod heads;
pub(crate) mod load;
pub(crate) mod memory;
pub(crate) mod samples;
pub(crate) mod submitters;
