//! The OpenAPI document compared with the edge: its operations are the contract's, its description of answers
//! holds on several data sets, and the page that shows it requests no other host.

mod answers;
mod declared;
mod document;
mod limits;
mod page;
mod refusals;
mod requests;

use document::{Document, Operation};
use requests::example;
