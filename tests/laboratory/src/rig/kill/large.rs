//! Phase "large": downloads of ten gigabytes over HTTP and over gRPC. The memory of edge and workers must
//! stay bounded.

use std::{
    fs,
    path::{Path, PathBuf},
    time::Duration,
};

use mesh::{
    failure::{Failure, cannot},
    terminal::print_line,
};
use mesh_history::{Deadlines, Layout, SegmentStore};
use proto_msgs::v2::{ExportNetworkHistoryRequest, Table};
use rustix::fs::statvfs;
use tokio::{
    task::spawn_blocking,
    time::{Instant, timeout},
};

use crate::{
    rig::{
        clients::{
            download::Download,
            download_results::{DownloadResult, Outcome},
            files::export_of,
            memory::{ProcessMemory, while_watched},
            transfer::{Pace, Transfer},
        },
        kill::{
            Report,
            fixture::{EDGE, EXPORT, World},
        },
    },
    synthetic::{LargeTable, Synthetic},
};

/// Approximate length of the file.
const BYTES: u64 = 10_300_000_000;
const BYTES_SHORT: u64 = 1_030_000_000;
/// Number of its segments and blocks in each. The block ranges differ from those of the usual segments, so
/// that the two cannot be confused.
const SEGMENTS: u64 = 100;
const BLOCKS: u64 = 777;
/// Free disk space required in addition, bytes.
const ROOM_BESIDES: u64 = 2_000_000_000;
/// Greatest growth of the memory of the edge and of each worker, KiB.
const GROWN_KIB: u64 = 64 << 10;
/// Time limit of the download.
const TIMEOUT: Duration = Duration::from_secs(900);
const GRPC_METHOD: &str = "/api.v2.Export/ExportNetworkHistory";

/// The protocol of the download.
#[derive(Clone, Copy)]
enum Protocol {
    Http,
    Grpc,
}

/// Replaces the segments by ten gigabytes for two downloads.
pub(super) async fn large(world: &World<'_>) -> Result<Vec<Report>, Failure> {
    let bytes = world.play.either(BYTES, BYTES_SHORT);
    let rows = bytes / SEGMENTS / world.files.bytes_per_row() + 1;
    let plan = Synthetic { segments: SEGMENTS, blocks: BLOCKS, rows, ..world.files.plan() };
    let root = world.mesh.home.root().join("large");
    let room =
        statvfs(world.mesh.home.root()).map_err(|error| cannot("see how much room there is", &error))?;
    if room.f_bavail * room.f_frsize < bytes + ROOM_BESIDES {
        return Err(Failure::failed(format!(
            "there is no room for {} GB in the temporary folder; name another one in TMPDIR",
            (bytes + ROOM_BESIDES) / 1_000_000_000
        )));
    }
    print_line(&format!("writing {:.1} GB", bytes as f64 / 1e9));
    let swap = SegmentSwap { root: root.clone(), home: world.mesh.home.segments(), is_active: false };
    let written =
        spawn_blocking(move || plan.write(&root)).await.map_err(|error| cannot("write", &error))??;
    let store = SegmentStore::open(&swap.root.to_string_lossy(), Deadlines::default());
    let store = store.map_err(|error| cannot("open the segments", &error))?;
    let held = store.list().await.map_err(|error| cannot("list the segments", &error))?;
    let layout = Layout::of(&held, plan.table.name(), 1, written.last_block);
    let layout = layout.map_err(|error| cannot("lay the export out", &error))?;
    let swap = spawn_blocking(move || swap.activate()).await.map_err(|error| cannot("swap", &error))??;
    world.until_listed(SEGMENTS).await?;

    let mut reports = Vec::new();
    for protocol in [Protocol::Http, Protocol::Grpc] {
        reports.push(downloaded(world, protocol, (plan.table, written.last_block), &layout).await);
    }
    spawn_blocking(move || drop(swap)).await.map_err(|error| cannot("swap", &error))?;
    world.until_listed(world.files.plan().segments).await?;
    Ok(reports)
}

/// Downloads the file and samples the memory of edge and workers.
async fn downloaded(
    world: &World<'_>,
    protocol: Protocol,
    (table, last_block): (LargeTable, u64),
    layout: &Layout,
) -> Report {
    let mut processes = ProcessMemory::of_all(world.mesh, &[EDGE, EXPORT]);
    let begun = Instant::now();
    let result = while_watched(&mut processes, download(world, protocol, (table, last_block), layout)).await;
    let took = begun.elapsed();
    let speed = result.bytes as f64 / 1e6 / took.as_secs_f64();
    let name = match protocol {
        Protocol::Http => "large",
        Protocol::Grpc => "large, gRPC",
    };
    let mut report = Report::of_downloads(name, &[result]);
    report.none_fails();
    for process in &processes {
        let ProcessMemory { name, pid, at_first, .. } = process;
        let what = format!(
            "memory of {name} ({pid}) above its {} MiB at first: {} MiB, at most {}",
            at_first >> 10,
            process.grown() >> 10,
            GROWN_KIB >> 10
        );
        report.bar(what, process.grown() < GROWN_KIB);
    }
    report.notes.push(format!("{:.2} GB at {speed:.0} MB a second", layout.length as f64 / 1e9));
    report
}

/// Downloads the file and compares its length and checksum.
async fn download(
    world: &World<'_>,
    protocol: Protocol,
    (table, last): (LargeTable, u64),
    layout: &Layout,
) -> DownloadResult {
    let path = export_of(table, 1, last);
    let mut transfer = Transfer::begin(&path);
    let attempt = async {
        let download = match protocol {
            Protocol::Http => {
                transfer.open(Download::open(world.edges.cached, &path, None, None), 200).await?
            }
            Protocol::Grpc => {
                let table = match table {
                    LargeTable::Trades => Table::Trades,
                    LargeTable::Orders => Table::Orders,
                };
                let to_block = Some(last.cast_signed());
                let request = ExportNetworkHistoryRequest {
                    from_block: Some(1),
                    to_block,
                    table: table.into(),
                    ..Default::default()
                };
                transfer.open(Download::open_grpc(world.edges.cached, GRPC_METHOD, &request), 200).await?
            }
        };
        let (mut length, mut crc) = (0, 0);
        let count = |piece: &[u8]| {
            length += piece.len() as u64;
            crc = crc32c::crc32c_append(crc, piece);
            Ok(())
        };
        transfer.read(download, Pace::QUICK, count).await?;
        match (length, crc) == (layout.length, layout.crc32c) {
            true => Ok(()),
            false => Err(Outcome::Wrong(format!("{length} bytes of checksum {crc:08x}"))),
        }
    };
    let outcome = timeout(TIMEOUT, attempt).await;
    transfer.end(outcome.unwrap_or(Err(Outcome::Late)))
}

/// The large segments, which replace the usual ones. Dropping this restores those and removes the large ones.
struct SegmentSwap {
    root: PathBuf,
    /// Folder of the segments in use.
    home: PathBuf,
    is_active: bool,
}

impl SegmentSwap {
    fn activate(mut self) -> Result<Self, Failure> {
        let swap = || {
            fs::rename(&self.home, self.aside())?;
            fs::rename(self.root.join("segments"), &self.home)
        };
        swap().map_err(|error| cannot("put other segments in place", &error))?;
        self.is_active = true;
        Ok(self)
    }

    fn aside(&self) -> PathBuf {
        self.root.join("aside")
    }
}

impl Drop for SegmentSwap {
    fn drop(&mut self) {
        let leave = || -> std::io::Result<()> {
            if self.is_active {
                fs::rename(&self.home, self.root.join("segments"))?;
            }
            if Path::exists(&self.aside()) {
                fs::rename(self.aside(), &self.home)?;
            }
            fs::remove_dir_all(&self.root)
        };
        if let Err(error) = leave() {
            print_line(&format!("{} could not be removed ({error})", self.root.display()));
        }
    }
}
