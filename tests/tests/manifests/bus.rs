//! The bus server's configuration, checked by a real nats-server.

use std::{fs, path::Path, process::Command};

use mesh_launcher::servers::find_nats;
use mesh_tests::say;

use crate::manifests::{path, read};

/// The complaints of nats-server about the configuration in a folder; `None` when it is valid.
fn complaint(folder: &Path) -> Option<String> {
    let server = find_nats().expect("nats-server is needed");
    let mut command = Command::new(server);
    command.arg("-t").arg("--config").arg(folder.join("nats.conf")).env_clear().env("POD_NAME", "nats-0");
    for line in read("k8s/overlays/dev/secrets/nats.env").lines() {
        let (name, value) = line.split_once('=').unwrap();
        command.env(name, value);
    }
    let run = command.output().unwrap();
    let printed = String::from_utf8_lossy(&[run.stdout, run.stderr].concat()).into_owned();
    (!run.status.success()).then_some(printed)
}

fn copy(from: &str, to: &Path) {
    fs::copy(path(from), to.join(Path::new(from).file_name().unwrap())).unwrap();
}

#[test]
fn a_server_takes_the_configuration() {
    let folder = tempfile::tempdir().unwrap();
    for file in ["nats.conf", "cluster.conf", "permissions.conf"] {
        copy(&format!("k8s/base/nats/{file}"), folder.path());
    }
    assert_eq!(complaint(folder.path()), None);
    fs::write(folder.path().join("cluster.conf"), "no_such_word: 1\n").unwrap();
    assert!(complaint(folder.path()).is_some(), "it would complain");
}

#[test]
fn a_server_takes_the_configuration_of_the_cluster() {
    let folder = tempfile::tempdir().unwrap();
    for file in ["base/nats/nats.conf", "base/nats/permissions.conf"] {
        copy(&format!("k8s/{file}"), folder.path());
    }
    let folder_path = folder.path().to_str().unwrap();
    let text = read("k8s/components/nats-cluster/cluster.conf");
    assert!(text.contains("/run/secrets/tls"));
    fs::write(folder.path().join("cluster.conf"), text.replace("/run/secrets/tls", folder_path)).unwrap();
    let certificate = Command::new("openssl")
        .args([
            "req",
            "-x509",
            "-newkey",
            "ec",
            "-pkeyopt",
            "ec_paramgen_curve:prime256v1",
            "-nodes",
            "-days",
            "1",
        ])
        .args(["-subj", "/CN=nats", "-out", "tls.crt", "-keyout", "tls.key"])
        .current_dir(folder.path())
        .output();
    match certificate {
        Err(error) => return say(&format!("skipped: there is no openssl to make a certificate ({error})")),
        Ok(run) => assert!(run.status.success(), "{run:?}"),
    }
    fs::copy(folder.path().join("tls.crt"), folder.path().join("ca.crt")).unwrap();
    assert_eq!(complaint(folder.path()), None);
}
