//! The mesh on buses of other kinds than the one that all tests share: with TLS, as a cluster whose servers
//! die, over a leaf node.

mod cluster;
mod leaf;
mod stage;
mod tls;
