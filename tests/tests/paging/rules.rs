//! Rules P2, P4 and P5 of the contract: order by bytes, and sizes of pages.

use mesh_testbed::{Database, Mesh};
use mesh_tests::client::MeshClient;

use crate::paging::{
    list::{List, cursor},
    meshes::{SEVEN, seven, stored, views},
    page::{Page, PageRequest, View},
};

async fn page_of(mesh: &MeshClient, view: &View, query: &str) -> Page {
    let answer = mesh.get(&format!("{}{query}", view.path)).await;
    assert_eq!(answer.status, 200, "{query}: {answer:?}");
    Page::from_answer(view.list, &answer)
}

/// Byte order: upper case before lower case, digits before letters, in any locale.
#[tokio::test]
async fn p2_texts_of_a_key_sort_by_bytes() {
    let database = Database::fresh().await;
    let tags = ["", "10", "9", "Z", "_", "a", "é", "ﬀ", "🚀"];
    let rows = tags.map(|tag| {
        let status = "PROTOCOL_UPGRADE_PROPOSAL_STATUS_PENDING";
        format!("(7, '{tag}', '{{}}', '{status}', 'tx', '2023-01-01 00:00:00+00')")
    });
    let insert = format!("INSERT INTO protocol_upgrade_proposals VALUES {}", rows.join(", "));
    database.connect().await.batch_execute(&insert).await.unwrap();
    let mesh = Mesh::start(&database).await;
    let mesh = MeshClient::new(&mesh);
    let page = View::new(List::Proposals, "", Vec::new())
        .answer(&mesh, &PageRequest::default().oldest_first())
        .await;
    let shown: Vec<_> = page.nodes().map(|node| node["networkReleaseTag"].as_str().unwrap()).collect();
    assert_eq!(shown, tags);
}

#[tokio::test]
async fn p4_a_page_without_a_size_has_1000_rows_and_p5_a_larger_one_is_cut_to_5000() {
    let numbers: Vec<i64> = (1..=5002).collect();
    let database = stored(&numbers).await;
    let mesh = Mesh::start(&database).await;
    let mesh = MeshClient::new(&mesh);
    for view in &views(&numbers) {
        let list = view.list;
        let default = view.expected(&PageRequest::first(1000));
        assert_eq!(default.edges.len(), 1000);
        assert_eq!(page_of(&mesh, view, "").await, default);
        assert_eq!(page_of(&mesh, view, "&pagination.newestFirst=true").await, default);
        let oldest = page_of(&mesh, view, "&pagination.newestFirst=false").await;
        assert_eq!(oldest, view.expected(&PageRequest::first(1000).oldest_first()));
        let after = format!("&pagination.after={}", cursor(list, &list.key(1002)));
        let expected = view.expected(&PageRequest::first(1000).at_position(list, &list.key(1002)));
        assert_eq!(page_of(&mesh, view, &after).await, expected);
        let before = format!("&pagination.before={}", cursor(list, &list.key(2)));
        let expected = view.expected(&PageRequest::last(1000).at_position(list, &list.key(2)));
        assert_eq!(page_of(&mesh, view, &before).await, expected);

        for size in [5001, 1_000_000, 2_147_483_647] {
            let page = page_of(&mesh, view, &format!("&pagination.first={size}")).await;
            assert_eq!(page, view.expected(&PageRequest::first(5000)));
            assert!(page.has_next && !page.has_previous);
        }
        for size in [5002, 2_147_483_647] {
            let page = page_of(&mesh, view, &format!("&pagination.last={size}")).await;
            assert_eq!(page, view.expected(&PageRequest::last(5000)));
            assert!(page.has_previous && !page.has_next);
        }
    }
}

#[tokio::test]
async fn p6_an_empty_cursor_is_absent() {
    let (mesh, views) = seven().await;
    for view in &views {
        let page = page_of(&mesh, view, "&pagination.after=&pagination.before=&pagination.last=2").await;
        assert_eq!(page, view.expected(&PageRequest::last(2)));
    }
}

#[tokio::test]
async fn p5_both_page_sizes_can_be_configured() {
    let database = stored(&SEVEN).await;
    let setup = Mesh::configure(&database).env("MESH_PAGE_DEFAULT", "2").env("MESH_PAGE_MAX", "3");
    let mesh = setup.start().await;
    let mesh = MeshClient::new(&mesh);
    for view in &views(&SEVEN) {
        assert_eq!(page_of(&mesh, view, "").await, view.expected(&PageRequest::first(2)));
        assert_eq!(page_of(&mesh, view, "&pagination.first=4").await, view.expected(&PageRequest::first(3)));
        assert_eq!(page_of(&mesh, view, "&pagination.last=4").await, view.expected(&PageRequest::last(3)));
    }
}
