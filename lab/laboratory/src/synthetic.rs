//! Synthetic sealed history: writes segments directly into a segment store's folder, without a database.
//!
//! The segments are a chain that can be read and verified like a sealed one. The rows are deflated once and
//! reused in every segment, so that writing ten gigabytes is limited by the disk.

use std::{
    fs::{self, File},
    io::Write as _,
    path::Path,
};

use mesh::failure::{Failure, cannot};
use mesh_history::{DEFAULT_LEVEL, Digest, ReadyMember, Span, StagedMember, assemble};
use proto_msgs::v2::Table;
use rand::{Rng as _, SeedableRng as _, rngs::SmallRng};
use tempfile::NamedTempFile;

/// The chain id of the segments: that of the mesh's database, because segments of other chains do not count.
pub(crate) const CHAIN_ID: &str = crate::private_chain::CHAIN_ID;

/// Time of block 0, nanoseconds since the Unix epoch; there is a block every second.
const START_NS: i64 = 1_674_000_000_000_000_000;
const SECOND_NS: i64 = 1_000_000_000;
/// Uncompressed bytes that are generated before each call of the compressor.
const PIECE: usize = 256 << 10;
/// Parties and markets that rows choose from.
const PARTIES: usize = 1000;
const MARKETS: usize = 20;

const TRADES_HEADER: &str = "synthetic_time,tx_hash,block_time,seq_num,id,market_id,price,size,buyer,seller,\
    aggressor,buy_order,sell_order,type,buyer_maker_fee,buyer_infrastructure_fee,buyer_liquidity_fee,\
    seller_maker_fee,seller_infrastructure_fee,seller_liquidity_fee,buyer_auction_batch,seller_auction_batch\n";
/// The content of every other table.
const SMALL: &[u8] = b"id,block_time\nfirst,2023-01-18 01:10:00.880263+00\nsecond,2023-01-18 01:10:01+00\n";

/// The table that is large, about 600 uncompressed bytes a row. Its columns and the form of its values are those of the
/// real network.
pub(crate) const LARGE: Table = Table::Trades;

/// The plan of a synthetic history.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Synthetic {
    pub(crate) segments: u64,
    /// Blocks of each; the first segment starts at block 1.
    pub(crate) blocks: u64,
    /// Rows of the table in each.
    pub(crate) rows: u64,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct WrittenHistory {
    pub(crate) first_block: u64,
    pub(crate) last_block: u64,
    /// Uncompressed bytes of the table's CSV in all segments, headers included.
    pub(crate) plain: u64,
    last_id: Option<Digest>,
}

impl Synthetic {
    /// Writes the segments into the folder of an empty segment store. Blocks the thread.
    pub(crate) fn write(&self, folder: &Path) -> Result<WrittenHistory, Failure> {
        self.write_after(None, folder)
    }

    /// Like [`Synthetic::write`], continuing the chain after the segments written `before`.
    pub(crate) fn write_after(
        &self,
        before: Option<WrittenHistory>,
        folder: &Path,
    ) -> Result<WrittenHistory, Failure> {
        let segments = folder.join("segments");
        fs::create_dir_all(&segments).map_err(|error| cannot("make the folder of segments", &error))?;
        let large = self.large_member(folder)?;
        let mut small = Vec::new();
        for table in Table::exportable().into_iter().filter(|table| *table != LARGE) {
            small.push(small_member(&format!("history/{}.csv", table.relation()), folder)?);
        }
        small.push(small_member("currentstate/accounts.csv", folder)?);

        let (last_block, last_id) = before.map_or((0, None), |before| (before.last_block, before.last_id));
        let first_block = last_block + 1;
        let mut written = WrittenHistory { first_block, last_block, plain: 0, last_id };
        for _ in 0..self.segments {
            let mut members = vec![large.duplicate().map_err(|error| cannot("share a member", &error))?];
            for member in &small {
                members.push(member.duplicate().map_err(|error| cannot("share a member", &error))?);
            }
            let span = self.span(written.last_block, written.last_id);
            written.last_id = Some(write_segment(&span, members, &segments)?);
            written.last_block = span.height_to;
            written.plain += large.metadata().bytes;
        }
        Ok(written)
    }

    fn span(&self, last_block: u64, previous_id: Option<Digest>) -> Span {
        let (from, to) = (last_block + 1, last_block + self.blocks.max(1));
        Span {
            chain_id: CHAIN_ID.to_owned(),
            database_version: 1,
            height_from: from,
            height_to: to,
            block_time_from: START_NS + from.cast_signed() * SECOND_NS,
            block_time_to: START_NS + to.cast_signed() * SECOND_NS,
            previous_id,
        }
    }

    fn large_member(&self, folder: &Path) -> Result<ReadyMember, Failure> {
        let wrong = |error| cannot("deflate synthetic rows", &error);
        let name = format!("history/{}.csv", LARGE.relation());
        let mut member = StagedMember::new(&name, DEFAULT_LEVEL, folder).map_err(wrong)?;
        self.text(|piece| member.write(piece).map_err(wrong))?;
        member.finish().map_err(wrong)
    }

    /// Passes the table's CSV of one segment to `give` in pieces.
    pub(crate) fn text(&self, mut emit: impl FnMut(&[u8]) -> Result<(), Failure>) -> Result<(), Failure> {
        let mut rows = Rows::new();
        let mut text = Vec::with_capacity(PIECE + 1024);
        text.extend_from_slice(TRADES_HEADER.as_bytes());
        for number in 0..self.rows {
            rows.trade(number, &mut text);
            if text.len() >= PIECE {
                emit(&text)?;
                text.clear();
            }
        }
        emit(&text)
    }
}

/// Generates rows: about half of each is unique hashes, the rest repeats among rows.
struct Rows {
    random: SmallRng,
    parties: Vec<String>,
    markets: Vec<String>,
}

impl Rows {
    fn new() -> Self {
        let mut random = SmallRng::seed_from_u64(4);
        let mut ids = |count| (0..count).map(|_| hash(&mut random)).collect();
        let (parties, markets) = (ids(PARTIES), ids(MARKETS));
        Self { random, parties, markets }
    }

    /// A row of `trades`.
    fn trade(&mut self, number: u64, text: &mut Vec<u8>) {
        let random = &mut self.random;
        let [transaction, id, buy, sell] = std::array::from_fn(|_| hash(random));
        let market = &self.markets[random.random_range(0..MARKETS)];
        let [buyer, seller] = std::array::from_fn(|_| self.parties[random.random_range(0..PARTIES)].as_str());
        let (price, size) = (random.random_range(90_000_000..110_000_000), random.random_range(1..900_000));
        let (moment, side) = (Moment(number), random.random_range(1..=2));
        let (maker, other) = (size / 5000, size / 2500);
        // Writing to a `Vec` cannot fail.
        let _ = writeln!(
            text,
            "{moment},{transaction},{moment},{number},{id},{market},{price},{size},{buyer},{seller},{side},{buy},\
             {sell},1,{maker},{other},{other},0,0,0,0,0"
        );
    }
}

/// The time of a row as PostgreSQL prints it. Every segment has the same rows, with the same times.
struct Moment(u64);

impl std::fmt::Display for Moment {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (seconds, micros) = (self.0 / 1000, self.0 % 1000 * 997 + 1);
        let (hour, minute, second) = (seconds / 3600 % 24, seconds / 60 % 60, seconds % 60);
        write!(f, "2023-01-18 {hour:02}:{minute:02}:{second:02}.{micros:06}+00")
    }
}

/// 32 random bytes in hex.
fn hash(random: &mut SmallRng) -> String {
    let words: [u128; 2] = [random.random(), random.random()];
    format!("{:032x}{:032x}", words[0], words[1])
}

fn small_member(name: &str, folder: &Path) -> Result<ReadyMember, Failure> {
    let wrong = |error| cannot("deflate synthetic rows", &error);
    let mut member = StagedMember::new(name, DEFAULT_LEVEL, folder).map_err(wrong)?;
    member.write(SMALL).map_err(wrong)?;
    member.finish().map_err(wrong)
}

/// Writes a segment file and gives it its name; returns its id.
fn write_segment(span: &Span, members: Vec<ReadyMember>, segments: &Path) -> Result<Digest, Failure> {
    let wrong = |error: std::io::Error| cannot("write a segment", &error);
    // The store ignores files with such names and deletes old ones.
    let mut file: NamedTempFile =
        tempfile::Builder::new().suffix("#1").tempfile_in(segments).map_err(wrong)?;
    let out: &mut File = file.as_file_mut();
    let (name, id) = assemble(span, members, out).map_err(|error| cannot("write a segment", &error))?;
    file.persist_noclobber(segments.join(name.to_string())).map_err(|error| wrong(error.error))?;
    Ok(id)
}

#[cfg(test)]
mod tests {
    use mesh_history::{Layout, SegmentStore};

    use super::*;

    #[tokio::test]
    async fn what_is_written_is_a_sealed_history() {
        let folder = tempfile::tempdir().unwrap();
        let plan = Synthetic { segments: 3, blocks: 10, rows: 2000 };
        let written = plan.write(folder.path()).unwrap();
        let more = Synthetic { segments: 1, ..plan }.write_after(Some(written), folder.path()).unwrap();
        assert_eq!((written.first_block, written.last_block), (1, 30));
        assert_eq!((more.first_block, more.last_block), (31, 40));

        let store = SegmentStore::open(folder.path().to_str().unwrap()).unwrap();
        let held = store.list().await.unwrap();
        assert_eq!((held.segments.len(), held.unreadable.len()), (4, 0));
        assert_eq!(held.chain_faults().len(), 0);
        for segment in &held.segments {
            let member = segment.history(&LARGE.relation()).unwrap();
            // Its end checks the hash. The whole segment is not verified: the times of its rows are not
            // those of its heights.
            let mut text = store.text(segment, member);
            while text.next().await.unwrap().is_some() {}
            assert_eq!(member.rows, 2000);
            assert_eq!(member.index.header.plain + member.index.rows.plain, written.plain / 3);
            // About half of the bytes are hashes, so the compression ratio is near one half.
            assert!(member.index.rows.stored > member.index.rows.plain * 3 / 10);
            assert!(member.index.rows.stored < member.index.rows.plain * 6 / 10);
        }
        Layout::of(&held, &LARGE.relation(), 1, 40).unwrap();
    }
}
