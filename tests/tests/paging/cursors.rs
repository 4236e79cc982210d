//! Cursors: their content, their accepted spellings, and that they are positions only (P6 to P8, P12).

use base64::{Engine, engine::general_purpose::STANDARD};
use mesh_testbed::{Answer, Database, Mesh};
use mesh_tests::client::MeshClient;
use serde_json::json;

use crate::paging::{
    list::{LISTS, List, MARKET, Part, TRADED, cursor, cursor_of_json, number, text},
    meshes::{SEVEN, seven, stored, views},
    page::{Page, PageRequest, View},
};

async fn ask_with(mesh: &MeshClient, view: &View, side: &str, cursor: &str) -> Answer {
    let escaped = cursor.replace('%', "%25").replace('+', "%2B").replace('&', "%26").replace('#', "%23");
    mesh.get(&format!("{}&pagination.{side}={escaped}", view.path)).await
}

#[tokio::test]
async fn p7_a_cursor_may_be_used_with_any_size_direction_and_order() {
    let (mesh, views) = seven().await;
    for view in &views {
        // Cursors of pages of one kind are used for pages of all kinds.
        for source in [
            PageRequest::first(2),
            PageRequest::last(5),
            PageRequest::first(3).oldest_first(),
            PageRequest::last(1).oldest_first(),
        ] {
            let page = view.get(&mesh, &source).await;
            for (text, _) in &page.edges {
                let key = &view.row_of(text).expect("a row of the view").key;
                for size in [1, 4, 100] {
                    for ask in [PageRequest::first(size), PageRequest::last(size)] {
                        for oldest_first in [false, true] {
                            let ask = ask.clone().in_order(oldest_first);
                            let expected = view.expected(&ask.clone().at_position(view.list, key));
                            assert_eq!(view.answer(&mesh, &ask.cursor(text)).await, expected);
                        }
                    }
                }
            }
        }
    }
}

#[tokio::test]
async fn p7_a_cursor_stays_valid_over_a_restart_and_on_another_replica() {
    let database = stored(&SEVEN).await;
    let mut mesh = Mesh::start(&database).await;
    let views = views(&SEVEN);
    let mesh_client = MeshClient::new(&mesh);
    let mut cursors = Vec::new();
    for view in &views {
        cursors.push(view.get(&mesh_client, &PageRequest::first(2)).await.end);
    }
    mesh.service_mut("query").restart().await;
    let other = Mesh::start(&database).await;
    let other = MeshClient::new(&other);
    for (view, cursor) in views.iter().zip(&cursors) {
        let expected = view.expected(&PageRequest::first(2).at_position(view.list, &view.list.key(6)));
        for mesh in [&mesh_client, &other] {
            assert_eq!(view.answer(mesh, &PageRequest::first(2).cursor(cursor)).await, expected);
        }
    }
}

/// A cursor of the client's own may lie between two rows, also between two times that the store can
/// distinguish.
#[tokio::test]
async fn p7_a_position_between_two_rows_is_valid() {
    let (mesh, views) = seven().await;
    for view in &views {
        let list = view.list;
        let beside = |first: Part, rest: &str| {
            let mut key = list.key(3);
            key[0] = first;
            key.iter_mut().skip(1).for_each(|part| *part = text(rest));
            key
        };
        let third = list.key(3).remove(0);
        let mut positions = vec![beside(third.clone(), ""), beside(third.clone(), "\u{10ffff}")];
        match third {
            Part::Number(start) => {
                let mut firsts = vec![-1, 0, i64::MIN, i64::MIN + 1, i64::MAX];
                if matches!(list, List::Candles | List::Trades) {
                    firsts.extend([-1000, -999, -501, -1, 1, 499, 999, 1000].map(|ns| start + ns));
                }
                positions.extend(firsts.into_iter().map(|first| beside(number(first), "x")));
            }
            Part::Text(id) => {
                let firsts = ["", "\u{10ffff}", &id[..63], &format!("{id}x"), &id.to_uppercase()];
                positions.extend(firsts.map(|first| beside(text(first), "x")));
            }
        }
        for position in &positions {
            for ask in [PageRequest::first(2), PageRequest::last(2)] {
                for oldest_first in [false, true] {
                    view.get(&mesh, &ask.clone().in_order(oldest_first).at_position(list, position)).await;
                }
            }
        }
    }
}

#[tokio::test]
async fn p8_a_cursor_is_base64_of_compact_json_without_padding() {
    let (mesh, views) = seven().await;
    let shown = [
        (List::Proposals, r#"{"o":"pup","k":["7","v1"]}"#.to_owned()),
        (List::Candles, r#"{"o":"candle","k":["1687255620000000000"]}"#.to_owned()),
        (
            List::Summaries,
            format!(
                r#"{{"o":"epochReward","k":["7","{}","VOTE","ACCOUNT_TYPE_GLOBAL_REWARD"]}}"#,
                crate::paging::list::MARKET
            ),
        ),
        (List::Delegations, format!(r#"{{"o":"delegation","k":["7","{:0>64}","{:0>64}"]}}"#, "bb", "cc")),
    ];
    for (view, (list, json)) in views.iter().zip(shown) {
        assert_eq!(view.list, list);
        let page = view.get(&mesh, &PageRequest::first(1)).await;
        assert_eq!(page.start, cursor_of_json(&json));
        assert!(!page.start.contains(['=', '+', '/']));
    }
}

/// Tags for which the standard alphabet gives `+`, `/` and both lengths of padding.
#[tokio::test]
async fn p8_the_standard_alphabet_and_padding_are_taken() {
    let database = Database::fresh().await;
    let tags = ["v1", "~~~~", "???????", ">>>>>>>>", "ÿÿÿÿ", "v22", "v333"];
    let client = database.connect().await;
    for (tag, height) in tags.iter().zip(10..) {
        let insert = List::Proposals.insert(&[height]).replace("'v1'", &format!("'{tag}'"));
        client.batch_execute(&insert).await.unwrap();
    }
    client.batch_execute(&List::Proposals.insert(&[1])).await.unwrap();
    let mesh = Mesh::start(&database).await;
    let mesh = MeshClient::new(&mesh);
    let view = View::new(List::Proposals, "", Vec::new());
    let mut letters = String::new();
    for (tag, height) in tags.iter().zip(10..) {
        let json = json!({ "k": [height.to_string(), tag], "o": "pup" }).to_string();
        let standard = STANDARD.encode(&json);
        let expected = view.answer(&mesh, &PageRequest::first(3).cursor(&cursor_of_json(&json))).await;
        for text in [standard.as_str(), standard.trim_end_matches('=')] {
            let answer = ask_with(&mesh, &view, "first=3&pagination.after", text).await;
            assert_eq!(answer.status, 200, "{text}: {answer:?}");
            assert_eq!(Page::from_answer(view.list, &answer), expected, "{text}");
        }
        // A `+` that a client did not escape is decoded as a space.
        let careless =
            mesh.get(&format!("{}pagination.first=3&pagination.after={standard}", view.path)).await;
        assert_eq!(Page::from_answer(view.list, &careless), expected, "{standard}");
        letters.push_str(&standard);
    }
    assert!(letters.contains('+') && letters.contains('/') && letters.contains('='), "{letters}");
}

#[tokio::test]
async fn p6_an_invalid_cursor_or_one_of_another_list_is_refused() {
    let (mesh, views) = seven().await;
    for view in &views {
        let list = view.list;
        let name = list.name();
        let own = json!(list.key(3).iter().map(ToString::to_string).collect::<Vec<_>>());
        let (mut fewer, mut longer) = (own.as_array().unwrap().clone(), own.as_array().unwrap().clone());
        fewer.pop();
        longer.push(json!("x"));
        let mut refused: Vec<String> =
            vec!["x".into(), "!!!!".into(), "e30".into(), "AAAA".into(), "{}".into()];
        refused
            .extend(LISTS.iter().filter(|other| **other != list).map(|other| cursor(*other, &other.key(3))));
        refused.extend(
            [
                json!({ "o": "", "k": own }),
                json!({ "o": "history", "k": own }),
                json!({ "o": name }),
                json!({ "k": own }),
                json!({ "o": name, "k": [] }),
                json!({ "o": name, "k": fewer }),
                json!({ "o": name, "k": longer }),
                json!({ "o": name, "k": own, "more": 1 }),
                json!({ "o": name, "k": "3" }),
                json!([name, own]),
                json!({ "o": name.to_uppercase(), "k": own }),
                json!({ "o": name, "k": [1] }),
                json!({ "o": name, "k": {} }),
                json!(name),
                json!({}),
                json!([]),
                json!(null),
            ]
            .map(|cursor| cursor_of_json(&cursor.to_string())),
        );
        let no_numbers = ["", "x", "1.5", " 1", "0x1", "9223372036854775808", "١"];
        for wrong in no_numbers.into_iter().filter(|_| matches!(list.key(3)[0], Part::Number(_))) {
            let mut key = own.clone();
            key[0] = json!(wrong);
            refused.push(cursor_of_json(&json!({ "o": name, "k": key }).to_string()));
        }
        let mut key = own.clone();
        key[0] = json!(3);
        refused.push(cursor_of_json(&json!({ "o": name, "k": key }).to_string()));
        let with_nul: Vec<_> = list.key(3).iter().map(|_| text("\0")).collect();
        refused.push(cursor(list, &with_nul));
        let mut key = list.key(3);
        *key.last_mut().unwrap() = text("a\0b");
        refused.push(cursor(list, &key));
        refused.push("A".repeat(1025));
        for cursor in &refused {
            for side in ["after", "before"] {
                let answer = ask_with(&mesh, view, side, cursor).await;
                assert_eq!(answer.status, 400, "{list:?} {cursor}: {answer:?}");
                assert_eq!(answer.json()["details"][0]["code"], 10028, "{cursor}");
            }
        }
    }
}

#[tokio::test]
async fn p8_a_cursor_has_at_most_1024_characters() {
    let (mesh, _) = seven().await;
    let view = View::numbered(List::Proposals, &SEVEN);
    let of_length = |characters: usize| {
        (0..characters)
            .map(|tag| vec![number(3), text(&"t".repeat(tag))])
            .find(|key| cursor(List::Proposals, key).len() == characters)
    };
    let longest = of_length(1024).unwrap();
    view.get(&mesh, &PageRequest::first(9).at_position(List::Proposals, &longest)).await;
    let too_long = cursor(List::Proposals, &of_length(1026).unwrap());
    let answer = ask_with(&mesh, &view, "after", &too_long).await;
    assert_eq!((answer.status, &answer.json()["details"][0]["code"]), (400, &10028.into()));
}

#[tokio::test]
async fn p12_filters_may_change_under_a_cursor() {
    let (mesh, views) = seven().await;
    for view in &views {
        let list = view.list;
        let passing = |numbers: &[i64], filters: String| {
            View::new(list, &filters, numbers.iter().map(|number| list.row(*number)).collect())
        };
        let three = &list.key(3)[0];
        let filtered = match list {
            List::Proposals => vec![
                passing(&SEVEN, "approvedBy=AB".to_owned()),
                passing(&[], "status=PROTOCOL_UPGRADE_PROPOSAL_STATUS_REJECTED".to_owned()),
            ],
            List::Candles => vec![
                passing(&[3, 4, 5, 6, 7], format!("&fromTimestamp={three}")),
                passing(&[1, 2], format!("&toTimestamp={three}")),
            ],
            List::Summaries => vec![
                passing(&[3, 4, 5, 6, 7], "filter.fromEpoch=3".to_owned()),
                passing(&[1, 2], "filter.toEpoch=2&filter.assetIds=VOTE".to_owned()),
                passing(&[2], format!("filter.toEpoch=2&filter.fromEpoch=2&filter.marketIds={MARKET}")),
            ],
            List::Delegations => vec![
                passing(&[3], "epochId=3".to_owned()),
                passing(&SEVEN, format!("partyId={:0>64}", "bb")),
                passing(&[2], format!("nodeId={:0>64}&epochId=2", "cc")),
            ],
            List::Markets => vec![
                passing(&SEVEN, "state=STATE_ACTIVE".to_owned()),
                passing(&[], "settlementAsset=VOTE".to_owned()),
            ],
            List::Assets => vec![
                passing(&SEVEN, "status=STATUS_ENABLED".to_owned()),
                passing(&[], "status=STATUS_PROPOSED".to_owned()),
            ],
            List::Trades => vec![
                passing(&[1, 2], format!("&dateRange.endTimestamp={three}")),
                passing(&SEVEN, format!("&marketId={TRADED}")),
                passing(&[], "&partyId=network".to_owned()),
            ],
            List::Positions => vec![
                passing(&[3], format!("partyId={three}")),
                passing(&SEVEN, format!("marketId={MARKET}")),
                passing(&[], format!("marketId={TRADED}")),
            ],
        };
        let page = view.get(&mesh, &PageRequest::first(7)).await;
        for other in &filtered {
            for (text, number) in page.cursors().zip(SEVEN.into_iter().rev()) {
                for ask in [
                    PageRequest::first(2),
                    PageRequest::last(2),
                    PageRequest::first(2).oldest_first(),
                    PageRequest::last(2).oldest_first(),
                ] {
                    let expected = other.expected(&ask.clone().at_position(list, &list.key(number)));
                    assert_eq!(
                        other.answer(&mesh, &ask.cursor(text)).await,
                        expected,
                        "{} {number}",
                        other.path
                    );
                }
            }
        }
    }
}
