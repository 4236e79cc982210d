//! Ten thousand hostile requests, generated from a seed: the mesh answers each in time and in the contract's
//! form, nothing panics, and valid requests have the same answers afterwards as before.
//!
//! `MESH_TEST_HOSTILE_REQUESTS` sets the number, `MESH_TEST_SEED` the seed.

mod attack;
mod requests;
mod values;

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Instant,
};

use mesh_testbed::{DevNode, Mesh};
use mesh_tests::{MeshClient, cases, env_number, fixture};

const CONNECTIONS: usize = 16;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hostile_requests_are_refused_in_the_contracts_form_and_harm_nothing() {
    let requests = env_number("MESH_TEST_HOSTILE_REQUESTS", 10_000);
    let seed = env_number("MESH_TEST_SEED", 20_230_620);
    let database = fixture::database().await;
    let node = DevNode::start().await;
    let mesh = Mesh::configure(&database).env("MESH_NODE_URL", node.url()).start().await;
    let mesh_client = MeshClient::new(&mesh);
    let mut before = Vec::new();
    for (_, path) in cases::answered() {
        before.push(mesh_client.get(&path).await.body);
    }

    let started = Instant::now();
    let next = Arc::new(AtomicUsize::new(0));
    let attackers: Vec<_> = (0..CONNECTIONS)
        .map(|_| {
            let (url, next) = (mesh.url(), Arc::clone(&next));
            tokio::spawn(async move {
                let mut attack = attack::Attack::new(url, seed);
                loop {
                    let turn = next.fetch_add(1, Ordering::Relaxed);
                    if turn >= requests || attack.has_enough_faults() {
                        return attack.into_observations();
                    }
                    attack.turn(turn).await;
                }
            })
        })
        .collect();
    let mut observations = attack::Observations::default();
    for attacker in attackers {
        observations.add(attacker.await.expect("an attacker does not panic"));
    }
    println!("{requests} requests in {:?}: {:?}", started.elapsed(), observations.statuses);
    assert!(observations.faults.is_empty(), "with seed {seed}:\n{}", observations.faults.join("\n\n"));

    for service in ["edge", "query", "node-info", "tx-relay"] {
        let log = mesh.service(service).log();
        let panic = log.lines().find(|line| line.contains("panicked"));
        assert_eq!(panic, None, "{service} panicked");
        let failed = log.lines().find(|line| line.contains("\"level\":\"ERROR\""));
        assert_eq!(failed, None, "{service} logged an error");
        assert_eq!(mesh.service(service).admin("/readyz").await.status, 200, "{service}");
    }
    for ((_, path), body) in cases::answered().into_iter().zip(before) {
        let answer = mesh_client.get(&path).await;
        assert_eq!((answer.status, &answer.body), (200, &body), "{path} is answered as before");
    }
}
