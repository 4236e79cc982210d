//! The worked table of the contract's section 9, row by row, on every list.

use mesh_testbed::{Database, Mesh};

use crate::paging::list::{LISTS, List};
use crate::paging::page::{Ask, View};

const SEVEN: [i64; 7] = [1, 2, 3, 4, 5, 6, 7];

/// The four lists with these rows.
async fn lists(numbers: &[i64]) -> (Database, Mesh) {
    let database = Database::fresh().await;
    let client = database.connect().await;
    for list in LISTS.into_iter().filter(|_| !numbers.is_empty()) {
        client.batch_execute(&list.insert(numbers)).await.unwrap();
    }
    let mesh = Mesh::start(&database).await;
    (database, mesh)
}

/// Expects these nodes and flags of every list.
async fn expect(mesh: &Mesh, ask: impl Fn(List) -> Ask, numbers: &[i64], has_next: bool, has_previous: bool) {
    for list in LISTS {
        let page = View::numbered(list, &[]).answer(mesh, &ask(list)).await;
        let nodes: Vec<_> = numbers.iter().map(|number| list.row(*number).node).collect();
        assert!(page.nodes().eq(&nodes), "{list:?}: {page:?}");
        assert_eq!((page.has_next, page.has_previous), (has_next, has_previous), "{list:?}");
    }
}

#[tokio::test]
async fn the_rows_about_seven_rows_going_forwards() {
    let (database, mesh) = lists(&SEVEN).await;
    let after = |number| move |list: List| Ask::first(3).at(list, &list.key(number));
    expect(&mesh, |_| Ask::first(3), &[7, 6, 5], true, false).await;
    expect(&mesh, after(5), &[4, 3, 2], true, true).await;
    expect(&mesh, after(2), &[1], false, true).await;
    expect(&mesh, after(1), &[], false, true).await;
    expect(&mesh, |_| Ask::first(7), &[7, 6, 5, 4, 3, 2, 1], false, false).await;
    expect(&mesh, |_| Ask::first(3).oldest_first(), &[1, 2, 3], true, false).await;

    let client = database.connect().await;
    for list in LISTS {
        client.batch_execute(&list.delete(5)).await.unwrap();
    }
    expect(&mesh, after(5), &[4, 3, 2], true, true).await;
}

#[tokio::test]
async fn the_rows_about_seven_rows_going_backwards() {
    let (_database, mesh) = lists(&SEVEN).await;
    let before = |size, number| move |list: List| Ask::last(size).at(list, &list.key(number));
    expect(&mesh, |_| Ask::last(3), &[3, 2, 1], false, true).await;
    expect(&mesh, before(2, 3), &[5, 4], true, true).await;
    expect(&mesh, before(3, 5), &[7, 6], true, false).await;
    expect(&mesh, before(3, 7), &[], true, false).await;
    let oldest_first = |list: List| before(3, 3)(list).oldest_first();
    expect(&mesh, oldest_first, &[1, 2], true, false).await;
}

#[tokio::test]
async fn the_row_about_an_empty_table() {
    let (_database, mesh) = lists(&[]).await;
    expect(&mesh, |_| Ask::first(3), &[], false, false).await;
}
