//! The JSON and request rules J1-J15 of the contract, each from outside, over the fixture.

mod answers;
mod caching;
mod cross_origin;
mod past;
mod requests;
mod times;
mod transfer;
mod unknown_names;

use mesh_testbed::Answer;

/// A path with further parameters.
fn with(path: &str, more: &str) -> String {
    format!("{path}{}{more}", if path.contains('?') { '&' } else { '?' })
}

fn etag(answer: &Answer) -> String {
    answer.header("etag").unwrap_or_else(|| panic!("no ETag: {answer:?}")).to_owned()
}

/// Whether `Vary` names a header. It has one line: of several, some caches see only the last.
fn varies_by(answer: &Answer, name: &str) -> bool {
    assert!(answer.headers.get_all("vary").iter().count() <= 1, "{answer:?}");
    answer.header("vary").is_some_and(|names| names.split(", ").any(|other| other == name))
}
