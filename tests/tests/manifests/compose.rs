//! `docker-compose.yml`: conforms to the schema of Compose, and agrees with the manifests.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs::{self, Permissions},
    os::unix::fs::PermissionsExt as _,
    path::Path,
    process::Command,
};

use serde_json::{Value, json};

use crate::manifests::{SERVICES, differences, faults_by, parts, path, read, text, variables};

const SCHEMA: &str = include_str!("schemas/compose.json");

/// The file with anchors and merges resolved, and `${…}` unchanged.
fn compose() -> Value {
    serde_saphyr::from_str(&read("docker-compose.yml")).unwrap()
}

fn blocks(compose: &Value) -> BTreeMap<String, Value> {
    serde_json::from_value(compose["services"].clone()).unwrap()
}

/// The names of the variables that a block sets.
pub(crate) fn variables(service: &str) -> Vec<String> {
    let compose = compose();
    compose["services"][service]["environment"].as_object().unwrap().keys().cloned().collect()
}

fn faults(compose: &Value) -> Vec<String> {
    let schema = jsonschema::draft202012::new(&serde_json::from_str(SCHEMA).unwrap()).unwrap();
    differences(&schema, compose)
}

#[test]
fn the_file_conforms_to_the_schema_of_compose() {
    let mut compose = compose();
    assert_eq!(faults(&compose), Vec::<String>::new());
    compose["services"]["edge"]["healtcheck"] = json!({});
    assert_eq!(faults(&compose).len(), 1, "a wrong word is found");
}

#[test]
fn every_block_is_restricted() {
    let compose = compose();
    for (name, block) in blocks(&compose) {
        assert_eq!(faults_by("block", &block), Vec::<String>::new(), "{name}");
        for secret in parts(&block, "/secrets") {
            let source = secret.as_str().unwrap_or_else(|| text(secret, "/source"));
            assert!(compose["secrets"].get(source).is_some(), "{name}: {source}");
        }
        for (other, condition) in block["depends_on"].as_object().into_iter().flatten() {
            let can_be_healthy = compose["services"][other].get("healthcheck").is_some();
            assert!(condition["condition"] != "service_healthy" || can_be_healthy, "{name}: {condition}");
        }
    }
    for (member, value) in [
        ("read_only", json!(false)),
        ("privileged", json!(true)),
        ("user", json!("0:0")),
        ("ports", json!(["8080:8080"])),
        ("environment", json!({"A_PASSWORD": "x"})),
        ("environment", json!({"URL": "postgresql://u:pass@x"})),
    ] {
        let mut block = compose["services"]["nats"].clone();
        block[member] = value;
        assert!(!faults_by("block", &block).is_empty(), "{member}");
    }
}

#[test]
fn a_service_is_configured_as_in_the_cluster() {
    let compose = compose();
    for name in SERVICES {
        let block = &compose["services"][name];
        assert_eq!(block["healthcheck"]["test"], json!(["CMD", name, "--ready"]), "{name}");
        let grace: u64 = text(block, "/stop_grace_period").trim_end_matches('s').parse().unwrap();
        assert!(grace > block["environment"]["MESH_STOP_GRACE_S"].as_u64().unwrap(), "{name}");
        let mut set: BTreeSet<_> = variables(name).into_iter().collect();
        // For the chain that continues the demo's past, which is in compose alone.
        set.remove("MESH_INGEST_AFTER_HASH");
        let base = read(&format!("k8s/base/{name}.env"));
        let base = base.lines().filter_map(|line| Some(line.split_once('=')?.0.to_owned()));
        assert_eq!(set, base.collect(), "{name}");
        let bus = json!({"source": format!("bus-{name}"), "target": "bus"});
        assert!(parts(block, "/secrets").contains(&bus), "{name} has its own user of the bus");
    }
    for name in SERVICES.into_iter().chain(["migrate", "node"]) {
        let (set, may) = (variables(name), variables::may_be_set(name));
        assert!(set.iter().all(|variable| may.contains(variable)), "{name}: {set:?}");
    }
}

/// The images of the manifests: name and versions.
fn images() -> BTreeMap<String, String> {
    let files = ["base", "components/postgres", "components/node"]
        .map(|folder| format!("k8s/{folder}/kustomization.yaml"));
    let mut images = BTreeMap::new();
    for file in files {
        let file: Value = serde_saphyr::from_str(&read(&file)).unwrap();
        for image in parts(&file, "/images") {
            let (name, tag) = (text(image, "/name").to_owned(), text(image, "/newTag").to_owned());
            assert!(images.insert(name, tag.clone()).is_none_or(|other| other == tag), "{image}");
        }
    }
    images
}

#[test]
fn images_have_the_same_versions_as_in_the_cluster() {
    let (compose, dockerfile) = (compose(), read("Dockerfile"));
    let versions = images();
    let mut named = BTreeSet::new();
    for (name, block) in blocks(&compose) {
        let (image, tag) =
            text(&block, "/image").rsplit_once(':').unwrap_or_else(|| panic!("{name} has no version"));
        assert!(tag.starts_with(|first: char| first.is_ascii_digit() || first == 'v'), "{name}: {tag}");
        assert!(versions.get(image).is_none_or(|version| version == tag), "{name}: {versions:?}");
        named.insert(image.to_owned());
        if let Some(target) = image.strip_prefix("tradewind/") {
            let commit = json!({"MESH_COMMIT": "${MESH_COMMIT:-unknown}"});
            assert_eq!(block["build"], json!({"context": ".", "args": commit, "target": target}), "{name}");
            assert!(dockerfile.contains(&format!("FROM runtime AS {target}\n")), "{target}");
            assert_eq!(tag, env!("CARGO_PKG_VERSION"), "{name}");
        }
    }
    let missing: Vec<_> = versions.keys().filter(|image| !named.contains(*image)).collect();
    assert!(missing.is_empty(), "compose does without {missing:?}");
    let cometbft = mesh_launcher::servers::COMETBFT_PACKAGE;
    assert!(dockerfile.contains(cometbft), "another CometBFT than `mesh` knows");
}

/// The script creates exactly the passwords that the blocks and the bus server's users need.
#[test]
fn the_generated_passwords_are_those_of_the_users() {
    let folder = tempfile::tempdir().unwrap();
    let script = folder.path().join("secrets.sh");
    fs::copy(path("compose/secrets.sh"), &script).unwrap();
    let make = || {
        let run = Command::new("sh").arg(&script).output().unwrap();
        assert!(run.status.success(), "{run:?}");
        let files = fs::read_dir(folder.path().join("secrets")).unwrap().map(Result::unwrap);
        let file = |file: fs::DirEntry| {
            (file.file_name().into_string().unwrap(), fs::read_to_string(file.path()).unwrap())
        };
        files.map(file).collect::<BTreeMap<_, _>>()
    };
    let generated_files = make();
    assert_eq!(make(), generated_files, "a second run changes nothing");
    for (secret, mounted) in compose()["secrets"].as_object().unwrap() {
        assert_eq!(text(mounted, "/file"), format!("compose/secrets/{secret}"));
        assert!(generated_files[secret].trim().len() > 40, "{secret}");
    }
    let permissions = read("k8s/base/nats/permissions.conf");
    let lines = || permissions.lines().map(str::trim);
    let expected: BTreeSet<_> = lines().filter_map(|line| line.strip_prefix("password: $")).collect();
    let names = generated_files["nats.env"].lines().filter_map(|line| Some(line.split_once('=')?.0));
    assert_eq!(names.collect::<BTreeSet<_>>(), expected);
    for user in lines().filter_map(|line| line.strip_prefix("user: \"")?.strip_suffix('"')) {
        let (name, password) = generated_files[&format!("bus-{user}")].trim().split_once(':').unwrap();
        assert_eq!(name, user);
        let variable = format!("NATS_{}_PASSWORD={password}\n", user.replace('-', "_").to_uppercase());
        assert!(generated_files["nats.env"].contains(&variable), "{user}");
    }
}

/// Containers run as other users than the one who cloned the repository, perhaps under umask 077.
#[test]
fn the_script_makes_every_mounted_file_readable_and_the_passwords_private() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let compose = compose();
    let volumes = blocks(&compose).into_values().filter_map(|block| block["volumes"].as_array().cloned());
    let mounted = volumes.flatten().filter_map(|volume| {
        let (file, _) = volume.as_str()?.strip_prefix("./")?.split_once(':')?;
        Some(at(file))
    });
    let mounted: Vec<_> = mounted.collect();
    assert!(mounted.len() > 5, "{mounted:?}");
    fs::create_dir_all(at("compose/secrets")).unwrap();
    fs::set_permissions(at("compose/secrets"), Permissions::from_mode(0o755)).unwrap();
    fs::copy(path("compose/secrets.sh"), at("compose/secrets.sh")).unwrap();
    for file in &mounted {
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, "").unwrap();
        fs::set_permissions(file, Permissions::from_mode(0o600)).unwrap();
    }
    assert!(Command::new("sh").arg(at("compose/secrets.sh")).status().unwrap().success());
    for file in mounted {
        assert_eq!(mode(&file) & 0o444, 0o444, "{}", file.display());
    }
    assert_eq!(mode(&at("compose/secrets")), 0o700);
}

fn mode(file: &Path) -> u32 {
    fs::metadata(file).unwrap().permissions().mode() & 0o777
}
