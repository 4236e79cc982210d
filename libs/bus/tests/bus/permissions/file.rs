//! The permissions as a file for compose and Kubernetes: the file in the repository is that which this test
//! generates, and a real server accepts it.

use std::{fs, process::Command};

use mesh_bus::permissions::{authorization, users};
use mesh_launcher::servers::find_nats;
use mesh_testbed::assert_generated;

const FILE: &str = "k8s/base/nats/permissions.conf";

const HEAD: &str = r#"# Who may do what on the bus. Generated from the contract by mesh update.
#
# Passwords are variables of nats-server, which reads them out of its environment as it reads the values in this file:
# without double quotes around it (NATS_EDGE_PASSWORD='"…"') 123456 is a number there, and 12e3 cannot be read at all.
"#;

/// `tx-relay` → `$NATS_TX_RELAY_PASSWORD`.
fn variable(user: &str) -> String {
    format!("$NATS_{}_PASSWORD", user.to_uppercase().replace('-', "_"))
}

fn generate() -> String {
    format!("{HEAD}{}", authorization("mesh", variable))
}

#[test]
fn the_generated_file_is_in_the_repository() {
    assert_generated(FILE, &generate());
}

#[test]
fn a_server_understands_it_with_quoted_passwords_and_not_without_passwords() {
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("nats-server.conf");
    fs::write(folder.path().join("permissions.conf"), generate()).unwrap();
    fs::write(&config, "listen: \"127.0.0.1:0\"\ninclude \"permissions.conf\"\n").unwrap();
    let check = |password: Option<&str>| {
        let mut command = Command::new(find_nats().unwrap());
        command.arg("-t").arg("-c").arg(&config);
        for user in users("mesh") {
            let name = variable(&user.name);
            match password {
                Some(password) => command.env(&name[1..], password),
                None => command.env_remove(&name[1..]),
            };
        }
        command.output().unwrap()
    };
    for password in ["\"12e3\"", "\"123456\"", "\"7f$x/+=\""] {
        let checked = check(Some(password));
        assert!(checked.status.success(), "{password}: {checked:?}");
    }
    assert!(!check(None).status.success());
}
