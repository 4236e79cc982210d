//! One fate: impatient clients submit the same transactions again and again, with mixed types, to two relays, while
//! the node and the relays are killed. All answers for a transaction agree, and what the chain took is never called
//! refused.
//!
//! `MESH_TEST_FATES` submissions instead of a few hundred, with more clients and rarer kills, and `MESH_TEST_SEED`.

use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
    time::Duration,
};

use mesh_testbed::{Answer, Database, DevNode, Mesh, Service};
use mesh_transaction::{SpamRules, TxHash, encode};
use proto_msgs::v2::Transaction;
use rand::{Rng, SeedableRng, rngs::SmallRng};
use reqwest::Method;
use serde_json::json;
use tokio::{
    sync::{Mutex, watch},
    task::JoinSet,
    time::{sleep, timeout},
};

use crate::{body, hash};

const PREFIX: &str = "fates";

/// How far back an impatient client's repeat reaches.
const RECENT: usize = 40;

/// What a client was told.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Told {
    Accepted,
    /// With this code.
    Refused(u64),
    /// 504: nobody knows.
    Unknown,
    /// 503 and the like: it was not handed over.
    NotTaken(u16),
    /// The client did not wait.
    Left,
}

fn number(variable: &str) -> Option<usize> {
    std::env::var(variable).ok()?.parse().ok()
}

/// One submission, by a client that may have no patience.
async fn submit(mesh: &Mesh, tx: &Transaction, kind: &str, patience: Option<Duration>) -> Told {
    let body = json!({"tx": body(tx), "type": kind}).to_string();
    let asked = Answer::to(mesh.request(Method::POST, "/transaction").body(body));
    let answer = match patience {
        None => asked.await,
        Some(patience) => match timeout(patience, asked).await {
            Ok(answer) => answer,
            Err(_) => return Told::Left,
        },
    };
    match answer.status {
        200 if answer.json()["success"] == true => Told::Accepted,
        200 => Told::Refused(answer.json()["code"].as_u64().unwrap()),
        504 => Told::Unknown,
        status @ (429 | 503) => Told::NotTaken(status),
        _ => panic!("{answer:?}"),
    }
}

/// Kills the node again and again, until told to stop; it is up at the end.
async fn kill_node(
    node: Arc<Mutex<DevNode>>,
    every: Duration,
    mut stop: watch::Receiver<bool>,
    kills: Arc<AtomicUsize>,
) {
    while timeout(every, stop.wait_for(|stop| *stop)).await.is_err() {
        let mut node = node.lock().await;
        node.kill().await;
        sleep(every / 20).await;
        node.restart().await;
        kills.fetch_add(1, Relaxed);
    }
}

/// Kills one relay after the other, until told to stop; both are up at the end, for as long as they are kept.
async fn kill_relays(
    mut relays: Vec<Service>,
    every: Duration,
    mut stop: watch::Receiver<bool>,
    kills: Arc<AtomicUsize>,
) -> Vec<Service> {
    while timeout(every, stop.wait_for(|stop| *stop)).await.is_err() {
        let turn = kills.load(Relaxed) % relays.len();
        relays[turn].restart().await;
        kills.fetch_add(1, Relaxed);
    }
    relays
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_transaction_has_one_fate() {
    let long = number("MESH_TEST_FATES");
    let submissions = long.unwrap_or(240);
    let (clients, node_every, relay_every, pause) = match long {
        Some(_) => (100, Duration::from_secs(5), Duration::from_secs(7), Duration::from_millis(600)),
        None => (20, Duration::from_secs(1), Duration::from_millis(1400), Duration::from_millis(200)),
    };
    let seed = number("MESH_TEST_SEED").unwrap_or(20_230_620) as u64;
    let rules =
        SpamRules { difficulty: 2, past_blocks: 500, tx_per_block: 1_000_000, ..SpamRules::default() };
    let node = DevNode::configure().rules(rules).every(Duration::from_millis(300)).start().await;
    let database = Database::fresh().await;
    let url = node.url();
    let mesh = Mesh::configure(&database).env("MESH_BUS_PREFIX", PREFIX).without("export").start().await;
    let relay = || {
        let relay = Service::configure("tx-relay").env("MESH_BUS_PREFIX", PREFIX);
        relay.env("MESH_NODE_URL", &url).start()
    };
    let (one, other) = tokio::join!(relay(), relay());

    let distinct = submissions * 7 / 10;
    let txs: Vec<Transaction> = (0..distinct)
        .map(|turn| {
            let mut tx = node.transaction(1, &turn.to_string());
            if turn % 10 == 0 {
                tx.pow = None;
            }
            tx
        })
        .collect();
    let told = Arc::new(std::sync::Mutex::new(BTreeMap::<usize, Vec<Told>>::new()));
    let shared = Arc::new((mesh, txs));
    let node = Arc::new(Mutex::new(node));
    let (end, ended) = watch::channel(false);
    let [node_kills, relay_kills] = [0, 0].map(|none| Arc::new(AtomicUsize::new(none)));
    let killing_node =
        tokio::spawn(kill_node(Arc::clone(&node), node_every, ended.clone(), Arc::clone(&node_kills)));
    let killing_relays =
        tokio::spawn(kill_relays(vec![one, other], relay_every, ended, Arc::clone(&relay_kills)));

    let (turns, fresh) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let mut submitting = JoinSet::new();
    for client in 0..clients {
        let (shared, told) = (Arc::clone(&shared), Arc::clone(&told));
        let (turns, fresh) = (Arc::clone(&turns), Arc::clone(&fresh));
        let kills = [Arc::clone(&node_kills), Arc::clone(&relay_kills)];
        let mut random = SmallRng::seed_from_u64(seed ^ client);
        submitting.spawn(async move {
            let (mesh, txs) = &*shared;
            // On a quick machine a little longer, until both were killed twice.
            let goes_on = || kills.iter().any(|kills| kills.load(Relaxed) < 2);
            while turns.fetch_add(1, Relaxed) < submissions || goes_on() {
                let known = fresh.load(Relaxed);
                let is_repeat = (known > 0 && random.random_bool(0.3)) || known >= txs.len();
                let which = match is_repeat {
                    true => random.random_range(known.saturating_sub(RECENT)..known).min(txs.len() - 1),
                    false => fresh.fetch_add(1, Relaxed).min(txs.len() - 1),
                };
                let kind = ["TYPE_ASYNC", "TYPE_SYNC", "TYPE_SYNC", "TYPE_COMMIT"][random.random_range(0..4)];
                let patience =
                    random.random_bool(0.2).then(|| Duration::from_millis(random.random_range(1..80)));
                let said = submit(mesh, &txs[which], kind, patience).await;
                told.lock().unwrap().entry(which).or_default().push(said);
                sleep(pause.mul_f64(random.random())).await;
            }
        });
    }
    while let Some(client) = submitting.join_next().await {
        client.unwrap();
    }
    end.send_replace(true);
    killing_node.await.unwrap();
    let _relays = killing_relays.await.unwrap();

    // What waits comes into a block.
    let node = node.lock().await;
    while node.chain().waiting(0).0 > 0 {
        sleep(Duration::from_millis(20)).await;
    }
    let (received, mut counts, mut wrong) = (node.received(), BTreeMap::<String, usize>::new(), Vec::new());
    let mut count = |what: String| *counts.entry(what).or_default() += 1;
    let (mesh, txs) = &*shared;
    let told = std::mem::take(&mut *told.lock().unwrap());
    for (which, told) in &told {
        let tx = &txs[*which];
        let key = TxHash::of(&encode(tx));
        let is_included = node.chain().find(&key).await.unwrap().is_some();
        let mut verdicts: Vec<Told> =
            told.iter().copied().filter(|told| matches!(told, Told::Accepted | Told::Refused(_))).collect();
        verdicts.sort_unstable();
        verdicts.dedup();
        // That it was handed over unchecked is no verdict on what the check refuses later.
        let is_bad = tx.pow.is_none();
        if is_bad {
            verdicts.retain(|told| *told != Told::Accepted);
        }
        if verdicts.len() > 1 || (is_included && verdicts.iter().any(|told| matches!(told, Told::Refused(_))))
        {
            wrong.push(format!("{which} (in a block: {is_included}): {told:?}"));
        }
        let fate = mesh.get(&format!("/transaction/{}", hash(tx))).await;
        let status = fate.json()["status"].as_str().unwrap_or_default().to_owned();
        if (status == "INCLUDED") != is_included || (status == "REFUSED" && !is_bad) {
            wrong.push(format!("{which} (in a block: {is_included}) is told as {fate:?}"));
        }
        told.iter().for_each(|told| count(format!("told {told:?}")));
        count(format!("status {status}"));
        count(format!("broadcast calls {}", received.get(&key).copied().unwrap_or_default()));
    }
    let (node_kills, relay_kills) = (node_kills.load(Relaxed), relay_kills.load(Relaxed));
    println!("seed {seed}: {submissions} submissions, node killed {node_kills} times, relays {relay_kills}");
    counts.iter().for_each(|(what, times)| println!("{times:8} {what}"));
    assert!(node_kills > 1 && relay_kills > 1);
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
}
