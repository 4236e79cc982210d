//! The store over a real S3-compatible server, when `MESH_TEST_S3_URL` names a bucket of one (with the usual
//! `AWS_…` variables for endpoint and credentials); otherwise reports that it is skipped.

use std::{env, fs};

use mesh_history::{HistoryError, Layout, SegmentStore};

use crate::{Plan, file};

#[tokio::test]
async fn a_bucket_holds_segments_as_a_folder_does() -> Result<(), Box<dyn std::error::Error>> {
    let Ok(url) = env::var("MESH_TEST_S3_URL") else {
        eprintln!("skipped: MESH_TEST_S3_URL is not set");
        return Ok(());
    };
    let folder = tempfile::tempdir()?;
    let root = format!("{url}/{}", folder.path().file_name().unwrap_or_default().to_string_lossy());
    let store = SegmentStore::open(&root)?;
    assert!(store.list().await?.segments.is_empty());

    let mut names = Vec::new();
    // The second one is long enough to be staged.
    for (number, rows) in [(0, 1), (1, 500_000)] {
        let text = format!("id,note\n{}", "1,a note of some length\n".repeat(rows));
        let plan = Plan::new(1, number * 10 + 1, number * 10 + 10).with("trades", text);
        let (file, name, _) = file(folder.path(), &Plan { level: 0, ..plan }, None);
        let again = store.new_file(folder.path())?;
        fs::copy(file.path(), again.path())?;
        store.publish(&name, file).await?;
        let again = store.publish(&name, again).await;
        assert!(matches!(again, Err(HistoryError::Exists { .. })), "{again:?}");
        store.verify(&name).await?;
        names.push(name);
    }
    let layout = Layout::of(&store.list().await?, "trades", 1, 20)?;
    let mut whole = Vec::new();
    while (whole.len() as u64) < layout.length {
        whole.extend(store.read(&layout, whole.len() as u64, 4 << 20).await?);
    }
    assert_eq!(crc32c::crc32c(&whole), layout.crc32c);
    for name in names {
        store.delete(&name).await?;
        store.delete(&name).await?;
    }
    assert!(store.list().await?.segments.is_empty());
    let gone = store.read(&layout, 0, 1000).await;
    assert!(matches!(gone, Err(HistoryError::Gone { .. })), "{gone:?}");
    Ok(())
}
