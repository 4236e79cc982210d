//! Segments from CSV text to spliced exports, seen from outside: what comes out of an export must be what an
//! independent reader finds in it and what plain concatenation of the tables' text gives.
#![allow(clippy::unwrap_used)] // in what the tests share

mod choose;
mod damage;
mod faults;
mod made;
mod parts;
mod publish;
mod ranges;
mod readers;
mod s3;
mod splice;
mod whole;
