//! ExportNetworkHistory: every table for three ranges, compared with PostgreSQL's own COPY, which another
//! test compares with the recording's files.

use std::time::Instant;

use mesh_tests::{Call, Copier, Member, MeshClient, assert_read_by_programs, members, tables};

use crate::recorded_network::recording::{say, with_recording};

/// First and last block of the complete segments; block 5001 is not in one.
const SEGMENTS: [(u64, u64); 5] = [(1, 1000), (1001, 2000), (2001, 3000), (3001, 4000), (4001, 5000)];

#[test]
fn every_table_is_downloaded_as_postgresql_prints_it() {
    with_recording(async |recording| {
        let begun = Instant::now();
        MeshClient::new(&recording.mesh).until_sealed(&SEGMENTS).await;
        let copier = Copier::open(&recording.database).await;
        let version = recording.database.schema_version().await;
        let mut downloads: Vec<(Vec<u8>, Vec<Member>)> = Vec::new();
        let mut all_rows = 0;
        for (name, table) in tables() {
            for count in [1, 3, 5] {
                let to = SEGMENTS[count - 1].1;
                let path = format!("/api/v2/networkhistory/export?fromBlock=1&toBlock={to}&table={name}");
                let answer = recording.mesh.get(&path).await;
                assert_eq!(answer.status, 200, "{path}: {answer:?}");
                let messages = recording.rpc.download(&Call::from_path(&path).unwrap()).await.unwrap();
                let over_grpc: Vec<u8> = messages.iter().flat_map(|message| message.data.to_vec()).collect();
                assert!(over_grpc == answer.body, "{path} over gRPC: {} bytes", over_grpc.len());
                let expected = copier.spans(&table, &SEGMENTS[..count]).await;
                let members = members(&answer.body).await;
                assert_eq!(members.len(), 1, "{path}");
                let (member, text) = &members[0];
                assert_eq!(*member, format!("testnet-001-{table}-{version}-1-{to}.csv"));
                assert!(*text == expected, "{path}: {}", first_difference(text, &expected));
                let file = format!("attachment; filename=\"testnet-001-{table}-1-{to}.zip\"");
                assert_eq!(answer.header("content-disposition"), Some(&*file));
                let rows = std::str::from_utf8(text).unwrap().lines().count() - 1;
                assert_eq!(answer.header("x-total-rows"), Some(&*rows.to_string()), "{path}");
                all_rows += rows;
                downloads.push((answer.body.to_vec(), members));
            }
        }
        let zips: Vec<(&[u8], &[Member])> =
            downloads.iter().map(|(zip, members)| (&zip[..], &members[..])).collect();
        assert_read_by_programs("ExportNetworkHistory", &zips);
        let (files, ms) = (zips.len(), begun.elapsed().as_millis());
        say(&format!(
            "ExportNetworkHistory: {files} downloads equal over HTTP and gRPC, {all_rows} rows in them, in {ms} ms"
        ));
    });
}

/// The offset of the first difference of two texts, with a few bytes of both.
fn first_difference(one: &[u8], other: &[u8]) -> String {
    let at = one.iter().zip(other).take_while(|(one, other)| one == other).count();
    let shown = |text: &[u8]| String::from_utf8_lossy(&text[at..text.len().min(at + 100)]).into_owned();
    format!("at byte {at} of {} and {}: {:?}, not {:?}", one.len(), other.len(), shown(one), shown(other))
}
