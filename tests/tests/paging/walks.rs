//! Walks over random lists give every row once, in display order, with true flags and cursors (I5); and pages
//! from any position are true (P3, P7, P9, P10, P12).

use mesh_tests::{MeshClient, lists};
use proto_msgs::v2::Pagination;

use crate::paging::world::{World, at, pages};

#[tokio::test]
async fn every_list_is_walked_whole_and_with_every_filter() {
    for world in World::all().await {
        let (mesh, oracle) = (MeshClient::new(&world.mesh), world.oracle().await);
        for operation in lists() {
            for (number, view) in world.views(&oracle, operation, 2).await.iter().enumerate() {
                view.check(&mesh, &Pagination::default()).await;
                let rows = view.listing.rows.len();
                let sizes = if number == 0 { vec![7, rows, rows + 1] } else { vec![1 + rows / 3] };
                let single = (rows < 20).then_some(1);
                for page in sizes.into_iter().chain(single).flat_map(|size| view.listing.walks(size)) {
                    view.check(&mesh, &page).await;
                }
            }
        }
    }
}

/// Pages from the positions of rows, with any size, direction and order, also with filters that the
/// position's row does not pass: as if that row were deleted.
#[tokio::test]
async fn any_position_is_valid_in_any_view() {
    for world in World::all().await {
        let (mesh, oracle) = (MeshClient::new(&world.mesh), world.oracle().await);
        for operation in lists() {
            let views = world.views(&oracle, operation, 1).await;
            let positions: Vec<&str> = views
                .iter()
                .flat_map(|view| view.listing.rows.iter().step_by(40))
                .map(|row| &*row.cursor)
                .collect();
            for view in &views {
                for page in positions.iter().flat_map(|cursor| pages(3).map(|page| at(&page, cursor))) {
                    view.check(&mesh, &page).await;
                }
            }
        }
    }
}
