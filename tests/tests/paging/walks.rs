//! Walks over random lists give every row once, in display order, with true flags and cursors (I5).

use mesh_testbed::{Database, Mesh};
use rand::{SeedableRng, rngs::SmallRng};

use crate::paging::data::views;
use crate::paging::list::{LISTS, List};
use crate::paging::page::{Ask, View};
use crate::paging::seeds;

/// Walks a view to its end, expecting each page to be the contract's, and the pages together to be the view.
async fn walk(mesh: &Mesh, view: &View, size: usize, backwards: bool, oldest_first: bool) {
    let ask = if backwards { Ask::last(size) } else { Ask::first(size) }.in_order(oldest_first);
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
        next = ask.clone().at(view.list, &row.key);
    }
    let walked: Vec<_> = pages.iter().flat_map(|page| page.nodes()).collect();
    let whole: Vec<_> = view.displayed(oldest_first).into_iter().map(|row| &row.node).collect();
    assert_eq!(walked, whole, "{} by {size}", view.path);
}

async fn walk_everything(list: List) {
    for seed in seeds() {
        let database = Database::fresh().await;
        let (statements, views) = views(list, &mut SmallRng::seed_from_u64(seed));
        database.connect().await.batch_execute(&statements).await.unwrap();
        let mesh = Mesh::start(&database).await;
        for view in &views {
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

/// Pages from positions between, before and behind all rows, also of filters that the position does not pass
/// (P12).
#[tokio::test]
async fn any_position_is_a_place_in_any_view() {
    for seed in seeds() {
        let database = Database::fresh().await;
        let client = database.connect().await;
        let mut all = Vec::new();
        for list in LISTS {
            let (statements, views) = views(list, &mut SmallRng::seed_from_u64(seed));
            client.batch_execute(&statements).await.unwrap();
            all.push(views);
        }
        let mesh = Mesh::start(&database).await;
        for views in &all {
            let positions: Vec<_> = views.iter().flat_map(|view| view.rows.iter().step_by(9)).collect();
            for view in views {
                for row in &positions {
                    for (ask, oldest_first) in [Ask::first(3), Ask::last(3)]
                        .into_iter()
                        .flat_map(|ask| [(ask.clone(), false), (ask, true)])
                    {
                        view.get(&mesh, &ask.in_order(oldest_first).at(view.list, &row.key)).await;
                    }
                }
            }
        }
    }
}
