//! Deadlines, cancelled calls and stopping services.

use std::time::{Duration, Instant};

use mesh_tests::{Call, Rpc, TableLock, assert_refused, fixture, say};
use tonic::Request;

use crate::grpc::TIME_LIMIT;

/// The list that these tests make slow by a lock on its table.
const LIST: &str = "/api/v2/delegations";
const TABLE: &str = "delegations_current";

/// The list's call, and its request with a timeout in seconds.
fn list(timeout_s: u32) -> (Call, Request<bytes::Bytes>) {
    let called = Call::from_path(LIST).unwrap();
    let request = called.with_metadata(&[("grpc-timeout", format!("{timeout_s}S").as_str())]);
    (called, request)
}

#[test]
fn a_call_ends_at_its_deadline_and_so_does_its_query() {
    fixture::exclusively(async |database, mesh| {
        // The operation's own time is far longer than the call's.
        let rpc = Rpc::connect(mesh).await;
        let locked = TableLock::acquire(database, TABLE).await;
        let (called, request) = list(2);
        let began = Instant::now();
        let (answered, ()) =
            tokio::join!(rpc.call_with(&called, request), locked.await_queries("query", 1, TIME_LIMIT));
        let took = began.elapsed();
        assert!((Duration::from_millis(1900)..Duration::from_secs(30)).contains(&took), "after {took:?}");
        assert_refused(answered, 4, 10_000);
        locked.await_queries("query", 0, TIME_LIMIT).await;
        locked.release().await;
        rpc.call(&called).await.expect("it is answered again");
    });
}

#[test]
fn a_call_that_shares_a_request_with_a_shorter_deadline_is_still_answered() {
    fixture::exclusively(async |database, mesh| {
        let rpc = Rpc::connect(mesh).await;
        rpc.call(&Call::from_path(LIST).unwrap())
            .await
            .expect("an answer with a height: equal requests are shared");
        let locked = TableLock::acquire(database, TABLE).await;
        let call = |timeout_s| {
            let (rpc, (called, request)) = (rpc.clone(), list(timeout_s));
            tokio::spawn(async move { rpc.call_with(&called, request).await })
        };
        let hasty = call(2);
        locked.await_queries("query", 1, TIME_LIMIT).await;
        let patient = [call(20), call(20)];
        assert!(hasty.await.unwrap().is_err(), "its time is over");
        locked.release().await;
        for patient in patient {
            patient.await.unwrap().expect("it had the time");
        }
    });
}

#[test]
fn the_query_of_a_cancelled_call_is_cancelled() {
    fixture::exclusively(async |database, mesh| {
        let rpc = Rpc::connect(mesh).await;
        let locked = TableLock::acquire(database, TABLE).await;
        let mut took = Vec::new();
        // More calls than the service has connections for lists, so that a lost connection would be noticed; one
        // by one, since a call without a connection times out.
        for size in 1..6 {
            let called = Call::from_path(&format!("{LIST}?pagination.first={size}")).unwrap();
            let call = tokio::spawn({
                let rpc = rpc.clone();
                async move { rpc.call(&called).await.is_ok() }
            });
            locked.await_queries("query", 1, TIME_LIMIT).await;
            // Only the call is reset; the connection stays open.
            let cancelled_at = Instant::now();
            call.abort();
            locked.await_queries("query", 0, TIME_LIMIT).await;
            took.push(cancelled_at.elapsed());
        }
        took.sort_unstable();
        say(&format!("the queries of cancelled calls ended after {took:?}"));
        // Longer durations may be due to a busy machine.
        assert!(took[0] < Duration::from_secs(1), "{took:?}");
        locked.release().await;
        rpc.call(&Call::from_path(LIST).unwrap()).await.expect("the connection stays open");
    });
}
