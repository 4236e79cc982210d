//! Segments from CSV text to spliced exports, by the public API: the contents of an export, read by an
//! independent reader, must equal the concatenation of the tables' text.
#![allow(clippy::unwrap_used)] // in what the tests share

mod choose;
mod damage;
mod faults;
mod fixture;
mod parts;
mod publish;
mod ranges;
mod readers;
mod s3;
mod splice;
mod whole;

use fixture::{History, Plan, START_NS, concatenated, file, rng, table};
use readers::{entries, unzip};
use whole::{faults, plan};
