//! The worked examples of the contract's section 9, row by row, on every list, and further cases of P1, P3
//! and P10.

use mesh_testbed::Mesh;
use mesh_tests::client::MeshClient;

use crate::paging::{
    list::{LISTS, List, cursor},
    meshes::{SEVEN, seven, stored},
    page::{Page, PageRequest, View},
};

/// Asserts that every list gives these rows and flags; a page without rows has no cursors.
async fn expect(
    mesh: &MeshClient,
    ask: impl Fn(List) -> PageRequest,
    numbers: &[i64],
    has_next: bool,
    has_previous: bool,
) {
    for list in LISTS {
        let page = View::numbered(list, &[]).answer(mesh, &ask(list)).await;
        let rows = numbers.iter().map(|number| list.row(*number));
        let edges = rows.map(|row| (cursor(list, &row.key), row.node)).collect();
        assert_eq!(page, Page::new(edges, has_next, has_previous), "{list:?}");
    }
}

fn after(size: usize, number: i64) -> impl Fn(List) -> PageRequest {
    move |list| PageRequest::first(size).at_position(list, &list.key(number))
}

fn before(size: usize, number: i64) -> impl Fn(List) -> PageRequest {
    move |list| PageRequest::last(size).at_position(list, &list.key(number))
}

#[tokio::test]
async fn the_rows_about_seven_rows_going_forwards() {
    let (mesh, _) = seven().await;
    expect(&mesh, |_| PageRequest::first(3), &[7, 6, 5], true, false).await;
    expect(&mesh, after(3, 5), &[4, 3, 2], true, true).await;
    expect(&mesh, after(3, 2), &[1], false, true).await;
    expect(&mesh, after(3, 1), &[], false, true).await;
    expect(&mesh, after(3, 0), &[], false, true).await;
    expect(&mesh, |_| PageRequest::first(7), &[7, 6, 5, 4, 3, 2, 1], false, false).await;
    expect(&mesh, |_| PageRequest::first(3).oldest_first(), &[1, 2, 3], true, false).await;
    expect(&mesh, |list| after(2, 7)(list).oldest_first(), &[], false, true).await;
}

#[tokio::test]
async fn the_row_about_a_cursor_whose_row_was_deleted() {
    let database = stored(&SEVEN).await;
    let mesh = Mesh::start(&database).await;
    let (mesh_client, client) = (MeshClient::new(&mesh), database.connect().await);
    for list in LISTS {
        client.batch_execute(&list.delete(5)).await.unwrap();
    }
    expect(&mesh_client, after(3, 5), &[4, 3, 2], true, true).await;
    expect(&mesh_client, before(2, 5), &[7, 6], true, false).await;
}

#[tokio::test]
async fn the_rows_about_seven_rows_going_backwards() {
    let (mesh, _) = seven().await;
    expect(&mesh, |_| PageRequest::last(3), &[3, 2, 1], false, true).await;
    expect(&mesh, before(2, 3), &[5, 4], true, true).await;
    expect(&mesh, before(3, 5), &[7, 6], true, false).await;
    expect(&mesh, before(3, 7), &[], true, false).await;
    expect(&mesh, before(2, 8), &[], true, false).await;
    expect(&mesh, |list| before(3, 3)(list).oldest_first(), &[1, 2], true, false).await;
    expect(&mesh, |list| before(2, 1)(list).oldest_first(), &[], true, false).await;
}

#[tokio::test]
async fn the_row_about_an_empty_table_and_positions_in_it() {
    let mesh = MeshClient::empty().await;
    expect(&mesh, |_| PageRequest::first(3), &[], false, false).await;
    expect(&mesh, after(2, 3), &[], false, false).await;
    expect(&mesh, before(2, 3), &[], false, false).await;
}
