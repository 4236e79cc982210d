//! The mesh on other buses than the one that all tests share: with TLS, on a cluster whose servers are
//! killed, over a leaf node.

mod checks;
mod cluster;
mod leaf;
mod tls;
