//! The report of loading the recording: loaded files and skipped ones.

use crate::recorded_network::recording::{say, with_recording};

#[test]
fn every_file_is_loaded_whole_or_named_as_skipped() {
    with_recording(async |recording| {
        let report = &recording.report;
        let skipped = report.skipped_files.iter().map(|skipped| skipped.file.clone());
        let loaded = report.tables.iter().map(|loaded| format!("{}.csv", loaded.table));
        let mut reported: Vec<String> = loaded.chain(skipped).collect();
        reported.sort();
        assert_eq!(reported, recording.files());
        for loaded in &report.tables {
            let table = recording.table(&loaded.table);
            assert_eq!(usize::try_from(loaded.rows), Ok(table.len()), "{}", loaded.table);
            assert!(loaded.skipped_columns.iter().all(|name| table.columns.contains(name)), "{loaded:?}");
        }
        // No operation needs the skipped files: candles are computed from trades, and the `data` of oracle
        // specs repeats their signers and filters (another test compares both).
        let skipped: Vec<&str> = report.skipped_files.iter().map(|skipped| skipped.file.as_str()).collect();
        assert_eq!(skipped, ["candles.csv", "parties.csv", "transaction_results.csv"]);
        let columns = report.tables.iter().flat_map(|loaded| {
            loaded.skipped_columns.iter().map(|column| format!("{}.{column}", loaded.table))
        });
        let columns: Vec<String> = columns.collect();
        assert_eq!(columns, ["oracle_specs.data"]);

        let rows: u64 = report.tables.iter().map(|loaded| loaded.rows).sum();
        let (tables, ms) = (report.tables.len(), recording.loaded_in.as_millis());
        say(&format!("loaded {rows} rows of {tables} tables in {ms} ms"));
        for file in &report.skipped_files {
            say(&format!("skipped file {}: {}", file.file, file.reason));
        }
        for loaded in &report.tables {
            for column in &loaded.skipped_columns {
                say(&format!("skipped column {}.{column}: the table does not have it", loaded.table));
            }
            for column in &loaded.defaulted_columns {
                say(&format!("default for {}.{column}: the file does not have it", loaded.table));
            }
        }
    });
}
