//! Reads as of a block (contract section 11): which operations have it, how heights are written, how answers are
//! cached, and the wait for a block. What the answers say is in the cases and the oracles; bodies are in the cases.

use std::time::{Duration, Instant};

use mesh_testbed::Answer;
use mesh_tests::{
    Call, HEIGHT, MeshClient, Rpc, WITHDRAWAL, assert_problem, assert_refused, cases, fixture, rpc::problem,
};
use proto_msgs::Contract;
use tokio::time::{sleep, timeout};

use super::{etag, varies_by, with};
use crate::watch::write_block;

/// A read of the newest row of a table.
const LIMITS: &str = "/api/v2/network/limits";

/// Operation and path of each read that can be had as of a block, or of each other one.
fn reads(has_past: bool) -> impl Iterator<Item = (&'static str, String)> {
    let operations = Contract::get().operations();
    let is_wanted =
        move |name: &str| operations.iter().any(|row| row.name == name && row.has_past() == has_past);
    cases::answered().into_iter().filter(move |(name, _)| is_wanted(name))
}

#[tokio::test]
async fn b5_an_operation_without_a_past_refuses_the_height_of_a_block() {
    let mesh = MeshClient::sealed_fixture().await;
    let mut paths: Vec<String> = reads(false).map(|(_, path)| path).collect();
    paths.push("/api/v2/networkhistory/export?table=TABLE_BLOCKS&fromBlock=1&toBlock=3".to_owned());
    paths.push(format!("/watch?read={LIMITS}"));
    assert!(paths.len() > 5, "{paths:?}");
    let many: String = (0..12).map(|number| format!("x{number}=&")).collect();
    for path in paths {
        for more in ["atBlock=1", "at_block=x", "atBlock=", "foo=1&atBlock=1", &format!("{many}atBlock=1")] {
            for prefer in ["", "handling=strict"] {
                let answer = mesh.get_with_all(&with(&path, more), &[("prefer", prefer)]).await;
                let problem = assert_problem(&answer, 400, 3, 10_015);
                assert!(problem.message.contains("has no `atBlock`"), "{path} {more}: {problem:?}");
                assert_eq!(answer.header("x-ignored"), None, "it is refused, not ignored");
            }
        }
    }
}

#[tokio::test]
async fn b5_a_watch_has_no_past() {
    let mesh = MeshClient::fixture().await;
    for (name, path) in reads(true) {
        let path = with(&path, "atBlock=1");
        let answer = mesh.get_with(&path, "accept", "text/event-stream").await;
        assert!(assert_problem(&answer, 400, 3, 10_015).message.starts_with("a watch has no"), "{name}");
        let mut watch = form_urlencoded::Serializer::new("/watch?".to_owned());
        watch.append_pair("read", LIMITS).append_pair("read", &path);
        let problem = assert_problem(&mesh.get(&watch.finish()).await, 400, 3, 10_015);
        assert_eq!(problem.inner, "read 1: atBlock", "{name}");
    }
}

#[tokio::test]
async fn b3_a_height_is_a_positive_number_of_64_bits() {
    let mesh = MeshClient::fixture().await;
    let rpc = Rpc::connect(&fixture::mesh().await.mesh).await;
    for (name, path) in reads(true) {
        for wrong in ["0", "-1", "x", "1.0", "18446744073709551616"] {
            let answer = mesh.get(&with(&path, &format!("at_block={wrong}"))).await;
            let inner = assert_problem(&answer, 400, 3, 10_046).inner;
            assert_eq!(inner, format!("{wrong}: 1 to 18446744073709551615"), "{name}");
        }
        let call = Call::from_path(&with(&path, "atBlock=0")).unwrap();
        let inner = assert_refused(rpc.call(&call).await, 3, 10_046).inner;
        assert_eq!(inner, "0: 1 to 18446744073709551615", "{name}");
        assert_eq!(mesh.get(&with(&path, "atBlock=")).await.status, 200, "{name}: empty is absent");
    }
}

#[tokio::test]
async fn b4_a_final_answer_may_be_cached_under_a_strong_tag_of_each_form() {
    let mesh = MeshClient::sealed_fixture().await;
    for (name, path) in reads(true) {
        let path = with(&path, &format!("atBlock={HEIGHT}"));
        let pretty = format!("{path}&pretty");
        let mut tags = Vec::new();
        for path in [&path, &pretty] {
            for coding in ["identity", "gzip", "gzip, identity;q=0"] {
                let whole = mesh.get_with_all(path, &[("accept-encoding", coding)]).await;
                assert_eq!(whole.status, 200, "{path}: {whole:?}");
                assert_eq!(whole.header("cache-control"), Some("public, max-age=3600"), "{path}");
                assert_eq!(whole.header("x-block-height"), Some(HEIGHT), "{path}");
                let (tag, form) = (etag(&whole), whole.header("content-encoding").map(str::to_owned));
                assert!(tag.starts_with('"'), "{path}: {tag}");
                // Twice: also from the cache.
                for given in [tag.clone(), format!("W/{tag}")] {
                    let headers = [("accept-encoding", coding), ("if-none-match", given.as_str())];
                    let unchanged = mesh.get_with_all(path, &headers).await;
                    assert_eq!((unchanged.status, etag(&unchanged)), (304, tag.clone()), "{path} {coding}");
                    assert_eq!(unchanged.header("cache-control"), Some("public, max-age=3600"), "{path}");
                }
                let headers = [("accept-encoding", coding), ("if-match", tag.as_str())];
                assert_eq!(mesh.get_with_all(path, &headers).await.status, 200, "{path} {coding}");
                let headers = [("accept-encoding", coding), ("if-match", "\"other\"")];
                let refused = mesh.get_with_all(path, &headers).await;
                let caching = (refused.header("cache-control"), refused.header("etag"));
                assert_eq!((refused.status, caching), (412, (Some("no-store"), None)), "{path} {coding}");
                let head = mesh.send_with("HEAD", path, &[("accept-encoding", coding)]).await;
                assert_eq!(etag(&head), tag, "{path} {coding}");
                tags.push((path, form, tag));
            }
        }
        // Same tag if and only if same form.
        for (path, form, tag) in &tags {
            for (other_path, other_form, other) in &tags {
                assert_eq!(tag == other, (path, form) == (other_path, other_form), "{name}: {tags:?}");
            }
        }
    }
}

#[tokio::test]
async fn b4_a_final_answer_to_a_request_that_names_the_chain_is_immutable() {
    let mesh = MeshClient::sealed_fixture().await;
    for (name, path) in reads(true) {
        let plain = mesh.get(&with(&path, "atBlock=2")).await;
        let named = with(&path, "atBlock=2&chainId=testnet-0001");
        let answer = mesh.get(&named).await;
        assert_eq!((answer.status, &answer.body), (plain.status, &plain.body), "{name}");
        let caching = if answer.status == 200 { "public, max-age=31536000, immutable" } else { "no-store" };
        assert_eq!(answer.header("cache-control"), Some(caching), "{name}");
        if answer.status == 200 {
            let unchanged = mesh.get_with(&named, "if-none-match", &etag(&answer)).await;
            assert_eq!((unchanged.status, unchanged.header("cache-control")), (304, Some(caching)), "{name}");
        }
        let other = mesh.get(&with(&path, "atBlock=2&chainId=other")).await;
        assert_problem(&other, 400, 3, 10_048);
        let newest = mesh.get(&with(&path, "chainId=testnet-0001")).await;
        assert_eq!(newest.header("cache-control"), Some("no-cache"), "{name}: it is not as of a block");
        assert!(etag(&newest).starts_with("W/"), "{name}");
    }
}

#[tokio::test]
async fn b4_an_answer_above_the_sealed_height_is_revalidated() {
    let mesh = MeshClient::fixture().await;
    for (name, path) in reads(true) {
        for chain in ["", "&chainId=testnet-0001"] {
            let path = with(&path, &format!("atBlock={HEIGHT}{chain}"));
            let answer = mesh.get(&path).await;
            assert_eq!((answer.status, answer.header("cache-control")), (200, Some("no-cache")), "{name}");
            assert!(etag(&answer).starts_with("W/"), "{name}");
            assert_eq!(mesh.get_with(&path, "if-none-match", &etag(&answer)).await.status, 304, "{name}");
        }
    }
}

#[tokio::test]
async fn b3_a_read_above_the_head_waits_for_its_block_and_an_older_answer_hides_no_newer_one() {
    let (database, mesh, client) = fixture::start(|setup| setup.without(&["export"])).await;
    let writer = database.connect().await;
    let path = format!("/api/v2/withdrawal/{WITHDRAWAL}?atBlock=4");
    let refused = client.get(&path).await;
    assert!(assert_problem(&refused, 404, 5, 10_045).inner.contains(HEIGHT));
    assert_eq!(refused.header("preference-applied"), None);

    let (asked, preference) = (client.clone(), "handling=strict, wait=60");
    let waiting = {
        let path = path.clone();
        tokio::spawn(async move { asked.get_with(&path, "prefer", preference).await })
    };
    let rpc = Rpc::connect(&mesh).await;
    let call = Call::from_path(&path).unwrap();
    let request = call.with_metadata(&[("prefer", "wait=9")]);
    let called = tokio::spawn(async move { rpc.call_with(&call, request).await });
    sleep(Duration::from_millis(300)).await;
    assert!(!waiting.is_finished() && !called.is_finished());
    write_block(&writer, 4, Some("four")).await;
    let answer = timeout(Duration::from_secs(9), waiting).await.expect("the block is there").unwrap();
    assert_eq!((answer.status, answer.header("x-block-height")), (200, Some("4")), "{answer:?}");
    assert_eq!(answer.json()["withdrawal"]["ref"], "four", "it is read after the block");
    assert_eq!(answer.header("preference-applied"), Some("handling=strict, wait=10"));
    assert!(varies_by(&answer, "Prefer"));
    let reply = called.await.unwrap().unwrap();
    assert_eq!(reply.metadata().get("preference-applied").unwrap(), "wait=9");

    let there = client.get_with(&path, "prefer", "wait=5").await;
    assert_eq!((there.status, there.header("preference-applied")), (200, None), "it has not waited");

    let is_newest = |answer: &Answer| answer.header("x-block-height") == Some("4");
    client.await_answer("GET", LIMITS, &[], is_newest).await;
    for height in ["3", "4", "3"] {
        let past = client.get(&with(LIMITS, &format!("atBlock={height}"))).await;
        assert_eq!((past.status, past.header("x-block-height")), (200, Some(height)));
        assert!(is_newest(&client.get(LIMITS).await));
    }
}

#[tokio::test]
async fn b3_a_wait_ends_after_the_preferred_time() {
    let mesh = MeshClient::fixture().await;
    let path = with(LIMITS, "atBlock=99");
    let began = Instant::now();
    let late = mesh.get_with(&path, "prefer", "wait=1").await;
    assert_problem(&late, 404, 5, 10_045);
    assert_eq!(late.header("preference-applied"), Some("wait=1"));
    assert!((Duration::from_secs(1)..Duration::from_secs(9)).contains(&began.elapsed()), "{began:?}");
    let began = Instant::now();
    for prefer in ["wait=x", "wait=0", "wait", "respond-async"] {
        let answer = mesh.get_with(&path, "prefer", prefer).await;
        assert_problem(&answer, 404, 5, 10_045);
        assert_eq!(answer.header("preference-applied"), None, "{prefer}");
    }
    let wrong = mesh.get_with(&with(LIMITS, "atBlock=99&chainId=another"), "prefer", "wait=9").await;
    assert_problem(&wrong, 400, 3, 10_048);
    assert_eq!(wrong.header("preference-applied"), None, "it is refused at once");
    let newest = mesh.get_with(LIMITS, "prefer", "wait=9").await;
    assert_eq!((newest.status, newest.header("preference-applied")), (200, None));
    assert!(began.elapsed() < Duration::from_secs(9), "{:?}", began.elapsed());
    let rpc = Rpc::connect(&fixture::mesh().await.mesh).await;
    let call = Call::from_path(&path).unwrap();
    let request = call.with_metadata(&[("prefer", "wait=1")]);
    let status = rpc.call_with(&call, request).await.unwrap_err();
    assert_eq!(problem(&status).unwrap().number, 10_045);
    assert_eq!(status.metadata().get("preference-applied").unwrap(), "wait=1");
}
