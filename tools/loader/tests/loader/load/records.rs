//! Every record of a file becomes a row, independently of its content and of the boundaries of the pieces.

use mesh_testbed::Database;
use rand::{Rng, SeedableRng, rngs::SmallRng};

use super::load;

/// A table of one column that takes any text, in each of the forms that a marker of the end may have.
#[tokio::test]
async fn every_record_becomes_a_row_whatever_it_looks_like() {
    const MARKERS: [&str; 12] = [
        "id\n\\.\nb\n", "id\na\n\\.\n", "id\na\n\\.", "id\r\n\\.\r\nb\r\n", "id\r\\.\rb\r", "id\r\\.",
        "id\n\"\\.\"\nb\n", "id\n\\.x\n\\\n", "id\n\\.\n\\.\n", "id\n\"a\n\\.\nb\"\nc\n",
        "id\r\n\"a\r\n\\.\r\nb\"\r\nc", "\"id\n\"\n\\.\n",
    ];
    let (database, client) = Database::with_client().await;
    client.batch_execute("CREATE TABLE lines (id text, \"id\n\" text)").await.unwrap();
    for content in MARKERS {
        let report = load(&database, &[("lines.csv", content)]).await.unwrap();
        let plain = |line: &str| line.trim_matches('"').replace("\r\n", "\n");
        let expected: Vec<String> = records(content).iter().map(|line| plain(line)).collect();
        assert_eq!(report.tables[0].rows, expected.len() as u64, "{content:?}");
        let stored = "SELECT coalesce(id, \"id\n\") FROM lines ORDER BY ctid";
        let stored = client.query(stored, &[]).await.unwrap();
        let stored: Vec<String> = stored.iter().map(|row| plain(row.get(0))).collect();
        assert_eq!(stored, expected, "{content:?}");
        client.batch_execute("TRUNCATE lines").await.unwrap();
    }
}

/// The records of a text after its header, by another reader: the line ends outside of quotes.
fn records(content: &str) -> Vec<String> {
    let (mut records, mut quoted) = (vec![String::new()], false);
    for letter in content.replace("\r\n", "\n").chars() {
        quoted ^= letter == '"';
        match letter {
            '\n' | '\r' if !quoted => records.push(String::new()),
            letter => records.last_mut().unwrap().push(letter),
        }
    }
    if records.last().is_some_and(String::is_empty) {
        records.pop();
    }
    records.split_off(1)
}

#[tokio::test]
async fn records_of_any_form_are_counted_as_postgresql_counts_them() {
    let mut random = SmallRng::seed_from_u64(34);
    let (database, client) = Database::with_client().await;
    client.batch_execute("CREATE TABLE lines (id text, note text)").await.unwrap();
    let pieces = ["a", "", "\\", ".", "\\.", "\"\"", "\"x\ny\"", "\"\\.\"", "\"\n\\.\n\"", "\"a\"\"b\"", "é"];
    for _ in 0..60 {
        let end = ["\n", "\r\n", "\r"][random.random_range(0..3)];
        let (mut content, rows) = (format!("id,note{end}"), random.random_range(1..40));
        for row in 0..rows {
            for field in 0..2 {
                content.push_str(if field == 0 { "" } else { "," });
                (0..random.random_range(0..3))
                    .for_each(|_| content.push_str(pieces[random.random_range(0..pieces.len())]));
            }
            content.push_str(if row + 1 == rows && random.random_bool(0.3) { "" } else { end });
        }
        // Long enough that pieces of the file begin anywhere.
        let padding = format!("{}{}", "x".repeat(random.random_range(262_100..262_150)), end);
        let content = content.replacen(end, &format!("{end}p,{padding}"), 1);
        let report = load(&database, &[("lines.csv", &content)]).await.unwrap();
        assert_eq!(report.tables[0].rows, rows + 1, "{:?}", content.replace(&padding, ""));
        client.batch_execute("TRUNCATE lines").await.unwrap();
    }
}
