//! The permissions of each user: tried on a real server for every user and every subject of a mesh, and the
//! file with the same permissions.

mod client;
mod file;
mod matrix;
mod refused;
