//! Handmade segments, as another node or another schema version would have sealed them, and a mesh that
//! serves them. Its database is empty, so it seals no others.

use std::{
    fs::File,
    io::BufWriter,
    path::{Path, PathBuf},
};

use mesh_history::{DEFAULT_LEVEL, Digest, SegmentName, SegmentStore, Span, StagedMember, assemble};
use mesh_testbed::{Database, Mesh, Service};
use mesh_tests::{MeshClient, NO_CACHE};
use rand::{RngCore, rngs::SmallRng};
use tempfile::TempDir;

pub(crate) const CHAIN: &str = "made-1";

/// Content of a segment: schema version, heights, CSV text of tables.
#[derive(Debug, Clone)]
pub(crate) struct Plan {
    pub(crate) version: u32,
    pub(crate) from: u64,
    pub(crate) to: u64,
    pub(crate) tables: Vec<(&'static str, Vec<u8>)>,
}

impl Plan {
    pub(crate) fn new(version: u32, from: u64, to: u64) -> Self {
        Self { version, from, to, tables: Vec::new() }
    }

    pub(crate) fn with(mut self, table: &'static str, text: impl Into<Vec<u8>>) -> Self {
        self.tables.push((table, text.into()));
        self
    }

    pub(crate) fn text(&self, table: &str) -> &[u8] {
        let of_table = self.tables.iter().find(|(name, _)| *name == table);
        of_table.map_or_else(|| panic!("no {table} at {}", self.from), |(_, text)| text)
    }

    fn name(&self) -> SegmentName {
        SegmentName::new(CHAIN, self.version, self.from, self.to)
    }
}

/// A folder of segments, and the plans that they were made from.
pub(crate) struct HandmadeSegments {
    pub(crate) folder: TempDir,
    pub(crate) plans: Vec<Plan>,
}

impl HandmadeSegments {
    /// Makes and publishes the segments.
    pub(crate) async fn write(plans: Vec<Plan>) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let store = SegmentStore::open(folder.path().to_str().unwrap()).unwrap();
        let mut last = None;
        for plan in &plans {
            let file = store.new_file(folder.path()).unwrap();
            last = Some(write(plan, last, file.path()));
            store.publish(&plan.name(), file).await.unwrap();
        }
        Self { folder, plans }
    }

    pub(crate) fn path(&self, plan: &Plan) -> PathBuf {
        self.folder.path().join("segments").join(plan.name().to_string())
    }

    /// Starts a mesh with this many replicas of `export` over these segments.
    pub(crate) async fn serve(self, replicas: usize) -> HandmadeMesh {
        let database = Database::fresh().await;
        let env = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        let env = [
            env(NO_CACHE.0, NO_CACHE.1),
            env("MESH_BUS_PREFIX", &format!("made{:x}", rand::random::<u64>())),
            env("MESH_HISTORY_URL", self.folder.path().to_str().unwrap()),
            env("MESH_EDGE_ACCESS_LOG", "errors"),
            // Segments are listed only at a replica's start and before it refuses a range, so that tests
            // choose when damage is noticed.
            env("MESH_HISTORY_REFRESH_MS", "3600000"),
        ];
        let setup = Mesh::configure(&database).without(&["query", "node-info"]);
        let setup = env.iter().fold(setup, |setup, (name, value)| setup.env(name, value));
        let mut extra_replicas = Vec::new();
        let mesh = setup.start().await;
        for _ in 1..replicas {
            let setup = Service::configure("export").database(&database);
            let setup = env.iter().fold(setup, |setup, (name, value)| setup.env(name, value));
            extra_replicas.push(setup.start().await);
        }
        HandmadeMesh { segments: self, mesh, _extra_replicas: extra_replicas, _database: database }
    }
}

/// Writes a segment's file. Large tables hold random text, which no compression level shortens.
fn write(plan: &Plan, previous_id: Option<Digest>, path: &Path) -> Digest {
    const START_NS: i64 = 1_687_257_000_000_000_000;
    let folder = path.parent().unwrap();
    let members = plan.tables.iter().map(|(table, text)| {
        let level = if text.len() > 1 << 20 { 1 } else { DEFAULT_LEVEL };
        let mut member = StagedMember::new(&format!("history/{table}.csv"), level, folder).unwrap();
        text.chunks(64 << 10).for_each(|piece| member.write(piece).unwrap());
        member.finish().unwrap()
    });
    let span = Span {
        chain_id: CHAIN.to_owned(),
        database_version: plan.version,
        height_from: plan.from,
        height_to: plan.to,
        block_time_from: START_NS + plan.from.cast_signed() * 1_000_000_000,
        block_time_to: START_NS + plan.to.cast_signed() * 1_000_000_000,
        previous_id,
    };
    let (name, id) =
        assemble(&span, members.collect(), &mut BufWriter::new(File::create(path).unwrap())).unwrap();
    assert_eq!(name, plan.name());
    id
}

pub(crate) struct HandmadeMesh {
    pub(crate) segments: HandmadeSegments,
    pub(crate) mesh: Mesh,
    _extra_replicas: Vec<Service>,
    _database: Database,
}

impl HandmadeMesh {
    pub(crate) fn mesh_client(&self) -> MeshClient {
        MeshClient::new(&self.mesh)
    }

    /// The path of a download of a table over these heights.
    pub(crate) fn path(table: &str, from: u64, to: u64) -> String {
        let table = table.to_uppercase();
        format!("/api/v2/networkhistory/export?fromBlock={from}&toBlock={to}&table=TABLE_{table}")
    }

    /// The path of a download of the table over all segments.
    pub(crate) fn whole(&self, table: &str) -> String {
        let plans = &self.segments.plans;
        Self::path(table, plans[0].from, plans[plans.len() - 1].to)
    }
}

/// The expected members of a download: one for each run of segments of the same schema version, with one
/// header.
pub(crate) fn expected(plans: &[Plan], table: &str) -> Vec<(String, Vec<u8>)> {
    let runs = plans.chunk_by(|one, next| one.version == next.version);
    let member = |run: &[Plan]| {
        let (first, last) = (&run[0], &run[run.len() - 1]);
        let header = first.text(table).split_inclusive(|byte| *byte == b'\n').next().unwrap();
        let rows: Vec<&[u8]> = run.iter().map(|plan| &plan.text(table)[header.len()..]).collect();
        let name = format!("{CHAIN}-{table}-{}-{}-{}.csv", first.version, first.from, last.to);
        (name, [header, &rows.concat()].concat())
    };
    runs.map(member).collect()
}

/// About this many bytes of rows `number,noise` after their header; deflate cannot shorten the noise much.
pub(crate) fn noise(dice: &mut SmallRng, bytes: usize) -> Vec<u8> {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = b"id,note\n".to_vec();
    text.reserve(bytes + 1000);
    let mut row = [0; 900];
    while text.len() < bytes {
        dice.fill_bytes(&mut row);
        text.extend(format!("{},", text.len()).bytes());
        text.extend(row.iter().map(|byte| LETTERS[usize::from(byte & 63)]));
        text.push(b'\n');
    }
    text
}
