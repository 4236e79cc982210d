//! The store over a real S3-compatible server, when `MESH_TEST_S3_URL` names a bucket of one (with the usual
//! `AWS_…` variables for endpoint and credentials); otherwise reports that it is skipped.

use std::{env, fs, io::BufWriter};

use mesh_history::{Deadlines, HistoryError, Layout, SegmentStore, Span, StagedMember, assemble};

#[tokio::test]
async fn a_bucket_holds_segments_as_a_folder_does() -> Result<(), Box<dyn std::error::Error>> {
    let Ok(url) = env::var("MESH_TEST_S3_URL") else {
        eprintln!("skipped: MESH_TEST_S3_URL is not set");
        return Ok(());
    };
    let folder = tempfile::tempdir()?;
    let root = format!("{url}/{}", folder.path().file_name().unwrap_or_default().to_string_lossy());
    let store = SegmentStore::open(&root, Deadlines::default())?;
    assert!(store.list().await?.segments.is_empty());

    let mut names = Vec::new();
    // The second one is long enough to be staged.
    for (number, rows) in [(0, 1), (1, 500_000)] {
        let mut member = StagedMember::new("history/trades.csv", 0, folder.path())?;
        member.write(b"id,note\n")?;
        member.write("1,a note of some length\n".repeat(rows).as_bytes())?;
        let span = Span {
            chain_id: "mesh".to_owned(),
            database_version: 1,
            height_from: number * 10 + 1,
            height_to: number * 10 + 10,
            block_time_from: 1_700_000_000_000_000_000,
            block_time_to: 1_700_000_010_000_000_000,
            previous_id: None,
        };
        let (file, again) = (store.new_file(folder.path())?, store.new_file(folder.path())?);
        let (name, _) = assemble(&span, vec![member.finish()?], &mut BufWriter::new(file.as_file()))?;
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
