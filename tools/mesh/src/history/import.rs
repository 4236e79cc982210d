//! `mesh history import`: loads segments in rising order of height, each in one transaction, after checking
//! that they form a chain and that it continues the database's blocks (H11).

use std::collections::BTreeSet;

use futures_util::stream;
use mesh_history::{Segment, SegmentList, SegmentName, SegmentStore};
use mesh_loader::import::{ImportSession, ImportSpan, MemberText, Scope, Stored, Taken, stored_chain};
use mesh_problem::error_chain;
use mesh_store::TimeUs;
use serde_json::json;

use crate::{
    cli::ImportArgs,
    failure::{Failure, failed},
    migrate::migrate,
    seal::variables,
    terminal::{self, print, print_json, print_line},
    up::backing::reach_postgres,
};

pub(crate) async fn import(args: &ImportArgs) -> Result<(), Failure> {
    let segments = SegmentStore::open_folder(&args.folder)?;
    let list = segments.list().await?;
    reach_postgres(&args.postgres).await?;
    let (list, others) = of_database(list, stored_chain(&args.postgres).await?);
    check_chain(&list).map_err(|what| refused(&what))?;
    migrate(&args.postgres, args.history.as_deref().map(|root| variables(&args.postgres, root))).await?;
    let mut session = ImportSession::open(&args.postgres).await?;
    check_fit(&session.stored().await?, &list).map_err(|what| refused(&what))?;

    let mut imported = Vec::new();
    let mut notes: BTreeSet<String> =
        others.iter().map(|name| format!("ignored {name}: it is of another chain")).collect();
    let all = list.segments.len();
    for (number, segment) in (1..).zip(&list.segments) {
        terminal::overwrite(&format!("importing {number} of {all}: {}", segment.name));
        let outcome = import_one(&segments, segment, &mut session, &mut notes).await;
        terminal::clear();
        let rows = outcome.map_err(|failure| {
            let before = number - 1;
            failed!("{before} of {all} segments are in the database; then: {failure}")
        })?;
        if rows > 0 && !args.json {
            print(&format!("imported {}: {rows} rows", segment.name))?;
        }
        imported.push((segment.name.to_string(), rows));
    }
    notes.extend(
        session
            .unfilled()
            .await?
            .into_iter()
            .map(|table| format!("no segment has {table}: `mesh load DIR --postgres URL` loads {table}.csv")),
    );
    notes.iter().for_each(|note| print_line(note));
    session.finish().await?;
    if args.json {
        let objects = imported.iter().map(|(segment, rows)| json!({ "segment": segment, "rows": rows }));
        print_json(&objects.collect::<Vec<_>>())?;
    } else {
        let rows: u64 = imported.iter().map(|(_, rows)| rows).sum();
        let there = imported.iter().filter(|(_, rows)| *rows == 0).count();
        print(&format!("{rows} rows from {} of {all} segments, {there} were there", all - there))?;
    }
    Ok(())
}

fn refused(what: &str) -> Failure {
    failed!("nothing was imported: {what}")
}

/// The segments of the database's chain, or when it has none of the chain with most segments; and the others.
fn of_database(list: SegmentList, stored: Option<String>) -> (SegmentList, Vec<SegmentName>) {
    let is_held = |chain_id: &String| list.segments.iter().any(|segment| segment.chain_id == *chain_id);
    match stored.filter(is_held).or_else(|| list.main_chain()) {
        Some(chain_id) => list.of_chain(&chain_id),
        None => (list, Vec::new()),
    }
}

/// Refuses segments that do not form a complete chain.
fn check_chain(list: &SegmentList) -> Result<(), String> {
    if let Some(unreadable) = list.unreadable.first() {
        return Err(error_chain(&unreadable.error));
    }
    if let Some(fault) = list.chain_faults().first() {
        return Err(fault.to_string());
    }
    if list.segments.is_empty() {
        return Err("there is no segment in the folder; give a home or the folder of the segments".to_owned());
    }
    Ok(())
}

/// Refuses a chain that does not continue the stored blocks.
fn check_fit(stored: &Stored, list: &SegmentList) -> Result<(), String> {
    let Some(first) = list.segments.first() else { return Ok(()) };
    let (name, theirs) = (&first.name, &first.chain_id);
    if let Some(chain) = stored.chain_id.as_ref().filter(|chain| *chain != theirs) {
        return Err(format!("the database holds the chain {chain:?}, the segments are of {theirs:?}"));
    }
    let newer =
        |segment: &&std::sync::Arc<Segment>| i64::from(segment.database_version) > stored.version.into();
    if let Some(newer) = list.segments.iter().find(newer) {
        return Err(format!(
            "{} is of schema version {}, this build knows {}; use a newer one",
            newer.name, newer.database_version, stored.version
        ));
    }
    let from = i64::try_from(first.height_from).unwrap_or(i64::MAX);
    match stored.heights {
        None if first.previous_id.is_some() => Err(format!(
            "the database is empty, and what came before {name} is not in the folder; bring those segments, too"
        )),
        None => Ok(()),
        Some((_, newest)) if from > newest.saturating_add(1) => Err(format!(
            "the database ends at height {newest} and {name} begins at {from}; bring the segments in between"
        )),
        Some((oldest, _)) if from < oldest => Err(format!(
            "the database begins at height {oldest}, later than {name}; import into an empty one"
        )),
        Some(_) => Ok(()),
    }
}

/// Imports a segment and returns the number of rows that were new.
async fn import_one(
    segments: &SegmentStore,
    segment: &Segment,
    session: &mut ImportSession,
    notes: &mut BTreeSet<String>,
) -> Result<u64, Failure> {
    let metadata = segments.metadata(&segment.name).await?;
    let height = |height: u64| i64::try_from(height).unwrap_or(i64::MAX);
    let time = TimeUs::at_or_before_ns;
    let span = ImportSpan {
        segment: segment.name.to_string(),
        chain_id: segment.chain_id.clone(),
        heights: (height(segment.height_from), height(segment.height_to)),
        times: (time(segment.block_time_from), time(segment.block_time_to)),
    };
    let mut members: Vec<_> = segment.members.iter().zip(&metadata.members).collect();
    // Blocks first: when they differ, the import fails before the other members are read.
    members.sort_by_key(|(member, _)| member.index.name != "history/blocks.csv");
    let mut import = session.begin(span).await?;
    let mut rows = 0;
    for (member, described) in members {
        let name = &member.index.name;
        if *name != described.name || member.sha256 != described.sha256 {
            return Err(failed!("{} was replaced meanwhile; try again", segment.name));
        }
        let (scope, table) = match name.split_once('/') {
            Some(("history", table)) => (Scope::Span, table),
            Some((_, table)) => (Scope::UpToEnd, table),
            None => continue,
        };
        let table = table.trim_end_matches(".csv");
        let columns = &described.columns[..];
        let described = MemberText { table, scope, columns, rows: member.rows, sha256: member.sha256.0 };
        let text = stream::try_unfold(segments.text(segment, member), |mut text| async {
            let piece = text.next().await?;
            Ok(piece.map(|piece| (piece, text)))
        });
        // Boxed, because the future is large and would enlarge all its callers.
        match Box::pin(import.take(described, text)).await? {
            Taken::Rows { new, skipped_columns, defaulted_columns } => {
                rows += new;
                for (columns, what) in [(skipped_columns, "skipped"), (defaulted_columns, "left to default")]
                {
                    if !columns.is_empty() {
                        notes.insert(format!("{what} in {table}: {}", columns.join(", ")));
                    }
                }
            }
            Taken::NoSuchTable => {
                notes.insert(format!("skipped {name}: the schema has no such table"));
            }
            Taken::There | Taken::Derived => {}
        }
    }
    import.commit().await?;
    Ok(rows)
}
