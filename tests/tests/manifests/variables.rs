//! Environment variables: manifests set, services read and documents describe the same names.

use std::{
    collections::{BTreeMap, BTreeSet},
    process::Command,
    sync::OnceLock,
};

use crate::manifests::{SERVICES, overlays, parts, read};

/// Set by the system for socket activation; not configuration.
const INHERITED: &str = "LISTEN_FDS";

/// The names of the variables that a service reads by its own `--help`, without the standard ones of
/// telemetry.
pub(crate) fn read_by(service: &str) -> &'static BTreeSet<String> {
    static READ: OnceLock<BTreeMap<&str, BTreeSet<String>>> = OnceLock::new();
    let ours = |service| names_in(&help(service, &[])).filter(|name| !name.starts_with("OTEL_")).collect();
    &READ.get_or_init(|| SERVICES.map(|service| (service, ours(service))).into())[service]
}

/// The output of one of our programs for `--help`.
fn help(program: &str, arguments: &[&str]) -> String {
    let program = mesh_tests::program(program);
    let run = Command::new(&program).args(arguments).arg("--help").env_clear().output();
    let run = run.unwrap_or_else(|error| panic!("{}: {error}; build the services first", program.display()));
    assert!(run.status.success(), "{run:?}");
    String::from_utf8(run.stdout).unwrap()
}

/// The names of variables in a text.
fn names_in(text: &str) -> impl Iterator<Item = String> {
    let words = text.split(|letter: char| !(letter.is_ascii_alphanumeric() || letter == '_'));
    let ours = words
        .filter(|word| ["MESH_", "LISTEN_", "OTEL_", "AWS_"].iter().any(|first| word.starts_with(first)));
    ours.filter(|word| !word.ends_with('_')).map(str::to_owned)
}

/// The standard variables of telemetry, by the table in its document.
pub(crate) fn of_telemetry() -> BTreeSet<String> {
    let document = read("docs/telemetry.md");
    let names = rows(&document).flat_map(|[names, ..]| names_in(names));
    names.filter(|name| name.starts_with("OTEL_")).collect()
}

/// The rows of a table of variables: names, default, meaning.
fn rows(document: &str) -> impl Iterator<Item = [&str; 3]> {
    document.lines().filter(|line| line.starts_with("| `")).filter_map(|line| {
        let mut cells = line.trim_matches('|').splitn(3, " | ").map(str::trim);
        Some([cells.next()?, cells.next()?, cells.next()?])
    })
}

#[derive(Debug)]
pub(crate) struct Documented {
    pub(crate) default: String,
    pub(crate) meaning: String,
}

/// The variables in a service's README.
pub(crate) fn documented(service: &str) -> BTreeMap<String, Documented> {
    let document = read(&format!("services/{service}/README.md"));
    let mut documented_names = BTreeMap::new();
    for [names, default, meaning] in rows(&document) {
        let names: Vec<_> = names_in(names).collect();
        let defaults: Vec<_> = default.split(", ").collect();
        for (position, name) in names.iter().enumerate() {
            let of_its_own = (names.len() == defaults.len()).then(|| defaults[position]);
            let (default, meaning) = (of_its_own.unwrap_or(default).to_owned(), meaning.to_owned());
            documented_names.insert(name.clone(), Documented { default, meaning });
        }
    }
    documented_names
}

/// The variables that the program of a pod or compose block of this name reads.
pub(crate) fn may_be_set(name: &str) -> BTreeSet<String> {
    match name {
        "migrate" => {
            // This job seals as `export` does.
            let seals = may_be_set("export").into_iter().filter(|name| !name.starts_with("OTEL_"));
            names_in(&help("mesh", &["migrate"])).chain(seals).collect()
        }
        "node" => names_in(&help("mesh", &["node"])).collect(),
        service => {
            let buckets = documented(service).into_keys().filter(|name| name.starts_with("AWS_"));
            read_by(service).iter().cloned().chain(of_telemetry()).chain(buckets).collect()
        }
    }
}

#[test]
fn every_variable_in_a_manifest_is_read_by_its_program() {
    for overlay in overlays() {
        for name in SERVICES.into_iter().chain(["migrate", "node"]) {
            if !overlay.templates().any(|(of, _)| of == name) {
                continue;
            }
            let (set, may) = (overlay.variables(name), may_be_set(name));
            let unread: Vec<_> = set.keys().filter(|variable| !may.contains(*variable)).collect();
            assert!(unread.is_empty(), "{}: {name} does not read {unread:?}", overlay.name);
            let is_set = !set.is_empty() && set.values().all(|value| !value.is_empty());
            assert!(is_set, "{}: {name}: {set:?}", overlay.name);
        }
    }
}

#[test]
fn the_documented_variables_are_those_that_are_read() {
    for service in SERVICES {
        let mut names: BTreeSet<_> = documented(service).into_keys().collect();
        names.retain(|name| name != INHERITED && !name.starts_with("AWS_"));
        assert_eq!(&names, read_by(service), "the README of {service}");
    }
}

/// The secret files that a variable's value names: alone, or in an address.
fn files(variables: &BTreeMap<String, String>) -> impl Iterator<Item = &str> {
    variables.values().flat_map(|value| value.split('=')).filter(|value| value.starts_with("/run/secrets/"))
}

#[test]
fn every_file_that_a_variable_names_is_mounted() {
    for overlay in overlays() {
        for (name, template) in overlay.templates() {
            let variables = overlay.variables(name);
            for file in files(&variables) {
                let (folder, file) = file.rsplit_once('/').unwrap();
                let mounts = parts(template, "/spec/containers/0/volumeMounts");
                let mount = mounts.iter().find(|mount| mount["mountPath"] == folder);
                let mount = mount.unwrap_or_else(|| panic!("{}: {name} mounts no {folder}", overlay.name));
                let volumes = parts(template, "/spec/volumes");
                let volume = volumes.iter().find(|volume| volume["name"] == mount["name"]).unwrap();
                let items = parts(volume, "/secret/items");
                let is_there = items.is_empty() || items.iter().any(|item| item["path"] == file);
                assert!(is_there, "{}: {name} has no {file} in {folder}", overlay.name);
            }
        }
    }
}

#[test]
fn production_uses_tls_for_bus_and_database() {
    let Some(production) = overlays().iter().find(|overlay| overlay.name == "production") else { return };
    for name in SERVICES.into_iter().chain(["migrate"]) {
        let variables = production.variables(name);
        if let Some(bus) = variables.get("MESH_BUS_URL") {
            assert!(bus.split(',').all(|server| server.starts_with("tls://")), "{name}: {bus}");
            assert!(variables.contains_key("MESH_BUS_TLS_CA"), "{name}");
        }
        for (variable, url) in variables.iter().filter(|(_, value)| value.starts_with("postgresql://")) {
            assert!(url.contains("?sslmode=verify-full&sslrootcert=/"), "{name}: {variable}");
        }
    }
}
