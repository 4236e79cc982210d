//! `mesh history verify`: prints a line for each fault of a folder of segments. What the verifier finds sound is
//! counted once more with other readers of ZIP and CSV.

use std::{
    error::Error,
    fs::File,
    path::{Path, PathBuf},
    sync::Arc,
};

use csv::ByteRecord;
use mesh_history::{Fault, Segment, SegmentStore, Verification};
use serde_json::json;
use tokio::task::spawn_blocking;

use crate::{
    cli::VerifyArgs,
    failure::{Failure, failed},
    seal::SegmentRow,
    terminal::{self, print, print_json, print_line},
    zip::Members,
};

pub(crate) async fn verify(args: &VerifyArgs) -> Result<(), Failure> {
    let segments = SegmentStore::open_folder(&args.folder)?;
    let verified = segments.verify_all(args.chain.as_deref(), |name, number, all| {
        terminal::overwrite(&format!("verifying {number} of {all}: {name}"));
    });
    let verified = verified.await;
    terminal::clear();
    let mut verified = verified?;
    let files =
        verified.sound.iter().filter_map(|segment| Some((segment.clone(), segments.file(&segment.name)?)));
    let files: Vec<_> = files.collect();
    let recounted = spawn_blocking(move || recount(&files)).await;
    let recounted = recounted.map_err(|_| Failure::failed("the segments cannot be counted; try again"))?;
    verified.faults.extend(recounted);
    if args.json {
        print_json(&as_json(&verified))?;
    } else {
        for fault in &verified.faults {
            print(&fault.to_string())?;
        }
    }
    if !verified.others.is_empty() {
        let others = verified.others.join(", ");
        print_line(&format!("not verified, because they are not segments of this chain: {others}"));
    }
    let folder = args.folder.display();
    if !verified.faults.is_empty() {
        return Err(failed!(
            "the history in {folder} is incomplete or damaged, {} wrong; copy the listed files again from their source",
            counted(verified.faults.len(), "thing is", "things are")
        ));
    }
    let (Some(first), Some(last)) = (verified.sound.first(), verified.sound.last()) else {
        return Err(failed!("there is no segment in {folder}; give a home or the folder of the segments"));
    };
    let (from, to) = (first.height_from, last.height_to);
    if verified.begins_late {
        print_line(&format!(
            "what came before height {from} is not here, so the first previous id was not checked"
        ));
    }
    if !args.json {
        let rows: u64 = verified.sound.iter().map(|segment| SegmentRow::of(segment).rows).sum();
        let segments = counted(verified.sound.len(), "segment", "segments");
        print(&format!("{segments} from height {from} to {to} with {rows} rows: sound"))?;
    }
    Ok(())
}

/// Counts the rows of verified segments, by rising height, with libraries that share no code with the verifier. The
/// retention may remove the oldest ones meanwhile.
fn recount(segments: &[(Arc<Segment>, PathBuf)]) -> Vec<Fault> {
    let is_removed = |index: usize| segments[..=index].iter().all(|(_, file)| !file.exists());
    let faults = segments.iter().enumerate().filter_map(|(index, (segment, file))| {
        terminal::overwrite(&format!("counting {} of {}: {}", index + 1, segments.len(), segment.name));
        let what = match rows_of_members(file) {
            Ok(found) if found == expected(segment) => return None,
            Err(_) if is_removed(index) => return None,
            Ok(_) => "another reader finds other members or numbers of rows".to_owned(),
            Err(error) => format!("another reader cannot read it ({error})"),
        };
        Some(Fault { object: segment.name.to_string(), what })
    });
    let faults = faults.collect();
    terminal::clear();
    faults
}

/// Names and rows of the members according to a segment's own metadata.
fn expected(segment: &Segment) -> Vec<(String, u64)> {
    segment.members.iter().map(|member| (member.index.name.clone(), member.rows)).collect()
}

fn rows_of_members(path: &Path) -> Result<Vec<(String, u64)>, Box<dyn Error>> {
    let mut members = Members::open(File::open(path)?)?;
    let mut found = Vec::new();
    for number in 0..members.count() {
        let name = members.name(number).to_owned();
        // The rest is the segment's description of itself.
        if name.ends_with(".csv") {
            let (mut rows, mut member, mut row) = (0, members.rows(number)?, ByteRecord::new());
            while member.read_byte_record(&mut row)? {
                rows += 1;
            }
            found.push((name, rows));
        }
    }
    Ok(found)
}

fn as_json(verified: &Verification) -> serde_json::Value {
    let faults = verified.faults.iter().map(|fault| json!({ "segment": fault.object, "what": fault.what }));
    json!({
        "sound": verified.sound.iter().map(|segment| SegmentRow::of(segment)).collect::<Vec<_>>(),
        "faults": faults.collect::<Vec<_>>(),
        "beginsLate": verified.begins_late,
        "others": verified.others,
    })
}

fn counted(count: usize, one: &str, more: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { more })
}
