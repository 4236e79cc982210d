//! The bus server's configuration, checked by a real nats-server.

use std::{fs, path::Path, process::Command};

use mesh_launcher::servers::find_nats;
use mesh_testbed::certify;

use crate::manifests::{path, read};

/// The complaints of nats-server about the configuration with this text as `cluster.conf`; `None` when it is
/// valid.
fn complaint(folder: &Path, cluster: &str) -> Option<String> {
    for file in ["nats.conf", "permissions.conf"] {
        fs::copy(path("k8s/base/nats").join(file), folder.join(file)).unwrap();
    }
    fs::write(folder.join("cluster.conf"), cluster).unwrap();
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

#[test]
fn a_server_takes_the_configuration_alone_and_of_the_cluster() {
    let folder = tempfile::tempdir().unwrap();
    assert_eq!(complaint(folder.path(), &read("k8s/base/nats/cluster.conf")), None);
    assert!(complaint(folder.path(), "no_such_word: 1\n").is_some(), "it would complain");
    let tls = certify(folder.path());
    for (file, name) in [(tls.certificate, "tls.crt"), (tls.key, "tls.key"), (tls.ca, "ca.crt")] {
        fs::rename(file, folder.path().join(name)).unwrap();
    }
    let cluster = read("k8s/components/nats-cluster/cluster.conf");
    assert!(cluster.contains("/run/secrets/tls"));
    let mut cluster = cluster.replace("/run/secrets/tls", folder.path().to_str().unwrap());
    // Known from NATS 2.11 on; Debian 12 has 2.9.
    let ping = "  ping_interval: \"1s\"\n";
    assert!(cluster.contains(ping));
    if complaint(folder.path(), &cluster).is_some_and(|text| text.contains("ping_interval")) {
        cluster = cluster.replace(ping, "");
    }
    assert_eq!(complaint(folder.path(), &cluster), None);
}
