//! Sizes of pages (P4, P5) and empty cursors (P6).

use mesh_testbed::{Database, Mesh};
use mesh_tests::{MeshClient, lists};
use proto_msgs::v2::Pagination;

use crate::paging::{View, World, at, pages};

#[tokio::test]
async fn p4_a_page_without_a_size_has_1000_rows_and_p5_a_larger_one_is_cut_to_5000() {
    let database = Database::fresh().await;
    let trades =
        "INSERT INTO trades SELECT time, 'tx', time, 0, n, 'market', 5, 7, 'b', 's', 1, 'bo', 'so', 1
        FROM generate_series(1, 5002) AS n, LATERAL (SELECT to_timestamp(1687255200 + n) AS time) AS times";
    database.connect().await.batch_execute(trades).await.unwrap();
    let mesh = Mesh::start(&database).await;
    let mesh = MeshClient::new(&mesh);
    let oracle = mesh_oracles::Oracle::open(database.connect().await).await.unwrap();
    let view = View::read(&oracle, "/api/v2/trades?".to_owned()).await;
    let cursor = |number: usize| Some(view.listing.rows[number].cursor.clone());
    let none = Pagination::default();
    let mut asked = vec![
        none.clone(),
        Pagination { newest_first: Some(false), ..none.clone() },
        Pagination { after: cursor(1002), ..none.clone() },
        Pagination { before: cursor(2), ..none },
    ];
    asked.extend([5001, 1_000_000, 2_147_483_647].into_iter().flat_map(pages));
    for page in asked {
        view.check(&mesh, &page).await;
    }
}

#[tokio::test]
async fn p5_both_page_sizes_can_be_configured_and_p6_an_empty_cursor_is_absent() {
    let world = &World::all().await[1];
    let setup = Mesh::configure(&world.database).env("MESH_PAGE_DEFAULT", "2").env("MESH_PAGE_MAX", "3");
    let mesh = setup.start().await;
    let (mesh, oracle) = (MeshClient::new(&mesh), world.oracle().await);
    for operation in lists() {
        let whole = world.whole(&oracle, operation).await;
        let sized = |size: i32| pages(size).into_iter().step_by(2);
        for (query, [first, last]) in [("4", [3, 3]), ("2", [2, 2])] {
            for (page, (name, size)) in sized(first).zip([("first", first), ("last", last)]) {
                let target = format!(
                    "{}&pagination.{name}={query}&pagination.after=&pagination.before=",
                    whole.target
                );
                let asked = View { target, listing: whole.listing.clone() };
                let found = asked.get(&mesh, &Pagination::default()).await;
                assert_eq!(found, whole.listing.answer(&page), "{name} {size}");
            }
        }
        let found = whole.get(&mesh, &Pagination { newest_first: Some(true), ..Pagination::default() }).await;
        assert_eq!(found, whole.listing.answer(&pages(2)[0]), "without a size");
        let cursor = &whole.listing.rows[4].cursor;
        let found =
            whole.get(&mesh, &Pagination { after: Some(cursor.clone()), ..Pagination::default() }).await;
        assert_eq!(found, whole.listing.answer(&at(&pages(2)[0], cursor)), "after a cursor");
    }
}
