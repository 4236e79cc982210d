//! `docs/errors.md`: every application number in one table, made from the contract.

use std::{collections::BTreeMap, env, fs};

use mesh_problem::Code;
use proto_msgs::{Contract, Method};

use crate::{notes, operation, refusals::Refusals};

const DOCUMENT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/errors.md");
const BEGIN: &str = "<!-- numbers: made from the contract, MESH_UPDATE=1 cargo test -p mesh-openapi -->\n";
const END: &str = "<!-- end of the numbers -->";

fn table() -> String {
    let operations = Contract::get().operations();
    let reads: Vec<_> = operations
        .iter()
        .filter(|operation| operation.method == Method::Get)
        .map(|operation| format!("`{}`", operation::path(operation)))
        .collect();
    let mut rows: BTreeMap<(u32, u16, u8, String), Vec<String>> = BTreeMap::new();
    for asked in operations {
        for (status, code, number, when) in Refusals::of(asked, &notes::of_operation(&asked.rpc)).all() {
            let paths = rows.entry((number, status, code.number(), when.to_owned())).or_default();
            paths.push(format!("`{}`", operation::path(asked)));
        }
    }
    let mut table = String::from("| number | HTTP | gRPC | cause | where |\n|---|---|---|---|---|\n");
    let mut anchored = 0;
    for ((number, status, code, when), paths) in rows {
        let place = match paths.len() == operations.len() {
            true => "everywhere".to_owned(),
            false if paths == reads => "every `GET`".to_owned(),
            false => paths.join(", "),
        };
        let name = Code::from_number(code).name();
        let anchor = if number == anchored { String::new() } else { format!("<a id=\"{number}\"></a>") };
        anchored = number;
        table.push_str(&format!("| {anchor}{number} | {status} | {code} {name} | {when} | {place} |\n"));
    }
    table
}

#[test]
fn the_documented_numbers_are_those_of_the_contract() {
    let kept = fs::read_to_string(DOCUMENT).unwrap();
    let (before, rest) = kept.split_once(BEGIN).unwrap();
    let (_, after) = rest.split_once(END).unwrap();
    let made = format!("{before}{BEGIN}{}{END}{after}", table());
    if env::var_os("MESH_UPDATE").is_some() {
        return fs::write(DOCUMENT, made).unwrap();
    }
    assert!(
        kept == made,
        "docs/errors.md is not what the contract makes: MESH_UPDATE=1 cargo test -p mesh-openapi"
    );
}
