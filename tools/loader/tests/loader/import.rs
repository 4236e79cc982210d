//! Importing segments: whole or not at all, with the columns of other schemas, into databases that have rows.

use bytes::Bytes;
use futures_util::stream;
use mesh_loader::{
    LoadError,
    import::{ImportSession, ImportSpan, MemberText, Scope, Stored, Taken},
};
use mesh_store::TimeUs;
use mesh_testbed::Database;
use tokio_postgres::Client;

use crate::text;

const BLOCKS: &str = "block_time,height,hash\n2024-01-01 00:00:01+00,1,aa\n2024-01-01 00:00:02+00,2,bb\n";
const BALANCES: &str =
    "account_id,block_time,tx_hash,balance\na,2024-01-01 00:00:01+00,t,5\na,2024-01-01 00:00:02+00,t,7\n";
/// 2024-01-01 00:00:00 in microseconds.
const MIDNIGHT: i64 = 1_704_067_200_000_000;

/// A segment of the heights 1 and 2.
fn span() -> ImportSpan {
    ImportSpan {
        segment: "test-1-1-2.zip".to_owned(),
        chain_id: "test".to_owned(),
        heights: (1, 2),
        times: (TimeUs(MIDNIGHT + 1_000_000), TimeUs(MIDNIGHT + 2_000_000)),
    }
}

type Broken = Box<dyn std::error::Error + Send + Sync>;

/// Imports a segment of these tables, `blocks` first.
async fn import(
    session: &mut ImportSession,
    tables: &[(&str, Scope, &str)],
) -> Result<Vec<Taken>, LoadError> {
    let mut import = session.begin(span()).await?;
    let mut taken = Vec::new();
    for (table, scope, text) in tables {
        let (header, rows) = text.split_once('\n').unwrap();
        let columns: Vec<String> = header.split(',').map(str::to_owned).collect();
        let rows = rows.lines().filter(|line| *line != "BROKEN").count() as u64;
        let member = MemberText { table, scope: *scope, columns: &columns, rows, sha256: [0; 32] };
        let pieces = text.split_inclusive('\n').map(|line| match line {
            "BROKEN\n" => Err(Broken::from("the block at byte 7 is damaged")),
            line => Ok(Bytes::from(line.to_owned())),
        });
        taken.push(import.take(member, stream::iter(pieces)).await?);
    }
    import.commit().await?;
    Ok(taken)
}

/// A text with the beginning of a time in place of each `@`.
fn with_times(text: &str) -> String {
    text.replace('@', "2024-01-01 00:00:0")
}

fn new(rows: u64) -> Taken {
    Taken::Rows { new: rows, skipped_columns: Vec::new(), defaulted_columns: Vec::new() }
}

async fn is_empty(client: &Client) -> bool {
    text(
        client,
        "SELECT count(*)::text FROM (SELECT height::text FROM blocks UNION ALL SELECT id FROM chain
        UNION ALL SELECT account_id FROM balances UNION ALL SELECT hash FROM last_block) AS every_row",
    )
    .await
        == "0"
}

#[tokio::test]
async fn a_segment_fills_an_empty_database_and_is_there_the_next_time() {
    let (database, client) = Database::with_client().await;
    let mut session = ImportSession::open(database.url()).await.unwrap();
    assert_eq!(session.stored().await.unwrap(), Stored { chain_id: None, heights: None, version: 1 });
    let tables = [
        ("blocks", Scope::Span, BLOCKS),
        ("balances", Scope::Span, BALANCES),
        ("orders", Scope::Span, "id\n"),
        (
            "epochs",
            Scope::UpToEnd,
            "id,start_time,expire_time,end_time,tx_hash,block_time\n0,2023-01-01,2023-01-02,,ab,2023-01-01\n",
        ),
        ("current_balances", Scope::UpToEnd, "account_id,tx_hash,block_time,balance\nb,t,2024-01-01,1\n"),
        ("chain", Scope::UpToEnd, "id,onerow_check\nother,t\n"),
        ("sightings", Scope::Span, "id\n1\n"),
    ];
    let taken = import(&mut session, &tables).await.unwrap();
    let expected = [new(2), new(2), Taken::There, new(1), Taken::Derived, Taken::There, Taken::NoSuchTable];
    assert_eq!(taken, expected);
    assert_eq!(text(&client, "SELECT height || hash FROM last_block").await, "2bb");
    let balances = "SELECT string_agg(account_id || balance, ',') FROM current_balances";
    assert_eq!(text(&client, balances).await, "a7");
    assert_eq!(text(&client, "SELECT id FROM chain").await, "test");
    let stored = Stored { chain_id: Some("test".to_owned()), heights: Some((1, 2)), version: 1 };
    assert_eq!(session.stored().await.unwrap(), stored);
    // Compared by rows, because the hashes of these texts are invented.
    let again = import(&mut session, &tables[..2]).await.unwrap();
    assert_eq!(again, [new(0), new(0)]);
    session.finish().await.unwrap();
    let analysed = "SELECT reltuples::text FROM pg_class WHERE oid = 'balances'::regclass";
    assert_eq!(text(&client, analysed).await, "2");
}

#[tokio::test]
async fn columns_of_other_schemas_are_skipped_or_left_to_their_default() {
    let database = Database::fresh().await;
    let mut session = ImportSession::open(database.url()).await.unwrap();
    let orders = "block_time,colour,seq_num,id,market_id,party_id,side,price,size,remaining,time_in_force,type,status,\
        version,batch_id,created_at,tx_hash\n\
        2024-01-01 00:00:02+00,red,0,o,m,p,1,5,1,1,1,1,1,1,1,2024-01-01 00:00:02+00,t\n";
    let tables = [("blocks", Scope::Span, BLOCKS), ("orders", Scope::Span, orders)];
    let taken = import(&mut session, &tables).await.unwrap();
    let Taken::Rows { new: 1, skipped_columns, defaulted_columns } = &taken[1] else { panic!("{taken:?}") };
    assert_eq!(*skipped_columns, ["colour"]);
    for column in ["post_only", "reduce_only", "reference"] {
        assert!(defaulted_columns.iter().any(|name| name == column), "{defaulted_columns:?}");
    }
    let client = database.connect().await;
    let stored = "SELECT id || post_only || (reference IS NULL) FROM orders";
    assert_eq!(text(&client, stored).await, "ofalsetrue");
    // Rows are compared by the columns that both have.
    assert!(matches!(
        import(&mut session, &[("orders", Scope::Span, orders)]).await.unwrap()[..],
        [Taken::Rows { new: 0, .. }]
    ));
    let other = orders.replace(",o,m,", ",o,n,");
    let error = import(&mut session, &[("orders", Scope::Span, &other)]).await.unwrap_err();
    let disagrees = "the database does not agree with test-1-1-2.zip: 1 rows of orders are stored otherwise";
    assert_eq!(error.to_string(), disagrees);
}

#[tokio::test]
async fn whatever_goes_wrong_leaves_nothing_of_the_segment() {
    let (database, client) = Database::with_client().await;
    let mut session = ImportSession::open(database.url()).await.unwrap();
    let cases = [
        ("a,@1+00,t,5\nBROKEN\n", "balances of test-1-1-2.zip cannot be read"),
        ("a,@1+00,t,x\n", "line 2, column balance"),
        ("a,@1+00,t,0.4\n", "line 2, column balance: an amount is a whole number"),
        ("\\.\n", "line 2: missing data"),
        ("a,@1+00,t,NaN\n", "balances of test-1-1-2.zip, line 2: a number is NaN or infinite"),
        ("a,@3+00,t,5\n", "balances holds 0 rows where the segment has 1"),
        ("a,@1+00,t,5\na,@1+00,t,6\n", "1 rows of balances are stored otherwise"),
    ];
    for (rows, what) in cases {
        let balances = format!("account_id,block_time,tx_hash,balance\n{}", with_times(rows));
        let tables = [("blocks", Scope::Span, BLOCKS), ("balances", Scope::Span, &*balances)];
        let error = import(&mut session, &tables).await.unwrap_err();
        assert!(error.to_string().contains(what), "{error}");
        assert!(is_empty(&client).await, "{what}");
    }
    // Nor of one that is given up before its end.
    let mut given_up = session.begin(span()).await.unwrap();
    let columns: Vec<String> = ["block_time", "height", "hash"].map(str::to_owned).to_vec();
    let member =
        MemberText { table: "blocks", scope: Scope::Span, columns: &columns, rows: 2, sha256: [0; 32] };
    given_up.take(member, stream::iter([Ok(Bytes::from_static(BLOCKS.as_bytes()))])).await.unwrap();
    drop(given_up);
    import(&mut session, &[("blocks", Scope::Span, BLOCKS)]).await.unwrap();
    assert!(!is_empty(&client).await);
}

#[tokio::test]
async fn blocks_that_differ_are_named() {
    let other_hash = BLOCKS.replace("bb", "cc");
    let other_time = BLOCKS.replace("00:00:02", "00:00:01.5");
    for (stored, height) in [(&other_hash, 2), (&other_time, 2)] {
        let database = Database::fresh().await;
        let mut session = ImportSession::open(database.url()).await.unwrap();
        import(&mut session, &[("blocks", Scope::Span, stored)]).await.unwrap();
        let error = import(&mut session, &[("blocks", Scope::Span, BLOCKS)]).await.unwrap_err();
        assert!(error.to_string().ends_with(&format!("it holds another block {height}")), "{error}");
    }
}

/// Time and height of a block that is stored before a segment comes, if one is; the segment's blocks; and the refusal.
/// Times are as in [`with_times`].
const UNSOUND: [(&str, &str, &str); 8] = [
    ("", "@1+00,1,aa\n", "height 3: height 2 is missing"),
    ("", "@2+00,2,bb\n", "height 2: height 1 is missing"),
    ("", "@2+00,1,aa\n@1+00,2,bb\n", "line 3: block 2 is not later than block 1"),
    ("", "@1+00,1,aa\n@2+00,3,bb\n", "line 3: height 2 is missing"),
    // In an order, and with times, that only the database can compare.
    ("", "@1+00,2,bb\n2024-01-01T01:00:02+01,1,aa\n", "height 2: block 2 is not later than block 1"),
    ("'@0+00', -1", "@1+00,1,aa\n@2+00,2,bb\n", "height 1: height 0 is missing"),
    ("'@5+00', 0", "@1+00,1,aa\n@2+00,2,bb\n", "height 1: block 1 is not later than block 0"),
    ("'@5+00', 4", "@1+00,1,aa\n@2+00,2,bb\n", "height 4: height 3 is missing"),
];

#[tokio::test]
async fn blocks_with_a_gap_or_a_time_that_does_not_rise_are_refused() {
    for (stored, blocks, message) in UNSOUND {
        let (database, client) = Database::with_client().await;
        if !stored.is_empty() {
            let insert = format!("INSERT INTO blocks VALUES ({}, 'zz')", with_times(stored));
            client.batch_execute(&insert).await.unwrap();
        }
        let before = text(&client, "SELECT count(*)::text FROM blocks").await;
        let mut session = ImportSession::open(database.url()).await.unwrap();
        let blocks = format!("block_time,height,hash\n{}", with_times(blocks));
        let error = import(&mut session, &[("blocks", Scope::Span, &blocks)]).await.unwrap_err();
        assert_eq!(error.to_string(), format!("blocks of test-1-1-2.zip, {message}"));
        assert_eq!(text(&client, "SELECT count(*)::text FROM blocks").await, before);
    }
}

#[tokio::test]
async fn another_chain_is_refused_and_a_schema_that_is_behind_not_written_to() {
    let database = Database::fresh().await;
    database.connect().await.batch_execute("INSERT INTO chain (id) VALUES ('mine')").await.unwrap();
    let mut session = ImportSession::open(database.url()).await.unwrap();
    let error = import(&mut session, &[]).await.unwrap_err();
    assert!(error.to_string().contains("the chain \"mine\", the segment \"test\""), "{error}");
    let empty = Database::empty().await;
    let error = ImportSession::open(empty.url()).await.err().unwrap();
    assert!(matches!(error, LoadError::SchemaBehind { .. }), "{error}");
}
