//! Where segments end (H7), as a property: over random histories of blocks and upgrade proposals the spans
//! are those of a model, the same whether blocks are sealed as they arrive, late, or after an import; and the
//! upgrade flag (4.11) is up exactly while it should be.

use std::time::Duration;

use futures_util::stream;
use mesh_export::{Sealed, Sealing, Until};
use mesh_history::{Digest, Segment, SegmentName, SegmentStore};
use mesh_loader::import::{ImportSession, ImportSpan, MemberText, Scope};
use mesh_store::TimeUs;
use mesh_testbed::{Database, retry};
use rand::{Rng, SeedableRng, rngs::SmallRng};
use tokio_postgres::Client;

use crate::fixture::Fixture;

const STATUS_NOW: &str = include_str!("../../../node-info/sql/get_protocol_upgrade_status.sql");

const TAGS: [&str; 2] = ["v1", "v2"];
const STATUSES: [&str; 4] = ["PENDING", "APPROVED", "APPROVED", "REJECTED"];

/// A row of `protocol_upgrade_proposals`.
#[derive(Debug)]
struct Proposal {
    /// Height of the block that it is written in.
    written_at: u64,
    height: u64,
    tag: &'static str,
    status: &'static str,
}

/// A chain: its heights, and its proposals in the order of writing.
#[derive(Debug)]
struct Chain {
    interval: u64,
    blocks: Vec<u64>,
    proposals: Vec<Proposal>,
}

impl Chain {
    fn random(seed: u64) -> Self {
        let mut random = SmallRng::seed_from_u64(seed);
        let interval = random.random_range(4..=12);
        let mut blocks: Vec<u64> = vec![random.random_range(1..=3)];
        while blocks.len() < 36 {
            blocks.push(blocks[blocks.len() - 1] + 1);
        }
        let mut proposals = Vec::new();
        for &written_at in &blocks {
            for tag in TAGS {
                if !random.random_bool(0.4) {
                    continue;
                }
                // Written in the block of the upgrade, before it, or after it.
                let height = match random.random_range(0..4) {
                    0 | 1 => written_at,
                    2 => written_at + random.random_range(1..=6),
                    _ => written_at.saturating_sub(random.random_range(1..=4)).max(1),
                };
                let status = STATUSES[random.random_range(0..STATUSES.len())];
                proposals.push(Proposal { written_at, height, tag, status });
            }
        }
        Self { interval, blocks, proposals }
    }

    /// Whether an upgrade is approved by the rows of its own block or of earlier ones.
    fn is_approved(&self, height: u64) -> bool {
        TAGS.iter().any(|tag| {
            let known = self.proposals.iter().filter(|row| row.height == height && row.tag == *tag);
            let newest = known.filter(|row| row.written_at <= height).max_by_key(|row| row.written_at);
            newest.is_some_and(|row| row.status == "APPROVED")
        })
    }

    /// The spans to be sealed when `head` is the newest block.
    fn spans(&self, head: u64) -> Vec<(u64, u64)> {
        let mut spans: Vec<(u64, u64)> = Vec::new();
        loop {
            let last = spans.last().map_or(0, |(_, to)| *to);
            let Some(&from) = self.blocks.iter().find(|height| **height > last) else { return spans };
            let mut heights = from..=head;
            let ends = |height: &u64| height.is_multiple_of(self.interval) || self.is_approved(*height);
            let Some(to) = heights.find(ends) else { return spans };
            spans.push((from, to));
        }
    }

    /// Whether 4.11 is true once everything up to `head` is sealed.
    fn is_ready(&self, head: u64) -> bool {
        self.is_approved(head) && self.spans(head).last().is_some_and(|(_, to)| *to == head)
    }

    /// Writes a block with its rows in one transaction (W1).
    async fn write(&self, client: &Client, height: u64) {
        let time = format!("timestamptz '2024-01-01 00:00:00+00' + {height} * interval '1 s'");
        let rows = self.proposals.iter().filter(|row| row.written_at == height).map(|row| {
            let Proposal { height, tag, status, .. } = row;
            format!(
                "INSERT INTO protocol_upgrade_proposals VALUES
                    ({height}, '{tag}', '{{}}', 'PROTOCOL_UPGRADE_PROPOSAL_STATUS_{status}', 'ab', {time});"
            )
        });
        let rows: String = rows.collect();
        let block = format!("INSERT INTO blocks (height, block_time, hash) VALUES ({height}, {time}, 'ab');");
        client.batch_execute(&format!("BEGIN; {rows} {block} COMMIT")).await.unwrap();
    }
}

/// The `ready` of the upgrade status (4.11).
async fn is_ready(client: &Client) -> bool {
    client.query_one(STATUS_NOW, &[]).await.unwrap().get("ready")
}

/// Seals and returns the new spans; waits while the server has not yet released the lock of the last session.
async fn run(sealing: &Sealing) -> Vec<(u64, u64)> {
    retry(Duration::from_secs(10), async || match sealing.run(Until::Complete).await.unwrap() {
        Sealed::Here(names) => Ok(names.iter().map(|name| (name.height_from, name.height_to)).collect()),
        Sealed::Elsewhere => Err("the lock is never free"),
    })
    .await
}

async fn sealed(sealing: &Sealing) -> Vec<(SegmentName, Digest)> {
    let held = sealing.segments.list().await.unwrap();
    held.segments.iter().map(|segment| (segment.name.clone(), segment.id)).collect()
}

/// Seals after about 70 % of the blocks as they arrive, and checks the flag after each.
async fn seal_as_they_arrive(fixture: &Fixture, chain: &Chain, random: &mut SmallRng) -> Sealing {
    let (client, store) = (fixture.database.connect().await, fixture.store());
    store.until_ready().await;
    let sealing = fixture.sealing(i64::try_from(chain.interval).unwrap());
    for &height in &chain.blocks {
        chain.write(&client, height).await;
        assert!(!is_ready(&client).await, "{height} is not sealed yet: {chain:?}");
        if random.random_bool(0.3) {
            continue;
        }
        let is_due = sealing.is_due(&store, &sealing.segments.list().await.unwrap()).await.unwrap();
        let names = run(&sealing).await;
        assert!(is_due || names.is_empty(), "there was something to seal at {height}: {chain:?}");
        assert_eq!(is_ready(&client).await, chain.is_ready(height), "at {height}: {chain:?}");
        let is_due = sealing.is_due(&store, &sealing.segments.list().await.unwrap()).await.unwrap();
        assert!(!is_due, "something is left at {height}: {chain:?}");
    }
    run(&sealing).await;
    sealing
}

/// Imports all segments of a store into a database.
async fn import(database: &Database, from: &SegmentStore) {
    let mut session = ImportSession::open(database.url()).await.unwrap();
    for segment in from.list().await.unwrap().segments {
        import_one(&mut session, from, &segment).await;
    }
    session.finish().await.unwrap();
}

async fn import_one(session: &mut ImportSession, from: &SegmentStore, segment: &Segment) {
    let metadata = from.metadata(&segment.name).await.unwrap();
    let time = TimeUs::at_or_before_ns;
    let span = ImportSpan {
        segment: segment.name.to_string(),
        chain_id: segment.chain_id.clone(),
        heights: (segment.height_from.cast_signed(), segment.height_to.cast_signed()),
        times: (time(segment.block_time_from), time(segment.block_time_to)),
    };
    let mut members: Vec<_> = segment.members.iter().zip(&metadata.members).collect();
    members.sort_by_key(|(member, _)| member.index.name != "history/blocks.csv");
    let mut import = session.begin(span).await.unwrap();
    for (member, described) in members {
        let (kind, table) = described.name.strip_suffix(".csv").unwrap().split_once('/').unwrap();
        let scope = if kind == "history" { Scope::Span } else { Scope::UpToEnd };
        let (rows, sha256) = (member.rows, member.sha256.0);
        let member_text = MemberText { table, scope, columns: &described.columns, rows, sha256 };
        let text = stream::try_unfold(from.text(segment, member), |mut text| async {
            let piece = text.next().await?;
            Ok(piece.map(|piece| (piece, text)))
        });
        // Boxed, because the future is large and would make every future around it as large.
        Box::pin(import.take(member_text, text)).await.unwrap();
    }
    import.commit().await.unwrap();
}

/// Seals one history in all three ways; returns how many of its segments an upgrade ended early.
async fn check_history(seed: u64) -> usize {
    let chain = Chain::random(seed);
    let interval = i64::try_from(chain.interval).unwrap();
    let head = chain.blocks[chain.blocks.len() - 1];
    let spans = chain.spans(head);
    let fixture = Fixture::blocks(0).await;
    let arriving = seal_as_they_arrive(&fixture, &chain, &mut SmallRng::seed_from_u64(seed + 1000)).await;
    let first = sealed(&arriving).await;
    let names: Vec<_> = first.iter().map(|(name, _)| (name.height_from, name.height_to)).collect();
    assert_eq!(names, spans, "as blocks arrive: {chain:?}");

    let late = fixture.sealing(interval);
    run(&late).await;
    assert_eq!(sealed(&late).await, first, "late: {chain:?}");

    let imported = Fixture::blocks(0).await;
    import(&imported.database, &arriving.segments).await;
    let client = imported.database.connect().await;
    let end = spans.last().map_or(0, |(_, to)| *to);
    for &height in chain.blocks.iter().filter(|height| **height > end) {
        chain.write(&client, height).await;
    }
    let again = imported.sealing(interval);
    run(&again).await;
    assert_eq!(sealed(&again).await, first, "from imported rows: {chain:?}");
    assert_eq!(is_ready(&client).await, chain.is_ready(head), "from imported rows: {chain:?}");
    spans.iter().filter(|(_, to)| !to.is_multiple_of(chain.interval)).count()
}

#[actix::test]
async fn spans_are_those_of_the_rule_however_late_they_are_sealed() {
    let mut early = 0;
    for seeds in [0..4, 4..8] {
        early += futures_util::future::join_all(seeds.map(check_history)).await.iter().sum::<usize>();
    }
    assert!(early > 20, "upgrades ended only {early} segments early");
}
