//! What each user may do on the bus: asked of a real server for every user and every subject of a mesh, and
//! the same permissions as a file for those who run the server by other means.

mod client;
mod file;
mod matrix;
