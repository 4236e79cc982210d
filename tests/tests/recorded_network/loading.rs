//! What is loaded is what was recorded, line by line; the report names loaded files and skipped ones.

use mesh_tests::Copier;

use crate::recorded_network::with_recording;

/// No operation needs the column that loading skips: it repeats signers and filters.
const SPEC_DATA: &str = "jsonb_build_object('external', jsonb_build_object('oracle', \
    jsonb_build_object('signers', signers, 'filters', filters))) AS data";

#[test]
fn every_file_is_loaded_whole_or_named_as_skipped() {
    with_recording(async |recording| {
        let report = &recording.report;
        let is_csv = |file: &&str| file.ends_with(".csv");
        let skipped: Vec<&str> = report.skipped_files.iter().map(|skipped| skipped.file.as_str()).collect();
        let (skipped, others): (Vec<&str>, Vec<&str>) = skipped.into_iter().partition(is_csv);
        assert!(others.contains(&"README.md"), "{others:?}");
        let loaded = report.tables.iter().map(|loaded| format!("{}.csv", loaded.table));
        let mut reported: Vec<String> = loaded.chain(skipped.iter().map(ToString::to_string)).collect();
        reported.sort();
        assert_eq!(reported, recording.files());
        let copier = Copier::open(&recording.database).await;
        for loaded in &report.tables {
            let file = recording.folder.join(format!("{}.csv", loaded.table));
            let recorded = std::fs::read_to_string(file).unwrap();
            let header = recorded.lines().next().unwrap();
            let columns: Vec<&str> =
                header.split(',').map(|name| if name == "data" { SPEC_DATA } else { name }).collect();
            let printed = format!("SELECT {} FROM {}", columns.join(", "), loaded.table);
            let printed = String::from_utf8(copier.query(&printed).await).unwrap();
            // No value of the recording contains a line break.
            let sorted = |text: &str| {
                let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
                lines.sort();
                lines
            };
            let (printed, recorded) = (sorted(&printed), sorted(&recorded));
            assert_eq!(usize::try_from(loaded.rows), Ok(recorded.len() - 1), "{}", loaded.table);
            let difference = printed.iter().zip(&recorded).find(|(printed, recorded)| printed != recorded);
            assert_eq!((difference, printed.len()), (None, recorded.len()), "{}", loaded.table);
        }
        // No operation needs the skipped files: candles are computed from trades.
        assert_eq!(skipped, ["candles.csv", "parties.csv", "transaction_results.csv"]);
        for loaded in &report.tables {
            let expected: (&[&str], &[&str]) = match &*loaded.table {
                "oracle_specs" => (&["data"], &["internal_conditions"]),
                _ => (&[], &[]),
            };
            assert_eq!(loaded.skipped_columns, expected.0, "{}", loaded.table);
            assert_eq!(loaded.defaulted_columns, expected.1, "{}", loaded.table);
        }
    });
}
