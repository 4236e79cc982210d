//! Phase "damage": segments are corrupted, truncated and removed before and during a download. That download
//! must be refused or end with an error, and downloads of other segments must succeed.

use std::{
    fs,
    io::{Read as _, Seek as _, SeekFrom, Write as _},
    path::{Path, PathBuf},
    time::Duration,
};

use mesh::failure::{Failure, cannot};
use rand::{Rng as _, rngs::SmallRng};
use tokio::time::Instant;

use crate::rig::{
    clients::{
        download_results::{DownloadResult, Outcome},
        files::{ExpectedFile, Files},
        transfer::{Pace, download_file},
    },
    kill::{
        Report,
        fixture::{AT_ONCE, DOWNLOAD_TIMEOUT, World},
    },
};

/// Number of rounds; each has every damage at both times.
const ROUNDS: u32 = 5;
const ROUNDS_SHORT: u32 = 1;
/// Number of downloads of undamaged segments meanwhile.
const OTHERS: usize = 200;
const OTHERS_SHORT: usize = 40;
/// Longest duration of a slow one of them.
const SLOW: Duration = Duration::from_secs(3);

/// Receive buffer of the client whose download is damaged, small so that few bytes are in flight to it.
const HELD_ROOM: u32 = 16 << 10;

/// The kind of damage to a segment.
#[derive(Clone, Copy, Debug)]
enum Damage {
    /// One bit of the large table is flipped.
    Flipped,
    /// The file is truncated within the large table.
    Cut,
    /// The file is removed.
    Gone,
}

/// When the damage is done, relative to the download.
#[derive(Clone, Copy, Debug)]
enum When {
    Before,
    Amidst,
}

/// Does every damage at both times while other segments are downloaded.
pub(super) async fn damage(world: &World<'_>, random: &mut SmallRng) -> Result<Report, Failure> {
    let plan = world.files.plan();
    // The last segments, so that none of their bytes is in flight when a download has just started.
    let victims = plan.segments - plan.segments / 4..plan.segments;
    let others = world.files.before(victims.start * plan.blocks);
    let count = world.play.either(OTHERS, OTHERS_SHORT);
    let any = |_: &Files, random: &mut SmallRng| others[random.random_range(0..others.len())].clone();
    let downloads = world.start_downloads(world.mixed(count, SLOW, random, any), AT_ONCE);
    let whole = world.files.largest();
    let (mut results, mut taken) = (Vec::new(), Vec::new());
    for _ in 0..world.play.either(ROUNDS, ROUNDS_SHORT) {
        for damage in [Damage::Flipped, Damage::Cut, Damage::Gone] {
            for when in [When::Before, When::Amidst] {
                let name =
                    &world.files.segments[random.random_range(victims.start as usize..victims.end as usize)];
                let segment =
                    DamagedSegment::new(world.mesh.home.segments().join(name), world.mesh.home.root());
                let (offset, bit) = (random.random_range(0.3..0.7), random.random_range(0..8));
                let take = || segment.take(damage, offset, bit);
                let found = download_damaged(world, &whole, when, take).await?;
                if !matches!(found.outcome, Outcome::Refused(_) | Outcome::Broken(_)) {
                    taken.push(format!("{damage:?} {when:?}: {:?} (segment {name})", found.outcome));
                }
                results.push(found);
                drop(segment);
                if !world.downloads_are_normal().await {
                    return Err(Failure::failed("what was put back is not served again"));
                }
            }
        }
    }
    let mut report = Report::of_downloads("damage", &downloads.results().await);
    report.none_fails();
    report.bar(
        format!(
            "downloads of damaged segments that look whole or are wrong: {} of {}, at most 0",
            taken.len(),
            results.len()
        ),
        taken.is_empty(),
    );
    let of_damaged = Report::of_downloads("", &results);
    let (refused, broken) = (of_damaged.figures.refused, of_damaged.figures.broken);
    report.notes.push(format!("of those of damaged segments, {refused} were refused and {broken} broke"));
    report.messages.extend(taken.into_iter().chain(of_damaged.messages));
    Ok(report)
}

/// Downloads the whole history and damages one of its segments before or during the download.
async fn download_damaged(
    world: &World<'_>,
    whole: &ExpectedFile,
    when: When,
    take: impl FnOnce() -> std::io::Result<()>,
) -> Result<DownloadResult, Failure> {
    let pace = Pace { receive_buffer: Some(HELD_ROOM), ..Pace::QUICK };
    let deadline = Instant::now() + DOWNLOAD_TIMEOUT;
    let (mut taken, mut take) = (Ok(()), Some(take));
    let mut take = || {
        if let Some(take) = take.take() {
            taken = take();
        }
    };
    if matches!(when, When::Before) {
        take();
    }
    let result = download_file(world.edges.cached, whole, pace, deadline, take).await;
    taken.map_err(|error| cannot("damage a segment", &error))?;
    Ok(result)
}

/// A segment to damage. The original is restored when this is dropped.
struct DamagedSegment {
    path: PathBuf,
    aside: PathBuf,
}

impl DamagedSegment {
    fn new(path: PathBuf, root: &Path) -> Self {
        Self { path, aside: root.join("aside") }
    }

    /// Moves the segment aside and puts the damaged copy in its place.
    fn take(&self, damage: Damage, offset: f64, bit: u8) -> std::io::Result<()> {
        let damaged = self.aside.with_extension("damaged");
        fs::copy(&self.path, &damaged)?;
        let mut file = fs::File::options().read(true).write(true).open(&damaged)?;
        // The large table fills nearly all of the file.
        let offset = (file.metadata()?.len() as f64 * offset) as u64;
        match damage {
            Damage::Flipped => {
                let mut byte = [0];
                file.seek(SeekFrom::Start(offset))?;
                file.read_exact(&mut byte)?;
                file.seek(SeekFrom::Start(offset))?;
                file.write_all(&[byte[0] ^ (1 << bit)])?;
            }
            Damage::Cut => file.set_len(offset)?,
            Damage::Gone => {}
        }
        // A hard link and a rename, so that the path exists at every moment unless the segment is to be
        // removed.
        fs::hard_link(&self.path, &self.aside)?;
        match damage {
            Damage::Flipped | Damage::Cut => fs::rename(&damaged, &self.path),
            Damage::Gone => fs::remove_file(&self.path).and_then(|()| fs::remove_file(&damaged)),
        }
    }
}

impl Drop for DamagedSegment {
    fn drop(&mut self) {
        // Fails when there was no damage: then nothing was moved aside.
        let _ = fs::rename(&self.aside, &self.path);
    }
}
