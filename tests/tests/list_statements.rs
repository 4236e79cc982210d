//! PostgreSQL accepts the statements of all shapes that a request for a list may have.

use std::collections::BTreeSet;

use mesh_oracles::cursor;
use mesh_query::{CANDLES, LISTS};
use mesh_store::{Filter, KeyKind, List, PageRequest, PageSizes, Past, TimeUs, Value, Window};
use mesh_testbed::Database;

const PAST: Past =
    Past { height: 9, time: TimeUs(9), is_sealed: false, delegation_epoch: 3000, reward_epoch: 3000 };
const SIZES: PageSizes = PageSizes { default: 100, greatest: 100 };

/// The statements of all shapes are accepted, and none reads rows only to count them (P13).
#[tokio::test]
async fn p13_every_shape_of_a_list_is_a_statement_without_offset() {
    let (_database, client) = Database::with_client().await;
    let mut statements = BTreeSet::new();
    for list in LISTS {
        for given in 0..1 << list.filters.len() {
            for several in [false, true] {
                let filters = list.filters.iter().enumerate().map(|(number, filter)| {
                    (given >> number & 1 == 1).then(|| value_of(list, filter, several))
                });
                let filters: Vec<_> = filters.collect();
                // Every request for candles names their interval and market.
                let is_request = list.name != CANDLES.name || given & 0b11 == 0b11;
                let pasts = [None, Some(&PAST).filter(|_| !list.past.is_empty() && is_request)];
                for (window, past) in windows(list).iter().flat_map(|window| pasts.map(|past| (window, past)))
                {
                    statements.insert(list.statement(window, filters.clone(), past).sql);
                }
            }
        }
    }
    for sql in &statements {
        assert!(!sql.to_uppercase().contains(" OFFSET ") && sql.contains("LIMIT $"), "{sql}");
        client.prepare(sql).await.unwrap_or_else(|error| panic!("{error:?}: {sql}"));
    }
    println!("{} statements", statements.len());
}

/// Pages in both orders: from an end, and from positions before, in and behind the filters' values.
fn windows(list: &List) -> Vec<Window> {
    let cursor = |number: &str| cursor(list.name, &vec![number; list.key.len()]);
    let cursors = [None, Some(cursor("1000")), Some(cursor("2000")), Some(cursor("3000"))];
    let window = |cursor: &Option<String>, newest_first| {
        let request = PageRequest {
            after: cursor.as_deref(),
            newest_first: Some(newest_first),
            ..PageRequest::default()
        };
        Window::read(list, request, SIZES).unwrap()
    };
    cursors.iter().flat_map(|cursor| [window(cursor, true), window(cursor, false)]).collect()
}

/// A value for a filter: the one of the middle position of [`windows`].
fn value_of(list: &List, filter: &Filter, several: bool) -> Value {
    let kind = match filter {
        Filter::Equal(column) | Filter::AnyOf(column) | Filter::EitherOf([column, _]) => {
            list.key.iter().find(|key| key.name == *column).map_or(KeyKind::Text, |key| key.kind)
        }
        Filter::AtLeast | Filter::AtMost => list.key[0].kind,
        Filter::Flag(_) | Filter::Matches(_) => KeyKind::Text,
    };
    match (filter, kind) {
        (Filter::AnyOf("status"), _) if several => Value::Smalls(vec![1, 7]),
        (Filter::AnyOf("status"), _) => Value::Small(1),
        (Filter::AnyOf(_), _) if several => Value::Texts(vec!["2000".to_owned(), "2001".to_owned()]),
        (_, KeyKind::Integer) => Value::Integer(2000),
        (_, KeyKind::Text) => Value::Text("2000".to_owned()),
        (_, KeyKind::Party) => Value::party("2000"),
        (_, KeyKind::Time) => Value::Time(TimeUs(2)),
    }
}
