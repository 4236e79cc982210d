//! Opening and verifying a segment file do not panic or allocate much memory on any bytes. Half of the inputs
//! are a valid segment with a few changed bytes and correct lengths.

#![no_main]

use std::{fs, io::Write, sync::OnceLock};

use libfuzzer_sys::fuzz_target;
use mesh_history::{SegmentName, Span, StagedMember, assemble, verify_file};

fuzz_target!(|input: &[u8]| {
    let (name, good) = good();
    let Some((kind, changes)) = input.split_first() else { return };
    let mut bytes = if kind % 2 == 0 { changes.to_vec() } else { good.clone() };
    if kind % 2 == 1 {
        for change in changes.chunks_exact(3) {
            let at = usize::from(u16::from_le_bytes([change[0], change[1]])) % bytes.len();
            bytes[at] ^= change[2];
        }
    }
    let mut file = tempfile::NamedTempFile::new_in("/dev/shm").expect("a file in memory");
    file.write_all(&bytes).expect("room in memory");
    let _ = verify_file(name, file.path());
});

fn good() -> &'static (SegmentName, Vec<u8>) {
    static GOOD: OnceLock<(SegmentName, Vec<u8>)> = OnceLock::new();
    GOOD.get_or_init(|| {
        let folder = tempfile::tempdir().expect("a folder");
        let mut members = Vec::new();
        for (name, text) in [
            ("history/orders.csv", "id,note\n"),
            ("history/trades.csv", "id,note\n1,\"a\"\"\r\nb\"\n2,\n"),
            ("currentstate/accounts.csv", "id\n\"\"\n"),
        ] {
            let mut member = StagedMember::new(name, 3, folder.path()).expect("a file");
            member.write(text.as_bytes()).expect("a table");
            members.push(member.finish().expect("a table"));
        }
        let span = Span {
            chain_id: "mesh".to_owned(),
            database_version: 1,
            height_from: 1,
            height_to: 1000,
            block_time_from: 1_700_000_000_000_000_000,
            block_time_to: 1_700_001_000_000_000_000,
            previous_id: None,
        };
        let mut bytes = Vec::new();
        let (name, _) = assemble(&span, members, &mut bytes).expect("a segment");
        let path = folder.path().join("good");
        fs::write(&path, &bytes).expect("a file");
        verify_file(&name, &path).expect("a good segment");
        (name, bytes)
    })
}
