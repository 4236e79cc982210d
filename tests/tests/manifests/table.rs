//! The operators' table of all variables is generated from what services read, what their READMEs say, and
//! what manifests set.

use std::{collections::BTreeMap, fmt::Write as _};

use mesh_testbed::assert_generated_part;

use crate::manifests::{OVERLAYS, SERVICES, compose, documented, overlays, read_by};

/// The files that set the services' variables.
fn set_in() -> Vec<(&'static str, BTreeMap<&'static str, Vec<String>>)> {
    let mut setters =
        vec![("compose", SERVICES.map(|service| (service, compose::variables(service))).into())];
    for (name, overlay) in OVERLAYS.iter().zip(overlays()) {
        let set = SERVICES.map(|service| (service, overlay.variables(service).into_keys().collect()));
        setters.push((name, set.into()));
    }
    setters
}

fn table() -> String {
    let mut variables = BTreeMap::<String, Vec<&str>>::new();
    for service in SERVICES {
        for name in read_by(service) {
            variables.entry(name.clone()).or_default().push(service);
        }
    }
    let setters = set_in();
    let mut table = "| Variable | Meaning | Read by | Default | Set in |\n|---|---|---|---|---|\n".to_owned();
    for (name, services) in variables {
        let mut defaults: Vec<_> =
            services.iter().map(|service| documented(service)[&name].default.clone()).collect();
        defaults.dedup();
        // The edge only shows some limits that others enforce.
        let owner = services.iter().find(|service| **service != "edge").unwrap_or(&services[0]);
        let meaning = documented(owner)[&name].meaning.clone();
        let by = if services.len() == SERVICES.len() { "all".to_owned() } else { services.join(", ") };
        let set: Vec<_> = setters
            .iter()
            .filter(|(_, set)| services.iter().any(|service| set[service].contains(&name)))
            .map(|(place, _)| *place)
            .collect();
        let set = if set.is_empty() { "-".to_owned() } else { set.join(", ") };
        writeln!(table, "| `{name}` | {meaning} | {by} | {} | {set} |", defaults.join(" / ")).unwrap();
    }
    table
}

#[test]
fn the_generated_table_of_variables_is_in_the_document() {
    if !overlays().is_empty() {
        assert_generated_part("docs/operations/variables.md", "variables", &table());
    }
}
