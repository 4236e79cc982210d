//! Operations 4.1 and 4.15: rules X1 to X11.

use mesh_tests::{Rpc, TABLE_NUMBERS, assert_has, assert_problem, members};
use serde_json::json;

use super::*;

const DELEGATIONS: &str = "/api/v2/networkhistory/export?fromBlock=1&toBlock=3&table=TABLE_DELEGATIONS";

#[tokio::test]
async fn segments_are_listed_newest_first_and_chained() {
    let answer = MeshClient::sealed_fixture().await.get(SEGMENTS).await;
    let json = answer.json();
    let segments = json["segments"].as_array().unwrap();
    let heights: Vec<_> = segments.iter().map(|segment| segment["fromHeight"].as_str().unwrap()).collect();
    assert_eq!(heights, ["3", "2", "1"]);
    for (newer, older) in segments.iter().zip(&segments[1..]) {
        assert_eq!(newer["previousHistorySegmentId"], older["historySegmentId"]);
    }
    assert_eq!(segments[2]["previousHistorySegmentId"], "");
    assert_eq!(segments[0]["historySegmentId"].as_str().unwrap().len(), 64);
    let version = fixture::sealed_mesh().await.database.schema_version().await.to_string();
    for segment in segments {
        assert_has(segment, &json!({"chainId": "testnet-0001", "databaseVersion": version}));
        assert_eq!(segment["toHeight"], segment["fromHeight"]);
    }
}

#[tokio::test]
async fn a_download_holds_what_postgresql_prints_and_says_so_in_advance() {
    let mesh_client = MeshClient::sealed_fixture().await;
    let answer = mesh_client.get(DELEGATIONS).await;
    assert_eq!(answer.status, 200, "{answer:?}");
    let chain = mesh_client.get("/blockchain/height").await.json()["chainId"].as_str().unwrap().to_owned();
    let members = members(&answer.body).await;
    let expected = copy("delegations", &[(1, 3)]).await;
    assert_eq!(members.len(), 1);
    let version = fixture::sealed_mesh().await.database.schema_version().await;
    assert_eq!(members[0].0, format!("{chain}-delegations-{version}-1-3.csv"));
    assert_eq!(String::from_utf8_lossy(&members[0].1), String::from_utf8_lossy(&expected));
    let header =
        |name: &str| answer.header(name).unwrap_or_else(|| panic!("no {name}: {answer:?}")).to_owned();
    assert_eq!(header("content-type"), "application/zip");
    let file = format!("attachment; filename=\"{chain}-delegations-1-3.zip\"");
    assert_eq!(header("content-disposition"), file);
    assert_eq!(header("content-length"), answer.body.len().to_string());
    assert_eq!(header("accept-ranges"), "bytes");
    assert_eq!(header("x-total-rows"), "4");
    assert_eq!(header("vary"), "Accept");
    assert_eq!(header("cache-control"), "public, max-age=3600", "another network may be at this URL one day");
    assert!(header("etag").starts_with('"'), "it is strong");
    assert_eq!(header("repr-digest"), digest(&answer.body));
    assert!(answer.header("content-encoding").is_none(), "a ZIP is not packed again");
}

/// `Repr-Digest` of a file.
pub(crate) fn digest(bytes: &[u8]) -> String {
    use base64::{Engine as _, engine::general_purpose::STANDARD};
    format!("crc32c=:{}:", STANDARD.encode(crc32c::crc32c(bytes).to_be_bytes()))
}

#[tokio::test]
async fn every_table_can_be_downloaded_by_its_number() {
    let mesh_client = MeshClient::sealed_fixture().await;
    let rpc = Rpc::connect(&fixture::sealed_mesh().await.mesh).await;
    for (number, table) in TABLE_NUMBERS {
        let path = format!("/api/v2/networkhistory/export?fromBlock=1&toBlock=3&table={number}");
        let answer = mesh_client.get(&path).await;
        assert_eq!(answer.status, 200, "{answer:?}");
        let file = format!("attachment; filename=\"testnet-0001-{table}-1-3.zip\"");
        assert_eq!(answer.header("content-disposition"), Some(&*file), "table={number}");
        let over_grpc = rpc.download_file(&path).await;
        assert!(over_grpc == answer.body, "table={number} over gRPC: {} bytes", over_grpc.len());
        let members = members(&answer.body).await;
        let text = &members[0].1;
        assert!(members.len() == 1 && text.ends_with(b"\n"), "{table}");
        let rows = csv::Reader::from_reader(text.as_slice()).records().map(Result::unwrap).count();
        assert_eq!(answer.header("x-total-rows"), Some(&*rows.to_string()), "{table}");
    }
}

/// Many more ranges are in `ranges`.
#[tokio::test]
async fn a_range_is_given_under_its_conditions_alone() {
    let mesh_client = MeshClient::sealed_fixture().await;
    let whole = mesh_client.get(DELEGATIONS).await;
    let (length, etag): (usize, String) = (whole.body.len(), whole.header("etag").unwrap().to_owned());
    for (headers, status) in [
        ([("range", "bytes=0-9"), ("if-range", "\"other\"")], 200),
        ([("range", "bytes=0-9"), ("if-range", "Tue, 20 Jun 2023 10:00:00 GMT")], 200),
        ([("range", "bytes=0-1"), ("range", "bytes=5-9")], 200),
        ([("if-none-match", &etag), ("accept", "*/*")], 304),
        ([("if-none-match", &etag), ("range", "bytes=0-9")], 304),
    ] {
        let answer = mesh_client.get_with_all(DELEGATIONS, &headers).await;
        assert_eq!(answer.status, status, "{headers:?}: {answer:?}");
        assert_eq!(answer.body.len(), if status == 200 { length } else { 0 });
    }
    for other in [
        "", "bytes", "bytes=", "bytes=-", "bytes=a-", "bytes=1-2-3", "bytes=9-5", "bytes=+1-2", "rows=0-9",
        "bytes=0-1,5-9",
    ] {
        let answer = mesh_client.get_with(DELEGATIONS, "range", other).await;
        assert_eq!((answer.status, answer.body.len()), (200, length), "{other}");
    }
    for (range, part) in [
        ("bytes=0-0", Some(0..1)),
        ("Bytes = 5-9 , ", Some(5..10)),
        ("bytes=0-99999999999999999999", Some(0..length)),
        (&format!("bytes={}-", length - 1), Some(length - 1..length)),
        (&format!("bytes=-{}", length + 1), Some(0..length)),
        (&format!("bytes={length}-"), None),
        (&format!("bytes={length}-{}", length + 2), None),
        ("bytes=-0", None),
    ] {
        let answer = mesh_client.get_with(DELEGATIONS, "range", range).await;
        let Some(part) = part else {
            let header = answer.header("content-range");
            assert_eq!((answer.status, header), (416, Some(&*format!("bytes */{length}"))), "{range}");
            assert_eq!(answer.header("vary"), Some("Accept-Encoding, Accept"), "{range}");
            let pretty = mesh_client.get_with(&format!("{DELEGATIONS}&pretty"), "range", range).await;
            assert!(pretty.text().starts_with("{\n"), "{range}");
            continue;
        };
        assert_eq!((answer.status, answer.body), (206, whole.body.slice(part)), "{range}");
    }
    let head = mesh_client.send("HEAD", DELEGATIONS).await;
    assert_eq!((head.status, head.body.len()), (200, 0));
    for name in
        ["content-length", "etag", "repr-digest", "x-total-rows", "content-disposition", "accept-ranges"]
    {
        assert_eq!(head.header(name), whole.header(name), "{name}");
    }
}

#[tokio::test]
async fn a_download_whose_request_names_the_chain_is_immutable() {
    const IMMUTABLE: &str = "public, max-age=31536000, immutable";
    let mesh_client = MeshClient::sealed_fixture().await;
    let plain = mesh_client.get(DELEGATIONS).await;
    let etag = plain.header("etag").unwrap();
    for (chain, cache_control) in [
        ("&chainId=testnet-0001", IMMUTABLE),
        ("&chain_id=testnet-0001", IMMUTABLE),
        ("&chainId=", "public, max-age=3600"),
    ] {
        let path = format!("{DELEGATIONS}{chain}");
        for (name, value, status) in
            [("accept", "*/*", 200), ("range", "bytes=0-9", 206), ("if-none-match", etag, 304)]
        {
            let answer = mesh_client.get_with(&path, name, value).await;
            assert_eq!(answer.status, status, "{path} {name}: {answer:?}");
            assert_eq!(answer.header("cache-control"), Some(cache_control), "{path} {name}");
            assert_eq!(answer.header("etag"), Some(etag), "the same file");
        }
        let head = mesh_client.send("HEAD", &path).await;
        assert_eq!((head.status, head.header("cache-control")), (200, Some(cache_control)), "{path}");
        let chunks = mesh_client.get_with_all(&path, &[("accept", "application/x-ndjson")]).await;
        assert_eq!((chunks.status, chunks.header("cache-control")), (200, Some("no-store")));
    }
}

#[tokio::test]
async fn if_match_gives_the_file_only_while_it_is_the_one_that_is_meant() {
    let mesh_client = MeshClient::sealed_fixture().await;
    let whole = mesh_client.get(DELEGATIONS).await;
    let etag = whole.header("etag").unwrap();
    let beyond = format!("bytes={}-", whole.body.len());
    let weak = format!("W/{etag}");
    let several = format!("\"a\",{etag} , \"b\"");
    for (headers, status) in [
        (&[("if-match", etag)][..], 200),
        (&[("if-match", "*")], 200),
        (&[("if-match", &*several)], 200),
        (&[("if-match", etag), ("range", "bytes=0-9")], 206),
        (&[("if-match", etag), ("if-none-match", etag)], 304),
        (&[("if-match", etag), ("range", &*beyond)], 416),
        (&[("if-match", "\"other\"")], 412),
        (&[("if-match", &*weak)], 412),
        (&[("if-match", "")], 412),
        (&[("if-match", etag.trim_matches('"'))], 412),
        // It comes before the other conditions and the range (RFC 9110, 13.2.2).
        (&[("if-match", "\"other\""), ("if-none-match", etag)], 412),
        (&[("if-match", "\"other\""), ("range", "bytes=0-9")], 412),
        (&[("if-match", "\"other\""), ("range", &*beyond)], 412),
        // The chunk form has no tag.
        (&[("if-match", etag), ("accept", "application/x-ndjson")], 412),
        (&[("if-match", "*"), ("accept", "application/x-ndjson")], 200),
        // There is no Last-Modified to compare with (13.1.4).
        (&[("if-unmodified-since", "Tue, 20 Jun 2000 10:00:00 GMT")], 200),
    ] {
        let answer = mesh_client.get_with_all(DELEGATIONS, headers).await;
        assert_eq!(answer.status, status, "{headers:?}: {answer:?}");
        if status == 412 {
            assert_problem(&answer, 412, 9, 10_000);
        }
    }
    let refused = mesh_client.get_with_all(DELEGATIONS, &[("if-match", "\"other\"")]).await;
    assert_eq!(assert_problem(&refused, 412, 9, 10_000).inner, format!("the tag is {etag}"));
    let missing = DELEGATIONS.replace("fromBlock=1", "fromBlock=9");
    let other = [("if-match", "\"other\"")];
    assert_eq!(mesh_client.get_with_all(&missing, &other).await.status, 400, "no error is hidden");
    assert_eq!(mesh_client.send_with("HEAD", DELEGATIONS, &other).await.status, 412);
}

/// That chunks after the first have an empty list of extensions is tested in `damage`, with a longer file.
#[tokio::test]
async fn the_chunk_form_holds_the_same_bytes() {
    let mesh_client = MeshClient::sealed_fixture().await;
    let whole = mesh_client.get(DELEGATIONS).await;
    let answer = mesh_client.get_with_all(DELEGATIONS, &[("accept", "application/x-ndjson")]).await;
    assert!(answer.text().ends_with('\n'), "{answer:?}");
    let lines = lines(&answer);
    assert_eq!(bytes(&lines), whole.body);
    let extension = &lines[0]["result"]["extensions"][0];
    assert_eq!(extension["@type"], "type.googleapis.com/api.v2.ExportInfo");
    assert_eq!(extension["fileName"], "testnet-0001-delegations-1-3.zip");
    assert_eq!(extension["table"], "TABLE_DELEGATIONS");
    assert_eq!(extension["totalBytes"], whole.body.len().to_string());
    for line in &lines {
        assert_eq!(line["result"]["contentType"], "application/zip");
    }
}
