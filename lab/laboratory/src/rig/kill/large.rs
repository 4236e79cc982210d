//! Phase "large": downloads of ten gigabytes over HTTP and over gRPC. The memory of edge and workers must
//! stay bounded.

use std::{net::SocketAddr, sync::Arc, time::Duration};

use mesh::{
    failure::{Failure, cannot},
    terminal::print_line,
};
use mesh_history::{Deadlines, Layout, SegmentStore};
use proto_msgs::v2::ExportNetworkHistoryRequest;
use rustix::fs::statvfs;
use tokio::{
    task::spawn_blocking,
    time::{Instant, timeout},
};

use crate::{
    private::variables,
    rig::{
        clients::{
            download::{Download, Pace, Transfer},
            download_results::{DownloadResult, Outcome},
            files::export_of,
            memory::{ProcessMemory, while_watched},
        },
        kill::World,
        report::Report,
    },
    synthetic::{LARGE, Synthetic},
};

/// Approximate length of the file.
const BYTES: [u64; 2] = [10_300_000_000, 1_030_000_000];
/// Number of its segments and blocks in each.
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

/// Downloads ten gigabytes twice, through an edge and a worker of their own.
pub(super) async fn large(world: &World<'_>) -> Result<Vec<Report>, Failure> {
    let bytes = world.play.either(BYTES);
    let rows = bytes / SEGMENTS / world.files.bytes_per_row() + 1;
    let plan = Synthetic { segments: SEGMENTS, blocks: BLOCKS, rows };
    let room =
        statvfs(world.mesh.home.root()).map_err(|error| cannot("see how much room there is", &error))?;
    if room.f_bavail * room.f_frsize < bytes + ROOM_BESIDES {
        return Err(Failure::failed(format!(
            "there is no room for {} GB in the temporary folder; name another one in TMPDIR",
            (bytes + ROOM_BESIDES) / 1_000_000_000
        )));
    }
    print_line(&format!("writing {:.1} GB", bytes as f64 / 1e9));
    let folder = tempfile::tempdir_in(world.mesh.home.root());
    let folder = Arc::new(folder.map_err(|error| cannot("make a folder", &error))?);
    let writing = Arc::clone(&folder);
    let written = spawn_blocking(move || plan.write(writing.path())).await;
    let written = written.map_err(|error| cannot("write", &error))??;
    let root = folder.path().to_string_lossy().into_owned();
    let store = SegmentStore::open(&root, Deadlines::default());
    let store = store.map_err(|error| cannot("open the segments", &error))?;
    let held = store.list().await.map_err(|error| cannot("list the segments", &error))?;
    let layout = Layout::of(&held, &LARGE.relation(), 1, written.last_block);
    let layout = layout.map_err(|error| cannot("lay the export out", &error))?;
    // An edge and a worker for this run, which share a part of the bus.
    let run = root.rsplit(|sign: char| !sign.is_ascii_alphanumeric()).next().unwrap_or_default().to_owned();
    let names = [format!("edge-{run}"), format!("export-{run}")];
    let names = names.each_ref().map(String::as_str);
    let env = variables(&[("MESH_BUS_PREFIX", run), ("MESH_HISTORY_URL", root)]);
    let services = [("edge", names[0]), ("export", names[1])];
    let edge = world.mesh.start_named(&world.servers, &services, env).await?;
    let mut reports = Vec::new();
    for protocol in [Protocol::Http, Protocol::Grpc] {
        let processes = ProcessMemory::of_all(world.mesh, &names);
        reports.push(downloaded(processes, edge, protocol, written.last_block, &layout).await);
    }
    for name in names {
        world.mesh.stop_all(name).await?;
    }
    spawn_blocking(move || drop(folder)).await.map_err(|error| cannot("remove the segments", &error))?;
    Ok(reports)
}

/// Downloads the file and samples the memory of edge and workers.
async fn downloaded(
    mut processes: Vec<ProcessMemory>,
    edge: SocketAddr,
    protocol: Protocol,
    last_block: u64,
    layout: &Layout,
) -> Report {
    let begun = Instant::now();
    let result = while_watched(&mut processes, download(edge, protocol, last_block, layout)).await;
    let took = begun.elapsed();
    let speed = result.bytes as f64 / 1e6 / took.as_secs_f64();
    let name = match protocol {
        Protocol::Http => "large",
        Protocol::Grpc => "large, gRPC",
    };
    let results = [result];
    let mut report = Report::of_downloads(name, &results);
    report.none_fails(&results);
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
async fn download(edge: SocketAddr, protocol: Protocol, last: u64, layout: &Layout) -> DownloadResult {
    let path = export_of(1, last);
    let mut transfer = Transfer::begin(&path);
    let attempt = async {
        let download = match protocol {
            Protocol::Http => transfer.open(Download::open(edge, &path, None, None), 200).await?,
            Protocol::Grpc => {
                let request = ExportNetworkHistoryRequest {
                    from_block: Some(1),
                    to_block: Some(last.cast_signed()),
                    table: LARGE.into(),
                    ..Default::default()
                };
                transfer.open(Download::open_grpc(edge, GRPC_METHOD, &request), 200).await?
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
