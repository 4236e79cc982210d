//! Operation 4.6: rules L1 to L7. The headers are in the cases, the rows and the file of a party without any in
//! `services/export`.

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

use super::*;

/// Over HTTP/1.0 nothing but the end of the connection ends the file.
#[tokio::test]
async fn a_file_that_breaks_over_http_1_0_does_not_end_in_order() {
    let (database, mesh, _) = fixture::start(|setup| setup).await;
    let client = database.connect().await;
    let rows = "INSERT INTO ledger
        SELECT block_time + number * interval '1 us', '3', '1', number, 'tx', block_time, block_time, 1, 2, 'TRANSFER'
        FROM last_block, generate_series(1, 200000) AS number";
    assert_eq!(client.execute(rows, &[]).await.unwrap(), 200_000);
    let request = format!("GET {} HTTP/1.0\r\n\r\n", fixture::LEDGER);
    let mut stream = TcpStream::connect(mesh.url().trim_start_matches("http://")).await.unwrap();
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut received = Vec::new();
    assert!(stream.read_buf(&mut received).await.unwrap() > 0);
    client.batch_execute("ALTER TABLE ledger RENAME TO hidden").await.unwrap();
    let error = stream.read_to_end(&mut received).await.unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::ConnectionReset, "after {} bytes", received.len());
}

#[tokio::test]
async fn the_file_is_the_same_plain_packed_and_in_chunks() {
    let mesh_client = MeshClient::sealed_fixture().await;
    let plain = mesh_client.get(fixture::LEDGER).await;
    let packed = mesh_client.get_with_all(fixture::LEDGER, &[("accept-encoding", "gzip")]).await;
    assert_eq!(packed.header("content-encoding"), Some("gzip"));
    assert_eq!(mesh_tests::unpacked(&packed), plain.body);
    let form = ("accept", "application/x-ndjson");
    let answer = mesh_client.get_with_all(fixture::LEDGER, &[form]).await;
    let chunks = lines(&answer);
    assert_eq!(bytes(&chunks), plain.body);
    let packed = mesh_client.get_with_all(fixture::LEDGER, &[form, ("accept-encoding", "gzip")]).await;
    let named = ["content-encoding", "vary"].map(|name| packed.header(name));
    assert_eq!(named, [Some("gzip"), Some("Accept, Accept-Encoding")]);
    assert_eq!(mesh_tests::unpacked(&packed), answer.body);
    assert_eq!(chunks[0]["result"]["contentType"], "text/csv");
    let extension = &chunks[0]["result"]["extensions"][0];
    assert!(extension.is_object() && extension.get("totalRows").is_none(), "{extension}");
}
