//! TLS to a real server, by the parameters of the address.

use std::{
    fs::{self, Permissions},
    os::unix::fs::{MetadataExt, PermissionsExt, chown},
    path::Path,
    time::Duration,
};

use mesh_launcher::{
    process::Process,
    servers::{Durability, Postgres, find_postgres, start},
};
use mesh_loader::migrate::migrate;
use mesh_store::Store;
use mesh_testbed::{certify, enterable_folder};
use tokio::time::timeout;

use crate::reading::config;

const READY_WITHIN: Duration = Duration::from_secs(60);
const IS_SECRET: &str = "SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()";

/// A server that accepts connections with and without TLS.
async fn server(home: &Path) -> (Postgres, Process) {
    let (folder, log) = (home.join("postgres"), home.join("postgres.log"));
    let server =
        Postgres::prepare(&find_postgres().unwrap(), &folder, &log, Durability::Throwaway).await.unwrap();
    let tls = certify(&home.join("tls"));
    let data = fs::canonicalize(&folder).unwrap().join("data");
    let owner = fs::metadata(&data).unwrap();
    let put = |name: &str, text: Vec<u8>| {
        let file = data.join(name);
        fs::write(&file, text).unwrap();
        fs::set_permissions(&file, Permissions::from_mode(0o600)).unwrap();
        chown(&file, Some(owner.uid()), Some(owner.gid())).unwrap();
    };
    put("server.crt", fs::read(tls.certificate).unwrap());
    put("server.key", fs::read(tls.key).unwrap());
    put("local.conf", b"ssl = on\n".to_vec());
    let process = start(&server.spec(), || server.ready(READY_WITHIN)).await.unwrap();
    (server, process)
}

fn open(url: &str) -> Store {
    Store::open(&config(url, 1)).unwrap()
}

#[tokio::test]
async fn a_connection_with_tls_is_made_to_the_right_server_or_not_at_all() {
    let home = enterable_folder();
    let (server, process) = server(home.path()).await;
    let ca = |folder: &str| home.path().join(folder).join("ca.pem").display().to_string();
    let url = format!("{}?sslmode=verify-full&sslrootcert={}", server.url(), ca("tls"));
    migrate(&url).await.unwrap();
    let store = open(&url);
    timeout(READY_WITHIN, store.until_ready()).await.unwrap();
    assert!(store.point(IS_SECRET, &[], None).await.unwrap().get::<_, bool>(0));
    assert!(store.list("secret", IS_SECRET, &[], None).await.unwrap()[0].get::<_, bool>(0));
    let plain = open(&server.url());
    timeout(READY_WITHIN, plain.until_ready()).await.unwrap();
    assert!(!plain.point(IS_SECRET, &[], None).await.unwrap().get::<_, bool>(0));

    certify(&home.path().join("other"));
    let other = format!("{}?sslmode=require&sslrootcert={}", server.url(), ca("other"));
    let elsewhere = format!("{}&hostaddr=127.0.0.1", url.replace("127.0.0.1", "elsewhere.test"));
    for wrong in [other, elsewhere] {
        let refused = migrate(&wrong).await.unwrap_err();
        assert!(format!("{refused:?}").contains("InvalidCertificate"), "{wrong}: {refused:?}");
    }
    process.stop().await.unwrap();
}
