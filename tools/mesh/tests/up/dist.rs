//! `mesh dist`: its archive runs where there is no cargo. `mesh down` stops what it started.

use std::{path::PathBuf, process::Command, time::Instant};

use mesh_testbed::http_client;

use super::installed::{Installed, runs};
use crate::command::{Outcome, mesh};

#[tokio::test]
async fn an_archive_runs_without_rust_until_mesh_down() {
    let out = tempfile::tempdir().unwrap();
    let packed = mesh(&["dist", "--out", out.path().to_str().unwrap()]).await;
    let archive = PathBuf::from(packed.done().trim_end());
    let name = archive.file_name().unwrap().to_str().unwrap();
    assert!(name.starts_with("tradewind-") && name.ends_with("-debug.tar.gz"), "{name}");
    let begun = Instant::now();
    let installed = Installed::unpacked(&archive);
    let folder = installed.folder.path();
    for (folder, sums) in [(folder, "SHA256SUMS".to_owned()), (out.path(), format!("{name}.sha256"))] {
        let checked =
            Command::new("sha256sum").args(["--check", "--quiet", &sums]).current_dir(folder).status();
        assert!(checked.unwrap().success(), "{sums}");
    }
    for file in ["README.md", "LICENSE-MIT", "LICENSE-APACHE", "licences/console.txt", "completions/_mesh"] {
        assert!(folder.join(file).is_file(), "{file}");
    }

    let up = installed.up().await;
    let (seconds, packed) = (begun.elapsed().as_secs_f64(), packed.error);
    println!("ready {seconds:.1} s after the start of unpacking; packed: {packed}");
    assert_eq!(up.status().await, 200);
    assert_eq!(http_client().get(format!("{}/guide/", up.http)).send().await.unwrap().status(), 200);
    let rows = installed.rows().await;
    assert_eq!(installed.order(&["down"]).await, "");
    assert!(!rows.is_empty() && rows.iter().all(|row| !runs(row.pid)), "{rows:?}");
    up.ended().await;
    Outcome::of(&mut installed.mesh(&["down"]), b"").await.fails(1, &["no mesh runs"]);
}
