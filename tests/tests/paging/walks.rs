//! Walks over random lists give every row once, in display order, with true flags and cursors (I5).

use mesh_tests::client::MeshClient;

use crate::paging::{
    list::{LISTS, List},
    meshes::RandomLists,
    page::{PageRequest, View},
};

/// Walks a view to its end; asserts that each page is the contract's, and that the pages together are the
/// view.
async fn walk(mesh: &MeshClient, view: &View, size: usize, backwards: bool, oldest_first: bool) {
    let ask =
        if backwards { PageRequest::last(size) } else { PageRequest::first(size) }.in_order(oldest_first);
    let mut pages = Vec::new();
    let mut next = ask.clone();
    loop {
        let page = view.get(mesh, &next).await;
        let more = if backwards { page.has_previous } else { page.has_next };
        let end = if backwards { page.edges.first() } else { page.edges.last() };
        let end = end.map(|(cursor, _)| cursor.clone());
        if backwards {
            pages.insert(0, page);
        } else {
            pages.push(page);
        }
        let Some(row) = end.filter(|_| more).and_then(|end| view.row_of(&end)) else { break };
        next = ask.clone().at_position(view.list, &row.key);
    }
    let walked: Vec<_> = pages.iter().flat_map(|page| page.nodes()).collect();
    let whole: Vec<_> = view.displayed(oldest_first).into_iter().map(|row| &row.node).collect();
    assert_eq!(walked, whole, "{} by {size}", view.path);
}

async fn walk_everything(list: List) {
    for lists in RandomLists::all().await {
        let mesh = lists.mesh_client();
        for view in lists.views(list) {
            for size in [1, 2, 7, 1000, view.rows.len() + 1] {
                for (backwards, oldest_first) in [(false, false), (true, false), (false, true), (true, true)]
                {
                    walk(&mesh, view, size, backwards, oldest_first).await;
                }
            }
        }
    }
}

#[tokio::test]
async fn upgrade_proposals_are_walked_each_once() {
    walk_everything(List::Proposals).await;
}

#[tokio::test]
async fn candles_are_walked_each_once() {
    walk_everything(List::Candles).await;
}

#[tokio::test]
async fn reward_summaries_are_walked_each_once() {
    walk_everything(List::Summaries).await;
}

#[tokio::test]
async fn delegations_are_walked_each_once() {
    walk_everything(List::Delegations).await;
}

#[tokio::test]
async fn markets_are_walked_each_once() {
    walk_everything(List::Markets).await;
}

#[tokio::test]
async fn assets_are_walked_each_once() {
    walk_everything(List::Assets).await;
}

#[tokio::test]
async fn trades_are_walked_each_once() {
    walk_everything(List::Trades).await;
}

#[tokio::test]
async fn positions_are_walked_each_once() {
    walk_everything(List::Positions).await;
}

/// Pages from positions between, before and behind all rows, also with filters that the position's row does
/// not pass (P12).
#[tokio::test]
async fn any_position_is_valid_in_any_view() {
    for lists in RandomLists::all().await {
        let mesh = lists.mesh_client();
        for list in LISTS {
            let positions: Vec<_> = lists.views(list).flat_map(|view| view.rows.iter().step_by(9)).collect();
            for view in lists.views(list) {
                for row in &positions {
                    for ask in [PageRequest::first(3), PageRequest::last(3)] {
                        for oldest_first in [false, true] {
                            let ask = ask.clone().in_order(oldest_first);
                            view.get(&mesh, &ask.at_position(view.list, &row.key)).await;
                        }
                    }
                }
            }
        }
    }
}
