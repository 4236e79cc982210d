//! Compression: J15. How `Accept-Encoding` is read is in the unit tests of `mesh_chassis::accept`.

use mesh_tests::{MeshClient, cases, fixture, unpacked};

/// Answers above this size are compressed, bytes.
const GZIP_ABOVE: usize = 1024;

#[tokio::test]
async fn j15_answers_above_one_kibibyte_are_compressed_when_the_client_takes_it() {
    let mesh = MeshClient::fixture().await;
    let mut compressed = 0;
    let mut paths: Vec<String> = cases::answered().into_iter().map(|(_, path)| path).collect();
    paths.push("/openapi.json".to_owned());
    for path in paths {
        let plain = mesh.get(&path).await;
        assert_eq!(plain.header("content-encoding"), None, "{path}");
        let refused = mesh.get_with(&path, "accept-encoding", "*, gzip;q=0").await;
        assert_eq!((refused.header("content-encoding"), &refused.body), (None, &plain.body), "{path}");
        let packed = mesh.get_with(&path, "accept-encoding", "gzip, deflate, br").await;
        for answer in [&plain, &packed] {
            assert_eq!(answer.header("vary"), Some("Accept-Encoding"), "{path}");
            let length = answer.body.len().to_string();
            assert_eq!(answer.header("content-length"), Some(length.as_str()), "{path}");
        }
        if plain.body.len() > GZIP_ABOVE {
            assert_eq!(packed.header("content-encoding"), Some("gzip"), "{path}");
            assert_eq!(unpacked(&packed), plain.body, "{path}");
            compressed += 1;
        } else {
            assert_eq!((packed.header("content-encoding"), &packed.body), (None, &plain.body), "{path}");
        }
    }
    assert!(compressed > 3, "the fixture has long answers");
}

#[tokio::test]
async fn j15_a_client_that_refuses_the_plain_form_gets_gzip_of_short_answers_and_errors_too() {
    let mesh = MeshClient::fixture().await;
    let withdrawal = format!("/api/v2/withdrawal/{}", fixture::WITHDRAWAL);
    for path in [&withdrawal, "/health", "/limits", "/console/now", "/nowhere", "/accounts?party=x"] {
        let plain = mesh.get(path).await;
        let is_page = path == "/console/now";
        assert!(is_page || plain.header("vary") == Some("Accept-Encoding"), "{path}");
        // The second one may come from the cache.
        for _ in 0..2 {
            let packed = mesh.get_with(path, "accept-encoding", "gzip, identity;q=0").await;
            assert_eq!(packed.status, plain.status, "{path}");
            assert_eq!(packed.header("content-encoding"), Some("gzip"), "{path}: {packed:?}");
            assert_eq!(packed.header("etag"), plain.header("etag"), "{path}");
            let length = packed.body.len().to_string();
            assert_eq!(packed.header("content-length"), Some(length.as_str()), "{path}");
            assert!(is_page || unpacked(&packed) == plain.body, "{path}");
            let head = mesh.send_with("HEAD", path, &[("accept-encoding", "gzip, *;q=0")]).await;
            assert_eq!((head.body.len(), head.header("content-encoding")), (0, Some("gzip")), "{path}");
            let neither = mesh.get_with(path, "accept-encoding", "*;q=0").await;
            assert_eq!(neither.header("content-encoding"), None, "it is no reason to refuse: {path}");
        }
    }
}
