//! `mesh history verify`: prints a line for each fault of a folder of segments.

use mesh_history::{Deadlines, SegmentStore, Verification};
use serde_json::json;

use crate::{
    cli::VerifyArgs,
    failure::{Failure, failed},
    seal::SegmentRow,
    terminal::{self, print, print_json, print_line},
};

/// Verifies a folder of segments.
pub(crate) async fn verify(args: &VerifyArgs) -> Result<(), Failure> {
    let segments = SegmentStore::open_folder(&args.folder, Deadlines::default())?;
    let verified = segments.verify_all(args.chain.as_deref(), |name, number, all| {
        terminal::overwrite(&format!("verifying {number} of {all}: {name}"));
    });
    let verified = verified.await;
    terminal::clear();
    let verified = verified?;
    if args.json {
        print_json(&as_json(&verified))?;
    } else {
        verified.faults.iter().for_each(|fault| print(&fault.to_string()));
    }
    if !verified.others.is_empty() {
        print_line(&format!(
            "not verified, because they are not segments of this chain: {}",
            verified.others.join(", ")
        ));
    }
    if !verified.faults.is_empty() {
        return Err(failed!(
            "the history in {} is incomplete or damaged, {} wrong; copy the listed files again from their source",
            args.folder.display(),
            counted(verified.faults.len(), "thing is", "things are")
        ));
    }
    let (Some(first), Some(last)) = (verified.sound.first(), verified.sound.last()) else {
        return Err(failed!(
            "there is no segment in {}; give a home or the folder of the segments",
            args.folder.display()
        ));
    };
    if verified.begins_late {
        let from = first.height_from;
        print_line(&format!(
            "what came before height {from} is not here, so the first previous id was not checked"
        ));
    }
    if !args.json {
        let rows: u64 = verified.sound.iter().map(|segment| SegmentRow::of(segment).rows).sum();
        let segments = counted(verified.sound.len(), "segment", "segments");
        print(&format!(
            "{segments} from height {} to {} with {rows} rows: sound",
            first.height_from, last.height_to
        ));
    }
    Ok(())
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
