//! Cursors: their accepted spellings, and that they are positions only (P6 to P8).

use base64::{Engine, engine::general_purpose::STANDARD};
use mesh_oracles::{Oracle, cursor, texts};
use mesh_query::LISTS;
use mesh_store::KeyKind;
use mesh_testbed::{Answer, Database, Mesh};
use mesh_tests::{MeshClient, lists};
use proto_msgs::v2::Pagination;
use serde_json::{Value, json};

use crate::paging::{View, World, at, pages};

async fn ask_with(mesh: &MeshClient, view: &View, side: &str, cursor: &str) -> Answer {
    let escaped = cursor.replace('%', "%25").replace('+', "%2B").replace('&', "%26").replace('#', "%23");
    mesh.get(&format!("{}&pagination.{side}={escaped}", view.target)).await
}

fn cursor_of(json: &Value) -> String {
    base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(json.to_string())
}

#[tokio::test]
async fn p7_a_cursor_stays_valid_over_a_restart_and_on_another_replica() {
    let world = &World::all().await[1];
    let mut restarted = Mesh::start(&world.database).await;
    let (mesh, other) = (MeshClient::new(&restarted), MeshClient::new(&world.mesh));
    let oracle = world.oracle().await;
    let mut followed = Vec::new();
    for operation in lists() {
        let view = world.whole(&oracle, operation).await;
        let first = &pages(2)[0];
        view.check(&mesh, first).await;
        let end = view.listing.page(first).0[1].cursor.clone();
        followed.push((view, at(first, &end)));
    }
    restarted.service_mut("query").restart().await;
    for (view, page) in &followed {
        view.check(&mesh, page).await;
        view.check(&other, page).await;
    }
}

/// A cursor of the client's own may lie between two rows, also between two times that the store can
/// distinguish.
#[tokio::test]
async fn p7_a_position_between_two_rows_is_valid() {
    let world = &World::all().await[1];
    let (mesh, oracle) = (MeshClient::new(&world.mesh), world.oracle().await);
    for operation in lists() {
        let view = world.whole(&oracle, operation).await;
        let third = &view.listing.rows[2];
        let list = LISTS.into_iter().find(|list| list.name == third.list).unwrap();
        let firsts: Vec<String> = match third.key[0].as_i64() {
            Some(first) => {
                let mut firsts = vec![first, -1, 0, i64::MIN, i64::MIN + 1, i64::MAX];
                if list.key[0].kind == KeyKind::Time {
                    firsts.extend([-1000, -999, -501, -1, 1, 499, 999, 1000].map(|ns| first + ns));
                }
                firsts.iter().map(ToString::to_string).collect()
            }
            None => {
                let id = third.key[0].as_str().unwrap();
                let near = [String::new(), "\u{10ffff}".to_owned(), format!("{id}x"), id.to_uppercase()];
                near.into_iter().chain([id.to_owned()]).collect()
            }
        };
        for (first, rest) in firsts.iter().flat_map(|first| ["", "\u{10ffff}"].map(|rest| (first, rest))) {
            let others = list.key.iter().skip(1);
            let others =
                others.map(|column| if column.kind == KeyKind::Integer { "5" } else { rest }.to_owned());
            let key: Vec<String> = [first.clone()].into_iter().chain(others).collect();
            for page in pages(2) {
                view.check(&mesh, &at(&page, &cursor(list.name, &key))).await;
            }
        }
    }
}

/// Tags for which the standard alphabet gives `+`, `/` and both lengths of padding.
#[tokio::test]
async fn p8_the_standard_alphabet_and_padding_are_taken() {
    let database = Database::fresh().await;
    let tags = ["v1", "~~~~", "???????", ">>>>>>>>", "ÿÿÿÿ", "v22", "v333"];
    let insert = "INSERT INTO protocol_upgrade_proposals
        SELECT 9 + n, tag, '{}', 'PROTOCOL_UPGRADE_PROPOSAL_STATUS_PENDING', 'tx', '2023-01-01 00:00:00+00'
        FROM unnest($1::text[]) WITH ORDINALITY AS tags (tag, n)";
    database.connect().await.execute(insert, &[&tags.as_slice()]).await.unwrap();
    let mesh = Mesh::start(&database).await;
    let (mesh, oracle) = (MeshClient::new(&mesh), Oracle::open(database.connect().await).await.unwrap());
    let view = View::read(&oracle, "/api/v2/upgrade/proposals?".to_owned()).await;
    let mut letters = String::new();
    for row in &view.listing.rows {
        let standard = STANDARD.encode(json!({ "k": texts(&row.key), "o": "pup" }).to_string());
        let expected = view.listing.answer(&at(&pages(3)[0], &row.cursor));
        for text in [standard.as_str(), standard.trim_end_matches('=')] {
            let answer = ask_with(&mesh, &view, "first=3&pagination.after", text).await;
            assert_eq!(answer.json(), expected, "{text}");
        }
        // A `+` that a client did not escape is decoded as a space.
        let careless =
            mesh.get(&format!("{}pagination.first=3&pagination.after={standard}", view.target)).await;
        assert_eq!(careless.json(), expected, "{standard}");
        letters.push_str(&standard);
    }
    assert!(letters.contains('+') && letters.contains('/') && letters.contains('='), "{letters}");
}

#[tokio::test]
async fn p6_an_invalid_cursor_or_one_of_another_list_is_refused() {
    let world = &World::all().await[1];
    let (mesh, oracle) = (MeshClient::new(&world.mesh), world.oracle().await);
    for operation in lists() {
        let view = world.whole(&oracle, operation).await;
        let row = &view.listing.rows[2];
        let (name, own) = (row.list.as_str(), texts(&row.key));
        let with = |place: usize, value: Value| {
            let mut key = json!(own);
            key[place] = value;
            json!({ "o": name, "k": key })
        };
        let more = [own.clone(), vec!["x".to_owned()]].concat();
        let mut refused: Vec<Value> = vec![
            json!({ "o": "", "k": own }),
            json!({ "o": "history", "k": own }),
            json!({ "o": name }),
            json!({ "k": own }),
            json!({ "o": name, "k": [] }),
            json!({ "o": name, "k": own[1..] }),
            json!({ "o": name, "k": more }),
            json!({ "o": name, "k": own, "more": 1 }),
            json!({ "o": name, "k": "3" }),
            json!([name, own]),
            json!({ "o": name.to_uppercase(), "k": own }),
            json!({ "o": name, "k": {} }),
            json!(name),
            json!({}),
            json!([]),
            json!(null),
            with(0, json!(3)),
            with(own.len() - 1, json!("a\0b")),
        ];
        if row.key[0].is_number() {
            let no_numbers = ["", "x", "1.5", " 1", "0x1", "9223372036854775808", "١"];
            refused.extend(no_numbers.map(|wrong| with(0, json!(wrong))));
        }
        let others = LISTS.into_iter().filter(|list| list.name != name);
        refused.extend(others.map(|list| json!({ "o": list.name, "k": vec!["3"; list.key.len()] })));
        let mut texts: Vec<String> = refused.iter().map(cursor_of).collect();
        texts.extend(["x", "!!!!", "e30", "AAAA", "{}"].map(str::to_owned));
        texts.push("A".repeat(1025));
        for (text, side) in texts.iter().flat_map(|text| ["after", "before"].map(|side| (text, side))) {
            let answer = ask_with(&mesh, &view, side, text).await;
            assert_eq!(answer.status, 400, "{name} {text}: {answer:?}");
            assert_eq!(answer.json()["details"][0]["code"], 10028, "{text}");
        }
    }
}

#[tokio::test]
async fn p8_a_cursor_has_at_most_1024_characters() {
    let world = &World::all().await[1];
    let (mesh, oracle) = (MeshClient::new(&world.mesh), world.oracle().await);
    let view = View::read(&oracle, "/api/v2/upgrade/proposals?".to_owned()).await;
    let of_length = |characters: usize| {
        let mut cursors = (0..characters).map(|tag| cursor("pup", &["3".to_owned(), "t".repeat(tag)]));
        cursors.find(|cursor| cursor.len() == characters).unwrap()
    };
    let page = Pagination { first: Some(9), ..Pagination::default() };
    view.check(&mesh, &at(&page, &of_length(1024))).await;
    let answer = ask_with(&mesh, &view, "after", &of_length(1026)).await;
    assert_eq!((answer.status, &answer.json()["details"][0]["code"]), (400, &10028.into()));
}
