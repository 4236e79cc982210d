//! Rows that are inserted and deleted while a client walks through pages (P7, P11).

use std::collections::HashSet;

use mesh_testbed::{Database, Mesh};
use mesh_tests::client::MeshClient;
use rand::{Rng, SeedableRng, rngs::SmallRng, seq::IndexedRandom};
use serde_json::Value;
use tokio_postgres::Client;

use crate::paging::{
    list::{LISTS, List},
    page::{Page, PageRequest, View},
    seeds,
};

/// The rows of a list: odd numbers are permanent, even ones are inserted and deleted.
struct Churn {
    list: List,
    client: Client,
    random: SmallRng,
    present: HashSet<i64>,
}

const NUMBERS: std::ops::Range<i64> = 1..60;

impl Churn {
    async fn start(database: &Database, list: List, seed: u64) -> Self {
        let mut random = SmallRng::seed_from_u64(seed);
        let present: HashSet<i64> = NUMBERS.filter(|number| number % 2 == 1 || random.random()).collect();
        let client = database.connect().await;
        client.batch_execute(&list.insert(&Vec::from_iter(present.iter().copied()))).await.unwrap();
        Self { list, client, random, present }
    }

    /// Inserts or deletes some rows, most often the one at the end of the page that was just read.
    async fn step(&mut self, page: &Page) {
        let even: Vec<i64> = NUMBERS.filter(|number| number % 2 == 0).collect();
        let mut touched: Vec<i64> = even.choose_multiple(&mut self.random, 4).copied().collect();
        let at_an_end = |number: &i64| {
            let cursor = crate::paging::list::cursor(self.list, &self.list.key(*number));
            cursor == page.start || cursor == page.end
        };
        touched.extend(
            even.into_iter().filter(at_an_end).filter(|number| !touched.contains(number)).collect::<Vec<_>>(),
        );
        for number in touched {
            if self.present.remove(&number) {
                self.client.batch_execute(&self.list.delete(number)).await.unwrap();
            } else {
                self.present.insert(number);
                self.client.batch_execute(&self.list.insert(&[number])).await.unwrap();
            }
        }
    }
}

async fn walk(mesh: &MeshClient, churn: &mut Churn, size: usize, backwards: bool, oldest_first: bool) {
    let list = churn.list;
    let view = View::numbered(list, &[]);
    let ask =
        if backwards { PageRequest::last(size) } else { PageRequest::first(size) }.in_order(oldest_first);
    let mut seen: Vec<Value> = Vec::new();
    let mut next = ask.clone();
    loop {
        let page = view.answer(mesh, &next).await;
        let mut nodes: Vec<Value> = page.nodes().cloned().collect();
        let (end, more) =
            if backwards { (&page.start, page.has_previous) } else { (&page.end, page.has_next) };
        if backwards {
            nodes.reverse();
        }
        seen.extend(nodes);
        if !more {
            break;
        }
        next = ask.clone().cursor(end);
        churn.step(&page).await;
    }
    let number_of = |node: &Value| NUMBERS.into_iter().find(|number| list.row(*number).node == *node);
    let numbers: Vec<i64> = seen.iter().map(|node| number_of(node).expect("a row of ours")).collect();
    let upwards = backwards != oldest_first;
    let in_order = |pair: &[i64]| if upwards { pair[0] < pair[1] } else { pair[0] > pair[1] };
    assert!(numbers.windows(2).all(in_order), "{list:?}: out of order or twice: {numbers:?}");
    let missed: Vec<i64> = NUMBERS.filter(|number| number % 2 == 1 && !numbers.contains(number)).collect();
    assert!(missed.is_empty(), "{list:?}: {missed:?} were there all the time and not shown: {numbers:?}");
}

#[tokio::test]
async fn p7_rows_inserted_and_deleted_during_a_walk_hide_or_repeat_no_other_row() {
    let database = Database::fresh().await;
    let mesh = Mesh::start(&database).await;
    let mesh = MeshClient::new(&mesh);
    for seed in seeds() {
        for list in LISTS {
            let mut churn = Churn::start(&database, list, seed).await;
            for size in [1, 2, 7] {
                for (backwards, oldest_first) in [(false, false), (true, false), (false, true), (true, true)]
                {
                    walk(&mesh, &mut churn, size, backwards, oldest_first).await;
                }
            }
            let deletes: String = NUMBERS.map(|number| format!("{};", list.delete(number))).collect();
            churn.client.batch_execute(&deletes).await.unwrap();
        }
    }
}

/// The store alternates between two contents, each change in one transaction. A page read from both would
/// have flags that do not fit its edges.
#[tokio::test]
async fn p11_edges_and_flags_of_a_page_are_from_one_snapshot() {
    let database = Database::fresh().await;
    let mesh = Mesh::start(&database).await;
    let mesh = MeshClient::new(&mesh);
    let client = database.connect().await;
    let (low, high) = ([1, 2, 3], [7, 8, 9]);
    for list in LISTS {
        client.batch_execute(&list.insert(&low)).await.unwrap();
        let view = View::numbered(list, &low);
        let other = View::numbered(list, &high);
        let ask = PageRequest::first(5).at_position(list, &list.key(5));
        let allowed = [view.expected(&ask), other.expected(&ask)];
        assert_ne!(allowed[0], allowed[1]);
        let swap = |away: [i64; 3], here: [i64; 3]| {
            let deletes: String = away.map(|number| format!("{};", list.delete(number))).concat();
            format!("BEGIN; {deletes} {}; COMMIT", list.insert(&here))
        };
        let swapping = async {
            for _ in 0..60 {
                client.batch_execute(&swap(low, high)).await.unwrap();
                client.batch_execute(&swap(high, low)).await.unwrap();
            }
        };
        let reading = async {
            loop {
                let page = view.answer(&mesh, &ask).await;
                assert!(allowed.contains(&page), "{list:?}: {page:?}");
            }
        };
        tokio::select! {
            () = swapping => {}
            () = reading => {}
        }
    }
}
