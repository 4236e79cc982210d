//! Suite "exports": downloads of a stored history and of a ledger, and the sealing of history segments.

mod drain;
pub(super) mod first_byte;
pub(super) mod ledger;
mod raw;
pub(super) mod scaled;
pub(super) mod sealing;
pub(super) mod splice;

use mesh::{failure::Failure, terminal::print_line};

use super::world::World;
use crate::{
    rig::clients::files::export_of,
    synthetic::{CHAIN_ID, Synthetic, WrittenHistory},
};

/// Number of segments in the part of the history with many.
const MANY: u64 = 1000;
/// Approximate bytes of a segment in the other part.
const LARGE_SEGMENT_BYTES: u64 = 20_000_000;
/// Approximate bytes of a row in a segment.
const ROW_BYTES: u64 = 250;
/// Blocks of a segment.
const BLOCKS: u64 = 1000;

/// The blocks of the first segment. With only these in the database, the export service has nothing to seal.
const FILL_BLOCKS: &str = "INSERT INTO blocks (block_time, height, hash)
    SELECT timestamptz '2023-01-18 00:00:00+00' + n * interval '1 second', n, encode(sha256(n::text::bytea), 'hex')
    FROM generate_series(1, 1000) AS n";

/// A stored history in two parts.
pub(super) struct History {
    /// A thousand small segments.
    many: WrittenHistory,
    /// As many bytes in large segments.
    few: WrittenHistory,
    few_segments: u64,
}

impl History {
    fn write(world: &World<'_>) -> Result<Self, Failure> {
        let (bytes, root) = (world.args.megabytes * 1_000_000 / 2, world.mesh.home.root());
        let synthetic = |segments: u64| {
            let rows = (bytes / segments / ROW_BYTES).max(1);
            Synthetic { segments, blocks: BLOCKS, rows }
        };
        let many = synthetic(MANY).write(root)?;
        let few_segments = bytes.div_ceil(LARGE_SEGMENT_BYTES);
        let few = synthetic(few_segments).write_after(Some(many), root)?;
        Ok(Self { many, few, few_segments })
    }
}

impl World<'_> {
    /// The stored history and the blocks of the database. The export service starts after them.
    async fn history(&self) -> Result<&History, Failure> {
        let write = async || {
            print_line(&format!("writing {} MB of history", self.args.megabytes));
            let history = tokio::task::block_in_place(|| History::write(self))?;
            let chain = format!("INSERT INTO chain (id) VALUES ('{CHAIN_ID}')");
            self.servers.execute("fill in blocks", &[FILL_BLOCKS, &chain]).await?;
            Ok(history)
        };
        self.history.get_or_try_init(write).await
    }
}

/// Path of the export of one part, without its last `without` segments.
fn path(written: WrittenHistory, without: u64) -> String {
    export_of(written.first_block, written.last_block - without * BLOCKS)
}

/// Fills in `--rows` rows of a kind.
async fn fill(world: &World<'_>, what: &str, statements: &str) -> Result<(), Failure> {
    let rows = world.args.rows.to_string();
    print_line(&format!("filling in {rows} {what}"));
    let statements = statements.replace(":rows", &rows);
    world.servers.execute("fill in rows", &[&statements, "VACUUM ANALYZE", "CHECKPOINT"]).await
}
