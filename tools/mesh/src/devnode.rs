//! The development node: a process of its own that keeps the chain of a mesh growing, a block about every second.
//!
//! Comes in: where the database is, and what lives in it, by variables. Goes out: new blocks; on the demo network
//! with everything that happens in them, otherwise empty ones.

use std::convert::Infallible;
use std::path::PathBuf;
use std::time::Duration;

use mesh_demo::{DemoError, Event, Plan, run_live};
use mesh_launcher::home::Home;
use mesh_launcher::process::ProcessSpec;
use mesh_launcher::supervisor::{Group, Tier};
use mesh_launcher::{Ready, Recipe};
use tokio::time::{MissedTickBehavior, interval, sleep, timeout};
use tokio_postgres::NoTls;

use crate::cli::DEVNODE;
use crate::failure::{Failure, with_causes};
use crate::signals::Signals;

/// The variable that names the database.
pub(crate) const DATABASE_URL: &str = "MESH_DATABASE_URL";
/// The variable with the plan of the demo network, as JSON, when the database holds one.
pub(crate) const DEMO_PLAN: &str = "MESH_DEMO_PLAN";
/// The variable that names the file in which the demo network keeps its state.
pub(crate) const DEMO_STATE: &str = "MESH_DEMO_STATE";

const BLOCK_PERIOD: Duration = Duration::from_secs(1);
/// A database that takes longer for one block is gone or frozen; a new connection finds out which.
const BLOCK_DEADLINE: Duration = Duration::from_secs(10);
const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(2);
const NEXT_BLOCK: &str = include_str!("../sql/next_block.sql");

/// How long it has to end by itself.
const GRACE: Duration = Duration::from_secs(2);

/// How it is started and kept: this program again, at work on a database. `more` is for what only some give it.
pub(crate) fn group(
    program: impl Into<PathBuf>,
    home: &Home,
    database_url: &str,
    more: impl IntoIterator<Item = (String, String)>,
) -> Group {
    let mut spec = ProcessSpec::new(format!("{DEVNODE}-0"), program, home.log(DEVNODE, 0))
        .arg(DEVNODE)
        .env(DATABASE_URL, database_url);
    spec.env.extend(more);
    spec.grace = GRACE;
    let recipe = Recipe { spec, ready: Ready::Spawned };
    Group {
        name: DEVNODE.to_owned(),
        tier: Tier::Node,
        scalable: false,
        recipe: Box::new(move |_, _| recipe.clone()),
    }
}

/// Runs until asked to stop. A database that went away is waited for.
pub(crate) async fn run() -> Result<(), Failure> {
    tracing_subscriber::fmt().json().with_writer(std::io::stderr).with_max_level(tracing::Level::INFO).init();
    let mut signals = Signals::watch()?;
    let url = std::env::var(DATABASE_URL).map_err(|_| {
        Failure::configuration(format!("{DATABASE_URL} is not set; let `mesh up` start the development node"))
    })?;
    if let Some((plan, state)) = demo()? {
        let stop = signals.stop();
        match run_live(&url, &plan, &state, BLOCK_PERIOD, |event| tell(&event), stop).await {
            Ok(()) => return Ok(()),
            // An older release made this history: it can be continued, only not as the network that it was.
            Err(error @ DemoError::Foreign(_)) => {
                tracing::warn!(
                    error = with_causes(&error),
                    "the demo network stands still, empty blocks follow"
                );
            }
            Err(error) => return Err(Failure::failed(with_causes(&error))),
        }
    }
    tokio::select! {
        never = grow(&url) => match never {},
        () = signals.stop() => Ok(()),
    }
}

/// The demo network to keep living, if there is one.
fn demo() -> Result<Option<(Plan, PathBuf)>, Failure> {
    let (Ok(plan), Some(state)) = (std::env::var(DEMO_PLAN), std::env::var_os(DEMO_STATE)) else {
        return Ok(None);
    };
    let plan = serde_json::from_str(&plan).map_err(|error| {
        Failure::configuration(format!(
            "{DEMO_PLAN} cannot be read ({error}); let `mesh up` start the development node"
        ))
    })?;
    Ok(Some((plan, PathBuf::from(state))))
}

fn tell(event: &Event<'_>) {
    match event {
        Event::Block(head) => tracing::debug!(height = head.height, "wrote a block"),
        Event::Trouble { error, wait } => {
            tracing::warn!(error = with_causes(error), ?wait, "no block could be written, trying again");
        }
    }
}

/// Writes empty blocks for ever.
async fn grow(url: &str) -> Infallible {
    let mut pause = FIRST_PAUSE;
    loop {
        let mut written = 0;
        let error = match write_blocks(url, &mut written).await {
            Ok(never) => match never {},
            Err(error) => error,
        };
        tracing::warn!(error = with_causes(&*error), "no block could be written, trying again");
        pause = if written > 0 { FIRST_PAUSE } else { (pause * 2).min(LONGEST_PAUSE) };
        sleep(pause).await;
    }
}

/// Writes empty blocks over one connection until that fails.
async fn write_blocks(url: &str, written: &mut u64) -> Result<Infallible, Box<dyn std::error::Error>> {
    let (client, connection) = timeout(BLOCK_DEADLINE, tokio_postgres::connect(url, NoTls)).await??;
    let writing = async {
        let mut period = interval(BLOCK_PERIOD);
        period.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            period.tick().await;
            timeout(BLOCK_DEADLINE, client.execute(NEXT_BLOCK, &[])).await??;
            *written += 1;
        }
    };
    // The connection is driven here and goes with its client.
    tokio::select! {
        failed = writing => failed,
        ended = connection => {
            ended?;
            Err("the database closed the connection".into())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use mesh_testbed::Database;

    #[tokio::test]
    async fn empty_blocks_follow_each_other_in_height_time_and_hash() {
        let database = Database::fresh().await;
        let client = database.connect().await;
        // A block from the future must not bring the order of times out of step.
        client
            .execute("INSERT INTO blocks VALUES (now() + interval '1 hour', 41, repeat('a', 64))", &[])
            .await
            .unwrap();
        for height in [42_i64, 43] {
            assert_eq!(client.query_one(NEXT_BLOCK, &[]).await.unwrap().get::<_, i64>(0), height);
        }
        let rows = client
            .query(
                "SELECT height, hash, lag(block_time) OVER (ORDER BY height) < block_time FROM blocks",
                &[],
            )
            .await
            .unwrap();
        let heights: Vec<i64> = rows.iter().map(|row| row.get(0)).collect();
        let hashes: std::collections::BTreeSet<String> = rows.iter().map(|row| row.get(1)).collect();
        assert_eq!(heights, [41, 42, 43]);
        assert_eq!(hashes.len(), 3);
        assert!(
            hashes.iter().all(|hash| hash.len() == 64 && hash.bytes().all(|byte| byte.is_ascii_hexdigit()))
        );
        assert!(rows[1..].iter().all(|row| row.get::<_, bool>(2)));
    }

    #[tokio::test]
    async fn an_empty_chain_begins_at_height_1() {
        let database = Database::fresh().await;
        let client = database.connect().await;
        assert_eq!(client.query_one(NEXT_BLOCK, &[]).await.unwrap().get::<_, i64>(0), 1);
    }
}
