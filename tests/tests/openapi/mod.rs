//! The API's own document, held against what the edge serves: its operations are the contract's, what it
//! promises of answers holds on several sets of data, and the page that shows it asks no other host.

mod answers;
mod declared;
mod document;
mod limits;
mod page;
mod refusals;
mod requests;
mod validator;
