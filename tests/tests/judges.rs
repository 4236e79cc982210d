//! What other tests judge by: the pages of the oracles, and the differences of two JSON values.

use mesh_oracles::{Listing, Row, cursor};
use mesh_tests::{difference, lack};
use proto_msgs::{Contract, v2::Pagination};
use serde_json::json;

/// A list of assets with these keys.
fn numbered(numbers: &[i64]) -> Listing {
    let operations = Contract::get().operations();
    let row = |number: &i64| Row::new("asset", json!([number]), json!(number));
    let assets = operations.iter().find(|row| row.name == "ListAssets").unwrap();
    Listing::new(&assets.reply, numbers.iter().map(row).collect())
}

/// The worked table of the contract's section 9, with further cases of P1, P3 and P10.
#[test]
fn pages_are_those_of_the_worked_table() {
    let (all, without_5) = (numbered(&[1, 2, 3, 4, 5, 6, 7]), numbered(&[1, 2, 3, 4, 6, 7]));
    let none = Pagination::default();
    let at = |number: i64| Some(cursor("asset", &[number.to_string()]));
    let first = |size| Pagination { first: Some(size), ..none.clone() };
    let last = |size| Pagination { last: Some(size), ..none.clone() };
    let after = |size, number| Pagination { after: at(number), ..first(size) };
    let before = |size, number| Pagination { before: at(number), ..last(size) };
    let oldest = |page| Pagination { newest_first: Some(false), ..page };
    let rows: [(&Listing, Pagination, &[i64], [bool; 2]); 19] = [
        (&all, first(3), &[7, 6, 5], [true, false]),
        (&all, after(3, 5), &[4, 3, 2], [true, true]),
        (&all, after(3, 2), &[1], [false, true]),
        (&all, after(3, 1), &[], [false, true]),
        (&all, after(3, 0), &[], [false, true]),
        (&without_5, after(3, 5), &[4, 3, 2], [true, true]),
        (&without_5, before(2, 5), &[7, 6], [true, false]),
        (&all, last(3), &[3, 2, 1], [false, true]),
        (&all, before(2, 3), &[5, 4], [true, true]),
        (&all, before(3, 5), &[7, 6], [true, false]),
        (&all, before(3, 7), &[], [true, false]),
        (&all, before(2, 8), &[], [true, false]),
        (&all, first(7), &[7, 6, 5, 4, 3, 2, 1], [false, false]),
        (&all, oldest(first(3)), &[1, 2, 3], [true, false]),
        (&all, oldest(after(2, 7)), &[], [false, true]),
        (&all, oldest(before(3, 3)), &[1, 2], [true, false]),
        (&all, none.clone(), &[7, 6, 5, 4, 3, 2, 1], [false, false]),
        (&numbered(&[]), first(3), &[], [false, false]),
        (&numbered(&[]), before(2, 3), &[], [false, false]),
    ];
    for (list, page, expected, more) in rows {
        let (shown, flags) = list.page(&page);
        let shown: Vec<i64> = shown.iter().map(|row| row.node.as_i64().unwrap()).collect();
        assert_eq!((shown.as_slice(), flags), (expected, more), "{page:?}");
    }
}

#[test]
fn a_difference_is_named_by_its_place() {
    let found = json!({"a": [{"b": "1"}, {"b": "2"}]});
    let differs = |expected| difference(&found, &expected);
    assert_eq!(differs(found.clone()), None);
    assert_eq!(differs(json!({"a": [{"b": "1"}, {"b": 2}]})).unwrap(), "/a/1/b: \"2\" instead of 2");
    assert_eq!(differs(json!({"a": [{"b": "1"}]})).unwrap(), "/a: 2 items instead of 1");
    let part = json!({"a": [{}, {"b": "2"}]});
    assert_eq!(differs(part.clone()).unwrap(), "/a/0/b should not be there");
    assert_eq!(lack(&found, &part), None);
    assert_eq!(lack(&found, &json!({"a": [{"c": 1}, {}]})).unwrap(), "/a/0/c is missing");
    assert_eq!(differs(json!({"a": found["a"], "c": 1})).unwrap(), "/c is missing");
}
