//! Compression: J15.

use std::io::Read;

use flate2::read::GzDecoder;
use mesh_tests::{cases, client::MeshClient};

/// Answers above this size are compressed, bytes.
const GZIP_ABOVE: usize = 1024;

fn unpacked(body: &[u8]) -> Vec<u8> {
    let mut plain = Vec::new();
    GzDecoder::new(body).read_to_end(&mut plain).expect("a whole gzip stream");
    plain
}

#[tokio::test]
async fn j15_answers_above_one_kibibyte_are_compressed_when_the_client_takes_it() {
    let mesh = MeshClient::fixture().await;
    let mut compressed = 0;
    for (_, path) in cases::answered() {
        for pretty in ["", "pretty"] {
            let path = format!("{path}{}{pretty}", if path.contains('?') { '&' } else { '?' });
            let plain = mesh.get(&path).await;
            assert_eq!(plain.header("content-encoding"), None, "{path}");
            let packed = mesh.get_with(&path, "accept-encoding", "gzip, deflate, br").await;
            for answer in [&plain, &packed] {
                assert_eq!(answer.header("vary"), Some("Accept-Encoding"), "{path}");
                assert_eq!(
                    answer.header("content-length"),
                    Some(answer.body.len().to_string().as_str()),
                    "{path}"
                );
            }
            if plain.body.len() > GZIP_ABOVE {
                assert_eq!(packed.header("content-encoding"), Some("gzip"), "{path}");
                assert_eq!(unpacked(&packed.body), plain.body, "{path}");
                compressed += 1;
            } else {
                assert_eq!(packed.header("content-encoding"), None, "{path}");
                assert_eq!(packed.body, plain.body, "{path}");
            }
        }
    }
    assert!(compressed > 3, "the fixture has long answers");
}

#[tokio::test]
async fn j15_the_accept_encoding_header_decides_on_gzip() {
    let mesh = MeshClient::fixture().await;
    for (accepted, expected) in [
        ("gzip", Some("gzip")),
        ("GZIP", Some("gzip")),
        ("*", Some("gzip")),
        ("br;q=1, gzip;q=0.1", Some("gzip")),
        ("gzip;q=0", None),
        ("gzip; q=0.000", None),
        ("*;q=0", None),
        ("*, gzip;q=0", None),
        ("identity", None),
        ("br", None),
        ("", None),
    ] {
        let answer = mesh.get_with("/accounts", "accept-encoding", accepted).await;
        assert_eq!(answer.header("content-encoding"), expected, "{accepted}");
    }
}

#[tokio::test]
async fn j15_errors_have_a_vary_header() {
    let mesh = MeshClient::fixture().await;
    for path in ["/nowhere", "/accounts?party=x", "/transaction"] {
        assert_eq!(mesh.get(path).await.header("vary"), Some("Accept-Encoding"), "{path}");
    }
}
