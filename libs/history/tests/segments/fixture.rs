//! The fixture of the tests: tables with all special cases of the dialect, segments made of them, and the
//! expected export by concatenation of their text.

use std::{fs::File, io::BufWriter, path::Path};

use mesh_history::{
    DEFAULT_LEVEL, Digest, Layout, SegmentName, SegmentStore, Span, StagedMember, assemble, csv_name,
};
use rand::{Rng, SeedableRng, rngs::SmallRng};
use tempfile::TempDir;

/// Time of block 1, nanoseconds; there is a block per second.
pub(crate) const START_NS: i64 = 1_687_257_000_000_000_000;

/// A segment before it is sealed.
#[derive(Clone)]
pub(crate) struct Plan {
    pub(crate) chain_id: String,
    pub(crate) version: u32,
    pub(crate) from: u64,
    pub(crate) to: u64,
    /// The deflate level.
    pub(crate) level: u32,
    /// Name and CSV text of each member.
    pub(crate) members: Vec<(String, Vec<u8>)>,
}

impl Plan {
    pub(crate) fn new(version: u32, from: u64, to: u64) -> Plan {
        Plan { chain_id: "mesh".to_owned(), version, from, to, level: DEFAULT_LEVEL, members: Vec::new() }
    }

    pub(crate) fn with(mut self, table: &str, text: impl Into<Vec<u8>>) -> Plan {
        self.members.push((format!("history/{table}.csv"), text.into()));
        self
    }

    fn text(&self, table: &str) -> &[u8] {
        let name = format!("history/{table}.csv");
        &self.members.iter().find(|member| member.0 == name).unwrap().1
    }
}

/// A folder with a store in it.
pub(crate) struct History {
    pub(crate) folder: TempDir,
    pub(crate) store: SegmentStore,
    pub(crate) last: Option<Digest>,
}

impl History {
    pub(crate) fn new() -> History {
        let folder = tempfile::tempdir().unwrap();
        let store = SegmentStore::open(folder.path().to_str().unwrap()).unwrap();
        History { folder, store, last: None }
    }

    pub(crate) async fn of(plans: &[Plan]) -> History {
        let mut history = History::new();
        for plan in plans {
            history.seal(plan).await;
        }
        history
    }

    /// Seals and publishes; feeds the text in pieces of an odd size.
    pub(crate) async fn seal(&mut self, plan: &Plan) -> SegmentName {
        let (file, name, id) = file(self.folder.path(), plan, self.last);
        self.store.publish(&name, file).await.unwrap();
        self.last = Some(id);
        name
    }

    pub(crate) async fn layout(&self, table: &str, from: u64, to: u64) -> Layout {
        Layout::of(&self.store.list().await.unwrap(), table, from, to).unwrap()
    }

    pub(crate) async fn export(&self, layout: &Layout, max: usize) -> Vec<u8> {
        let mut bytes = Vec::new();
        loop {
            let piece = self.store.read(layout, bytes.len() as u64, max).await.unwrap();
            assert!(piece.len() <= max);
            if piece.is_empty() {
                return bytes;
            }
            bytes.extend_from_slice(&piece);
            assert!(bytes.len() as u64 <= layout.length, "more than the whole");
        }
    }

    pub(crate) fn path(&self, name: &SegmentName) -> std::path::PathBuf {
        self.folder.path().join("segments").join(name.to_string())
    }
}

/// The file of a planned segment, not published.
pub(crate) fn file(
    folder: &Path,
    plan: &Plan,
    previous: Option<Digest>,
) -> (tempfile::NamedTempFile, SegmentName, Digest) {
    let members = plan.members.iter().rev().map(|(name, text)| {
        let mut member = StagedMember::new(name, plan.level, folder).unwrap();
        text.chunks(10_007).for_each(|piece| member.write(piece).unwrap());
        member.finish().unwrap()
    });
    let span = Span {
        chain_id: plan.chain_id.clone(),
        database_version: plan.version,
        height_from: plan.from,
        height_to: plan.to,
        block_time_from: START_NS + plan.from.cast_signed() * 1_000_000_000,
        block_time_to: START_NS + plan.to.cast_signed() * 1_000_000_000,
        previous_id: previous,
    };
    let file = tempfile::NamedTempFile::new_in(folder).unwrap();
    let mut out = BufWriter::new(File::create(file.path()).unwrap());
    let (name, id) = assemble(&span, members.collect(), &mut out).unwrap();
    (file, name, id)
}

/// Members of an export by concatenation of text: name and content.
pub(crate) fn concatenated(plans: &[Plan], table: &str) -> Vec<(String, Vec<u8>)> {
    let mut runs: Vec<(&[Plan], Vec<u8>)> = Vec::new();
    for (at, plan) in plans.iter().enumerate() {
        let text = plan.text(table);
        let (header, rows) = text.split_at(header_length(text));
        match runs.last_mut() {
            Some((run, whole)) if run[0].version == plan.version && whole.starts_with(header) => {
                whole.extend(rows);
                *run = &plans[at - run.len()..=at];
            }
            _ => runs.push((&plans[at..=at], text.to_vec())),
        }
    }
    let named = |(run, text): (&[Plan], Vec<u8>)| {
        let name = csv_name(&run[0].chain_id, table, run[0].version, run[0].from, run[run.len() - 1].to);
        (name, text)
    };
    runs.into_iter().map(named).collect()
}

/// Length of the header record, by an independent implementation of the dialect, byte by byte.
fn header_length(text: &[u8]) -> usize {
    let mut quoted = false;
    for (at, byte) in text.iter().enumerate() {
        match byte {
            b'"' => quoted = !quoted,
            b'\n' if !quoted => return at + 1,
            _ => {}
        }
    }
    panic!("no header")
}

/// A table's text with special cases: NULL, empty text, quotes, line breaks, the header repeated, long
/// values.
pub(crate) fn table(rng: &mut SmallRng, columns: &[&str], rows: usize, longest: usize) -> Vec<u8> {
    let header = columns.join(",");
    let mut text = header.clone().into_bytes();
    text.push(b'\n');
    for _ in 0..rows {
        for column in 0..columns.len() {
            if column > 0 {
                text.push(b',');
            }
            match rng.random_range(0..10) {
                0 => {}
                1 => text.extend(b"\"\""),
                2 => text.extend(format!("\"{header}\n\"").bytes()),
                3 => text.extend("\"he said \"\"é, 文\"\"\r\n\\N NULL\"".bytes()),
                4 => text.extend(b"NULL"),
                5 => text.extend((0..64).map(|_| b"0123456789abcdef"[rng.random_range(0..16)])),
                6 => {
                    let length = rng.random_range(0..=longest);
                    text.extend((0..length).map(|_| rng.random_range(b'a'..=b'z')));
                }
                _ => text.extend(rng.random::<u32>().to_string().bytes()),
            }
        }
        text.push(b'\n');
    }
    text
}

pub(crate) fn rng(seed: u64) -> SmallRng {
    SmallRng::seed_from_u64(seed)
}
