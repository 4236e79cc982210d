//! Compression: J15.

use std::io::Read;

use flate2::read::GzDecoder;
use mesh_testbed::Answer;
use mesh_tests::{cases, client::MeshClient, fixture};
use reqwest::Method;

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
        (&["gzip"][..], Some("gzip")),
        (&["GZIP"], Some("gzip")),
        (&["*"], Some("gzip")),
        (&["br;q=1, gzip;q=0.1"], Some("gzip")),
        (&["gzip ; Q = 0.001"], Some("gzip")),
        (&["br", "gzip"], Some("gzip")),
        (&["*;q=0, gzip"], Some("gzip")),
        (&["identity;q=0, *"], Some("gzip")),
        (&["gzip;x=\"a, b;q=0\""], Some("gzip")),
        (&["gzip;q=0"], None),
        (&["gzip;Q=0, identity"], None),
        (&["gzip; q=0.000"], None),
        (&["gzip ;\tQ=0.0"], None),
        (&["gzip;x=1;q=0"], None),
        (&["*;q=0"], None),
        (&["*;Q=0", "br"], None),
        (&["*, gzip;q=0"], None),
        (&["*", "GZip;Q=0"], None),
        (&["identity"], None),
        (&["identity;q=0"], None),
        (&["br"], None),
        (&[""], None),
    ] {
        for path in ["/accounts", "/openapi.json"] {
            let request = mesh.request(Method::GET, path);
            let lines = accepted.iter();
            let request = lines.fold(request, |request, line| request.header("accept-encoding", *line));
            let answer = Answer::to(request).await;
            assert_eq!(answer.status, 200, "{accepted:?}");
            assert_eq!(answer.header("content-encoding"), expected, "{path}, {accepted:?}");
        }
    }
}

#[tokio::test]
async fn j15_a_client_that_refuses_the_plain_form_gets_gzip_of_short_answers_and_errors_too() {
    let mesh = MeshClient::fixture().await;
    let withdrawal = format!("/api/v2/withdrawal/{}", fixture::WITHDRAWAL);
    for path in [&withdrawal, "/health", "/limits", "/console/now", "/nowhere", "/accounts?party=x"] {
        let plain = mesh.get(path).await;
        // The second one may come from the cache.
        for _ in 0..2 {
            for accepted in ["gzip, identity;q=0", "gzip;q=0.1, *;Q=0"] {
                let packed = mesh.get_with(path, "accept-encoding", accepted).await;
                assert_eq!(packed.status, plain.status, "{path}");
                assert_eq!(packed.header("content-encoding"), Some("gzip"), "{path}: {packed:?}");
                assert_eq!(packed.header("etag"), plain.header("etag"), "{path}");
                let length = packed.body.len().to_string();
                assert_eq!(packed.header("content-length"), Some(length.as_str()), "{path}");
                if path != "/console/now" {
                    assert_eq!(unpacked(&packed.body), plain.body, "{path}");
                }
                let head = mesh.request(Method::HEAD, path).header("accept-encoding", accepted);
                let head = Answer::to(head).await;
                assert_eq!((head.body.len(), head.header("content-encoding")), (0, Some("gzip")), "{path}");
            }
            let neither = mesh.get_with(path, "accept-encoding", "*;q=0").await;
            assert_eq!(neither.header("content-encoding"), None, "it is no reason to refuse: {path}");
        }
    }
}

#[tokio::test]
async fn j15_errors_have_a_vary_header() {
    let mesh = MeshClient::fixture().await;
    for path in ["/nowhere", "/accounts?party=x", "/transaction"] {
        assert_eq!(mesh.get(path).await.header("vary"), Some("Accept-Encoding"), "{path}");
    }
}
