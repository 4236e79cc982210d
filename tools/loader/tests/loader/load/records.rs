//! Every record of a file becomes a row, independently of its content and of the boundaries of the pieces.

use mesh_testbed::Database;
use rand::{Rng, SeedableRng, rngs::SmallRng};

use super::load;

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
