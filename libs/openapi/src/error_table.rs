//! `docs/errors.md`: every application number in one table, generated from the contract.

use std::collections::BTreeMap;

use mesh_problem::Code;
use mesh_testbed::assert_generated_part;
use proto_msgs::{Contract, Method};

use crate::{notes, operation, refusals::Refusals};

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
fn the_generated_numbers_are_in_the_document() {
    assert_generated_part("docs/errors.md", "numbers", &table());
}
