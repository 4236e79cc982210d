//! What P6 refuses, on each of the four lists: 400, number 10028.

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use mesh_tests::{
    fixture::{MARKET, NODE, PARTY},
    outside::Outside,
    problem::{Seen, assert_problem},
};

/// A list: how to ask for it, its name in cursors, the values of a key, values of a wrong type.
struct List {
    path: String,
    name: &'static str,
    key: &'static [&'static str],
    wrong: &'static [&'static str],
}

fn lists() -> Vec<List> {
    let list = |path: &str, name, key, wrong| List { path: path.to_owned(), name, key, wrong };
    let candles = format!("/api/v2/candle?candleId=trades_candle_1_hour_{MARKET}&");
    vec![
        list("/api/v2/upgrade/proposals?", "pup", &["100", "v0.73.0"], &["high", "v0.73.0"]),
        list(&candles, "candle", &["1687255200000000000"], &["2023-06-20"]),
        list(
            "/api/v2/rewards/epoch/summaries?",
            "epochReward",
            &["1", "", "VOTE", "X"],
            &["1.5", "", "VOTE", "X"],
        ),
        list("/api/v2/delegations?", "delegation", &["1", PARTY, NODE], &["", PARTY, NODE]),
    ]
}

fn cursor(list: &str, key: &[&str]) -> String {
    URL_SAFE_NO_PAD.encode(serde_json::json!({ "o": list, "k": key }).to_string())
}

async fn refused(mesh: &Outside, list: &List, page: &str) -> Seen {
    assert_problem(&mesh.get(&format!("{}{page}", list.path)).await, 400, 3, 10028)
}

#[tokio::test]
async fn sizes_that_are_no_positive_numbers_are_refused() {
    let mesh = Outside::fixture().await;
    for list in lists() {
        for way in ["first", "last"] {
            for size in ["0", "-1", "-2147483648"] {
                let seen = refused(&mesh, &list, &format!("pagination.{way}={size}")).await;
                assert_eq!(seen.message, "pagination limit must be greater than 0");
            }
            for size in ["x", "1.0", "1e3", "2147483648", "%201", "%2B1", "0x1", "null"] {
                refused(&mesh, &list, &format!("pagination.{way}={size}")).await;
            }
        }
        for order in ["yes", "TRUE", "2", "null"] {
            refused(&mesh, &list, &format!("pagination.newestFirst={order}")).await;
        }
    }
}

#[tokio::test]
async fn parameters_that_exclude_each_other_are_refused() {
    let mesh = Outside::fixture().await;
    for list in lists() {
        let cursor = cursor(list.name, list.key);
        for page in [
            format!("pagination.after={cursor}&pagination.before={cursor}"),
            "pagination.first=1&pagination.last=1".to_owned(),
            format!("pagination.after={cursor}&pagination.last=1"),
            format!("pagination.before={cursor}&pagination.first=1"),
        ] {
            refused(&mesh, &list, &page).await;
        }
    }
}

#[tokio::test]
async fn cursors_that_name_no_position_of_the_list_are_refused() {
    let mesh = Outside::fixture().await;
    for list in lists() {
        let json = |text: &str| URL_SAFE_NO_PAD.encode(text);
        let other = if list.name == "pup" { "candle" } else { "pup" };
        let too_many = [list.key, &["one more"]].concat();
        let with_nul = vec!["\0"; list.key.len()];
        let wrong = [
            "!".to_owned(),
            "AAAA".to_owned(),
            json("{}"),
            json("[]"),
            json("null"),
            json(&format!(r#"{{"o":"{}"}}"#, list.name)),
            json(&format!(r#"{{"o":"{}","k":[1]}}"#, list.name)),
            json(&format!(r#"{{"o":"{}","k":{{}}}}"#, list.name)),
            cursor(other, list.key),
            cursor(&list.name.to_uppercase(), list.key),
            cursor(list.name, list.wrong),
            cursor(list.name, &too_many),
            cursor(list.name, &list.key[1..]),
            cursor(list.name, &with_nul),
            "A".repeat(1025),
        ];
        for cursor in wrong {
            refused(&mesh, &list, &format!("pagination.after={cursor}")).await;
            refused(&mesh, &list, &format!("pagination.before={cursor}")).await;
        }
    }
}

#[tokio::test]
async fn an_empty_cursor_is_absent() {
    let mesh = Outside::fixture().await;
    for list in lists() {
        let answer =
            mesh.get(&format!("{}pagination.after=&pagination.before=&pagination.last=1", list.path)).await;
        assert_eq!(answer.status, 200, "{answer:?}");
    }
}

#[tokio::test]
async fn a_page_larger_than_the_greatest_is_cut_and_not_refused() {
    let mesh = Outside::fixture().await;
    for list in lists() {
        for way in ["first", "last"] {
            let answer = mesh.get(&format!("{}pagination.{way}=2147483647", list.path)).await;
            assert_eq!(answer.status, 200, "{answer:?}");
        }
    }
}
