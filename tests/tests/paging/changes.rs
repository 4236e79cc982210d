//! Rows that are inserted and deleted while a client walks through pages (P7, P11).

use std::collections::BTreeSet;

use mesh_query::LISTS;
use mesh_store::{KeyKind, List, TimeUs, Value as StoreValue};
use mesh_tests::{MeshClient, lists};
use proto_msgs::OperationInfo;
use rand::{SeedableRng as _, rngs::SmallRng, seq::IndexedRandom as _};
use serde_json::Value;
use tokio_postgres::Client;

use crate::paging::{View, World, at, pages, seeds};

const ROWS: usize = 20;

/// A list whose rows are deleted from the table that it reads, and inserted again.
struct Changing {
    view: View,
    list: &'static List,
    client: Client,
    /// Numbers of the rows that are stored.
    stored: BTreeSet<usize>,
}

impl Changing {
    /// The list of an operation, cut to its first rows; `None` for accounts, which are read from a view.
    async fn start(world: &World, operation: &OperationInfo) -> Option<Self> {
        let (mut view, client) =
            (world.whole(&world.oracle().await, operation).await, world.database.connect().await);
        let name = &view.listing.rows[0].list;
        let list = LISTS.into_iter().find(|list| list.name == *name);
        let list = list.unwrap_or_else(|| panic!("{name} is not in mesh_query::LISTS"));
        if list.table == "accounts_with_balances" {
            return None;
        }
        let copy = format!("CREATE TABLE copied_{name} AS TABLE {}", table(list));
        client.batch_execute(&copy).await.unwrap();
        let stored = (0..view.listing.rows.len()).collect();
        let mut changing = Self { view, list, client, stored };
        let superfluous: Vec<usize> = changing.stored.iter().copied().skip(ROWS).collect();
        changing.run(&superfluous.iter().map(|number| changing.delete(*number)).collect::<String>()).await;
        changing.stored.retain(|number| *number < ROWS);
        view = changing.view;
        view.listing.rows.truncate(ROWS);
        Some(Self { view, ..changing })
    }

    fn delete(&self, number: usize) -> String {
        format!("DELETE FROM {} WHERE {};", table(self.list), self.is_row(number))
    }

    fn insert(&self, number: usize) -> String {
        let (name, row) = (self.list.name, self.is_row(number));
        format!("INSERT INTO {} SELECT * FROM copied_{name} WHERE {row};", table(self.list))
    }

    /// The condition of SQL for the row of a number.
    fn is_row(&self, number: usize) -> String {
        let key = &self.view.listing.rows[number].key;
        let is_equal = |(column, value): (&mesh_store::KeyColumn, &Value)| {
            let literal = match (column.kind, value.as_i64()) {
                (KeyKind::Time, Some(ns)) => StoreValue::Time(TimeUs(ns / 1000)),
                (_, Some(number)) => StoreValue::Integer(number),
                (_, None) => StoreValue::Text(value.as_str().unwrap().to_owned()),
            };
            format!("{} = {}", column.name, literal.to_literal())
        };
        self.list.key.iter().zip(key).map(is_equal).collect::<Vec<_>>().join(" AND ")
    }

    async fn run(&self, statements: &str) {
        self.client.batch_execute(statements).await.unwrap_or_else(|error| panic!("{error:?}: {statements}"));
    }

    /// Inserts or deletes some of every second row, most often those at the ends of the page that was just
    /// read.
    async fn change(&mut self, shown: &[usize], random: &mut SmallRng) {
        let odd: Vec<usize> = (1..ROWS.min(self.view.listing.rows.len())).step_by(2).collect();
        let mut changed: BTreeSet<usize> = odd.choose_multiple(random, 4).copied().collect();
        changed.extend(shown.first().into_iter().chain(shown.last()).filter(|number| *number % 2 == 1));
        for number in changed {
            let is_stored = self.stored.remove(&number);
            if !is_stored {
                self.stored.insert(number);
            }
            self.run(&if is_stored { self.delete(number) } else { self.insert(number) }).await;
        }
    }

    /// Walks through pages of this size while rows change. Returns the numbers of the rows in the order of
    /// the walk.
    async fn walk(
        &mut self,
        mesh: &MeshClient,
        mut page: proto_msgs::v2::Pagination,
        random: &mut SmallRng,
    ) -> Vec<usize> {
        let (mut walked, is_forward) = (Vec::new(), page.first.is_some());
        loop {
            let answer = self.view.get(mesh, &page).await;
            let (edges, info) = (find(&answer, "edges"), find(&answer, "pageInfo"));
            let rows = &self.view.listing.rows;
            let number = |edge: &Value| {
                let number =
                    rows.iter().position(|row| edge["cursor"] == *row.cursor && edge["node"] == row.node);
                number.unwrap_or_else(|| panic!("not a row: {edge}"))
            };
            let mut shown: Vec<usize> = edges.as_array().unwrap().iter().map(number).collect();
            if !is_forward {
                shown.reverse();
            }
            walked.extend(&shown);
            let (end, more) =
                if is_forward { ("endCursor", "hasNextPage") } else { ("startCursor", "hasPreviousPage") };
            if info[more] == false {
                return walked;
            }
            page = at(&page, info[end].as_str().unwrap());
            self.change(&shown, random).await;
        }
    }
}

/// The table that has the rows of a list.
fn table(list: &List) -> &str {
    if list.table == "markets_with_prices" { "markets_current" } else { list.table }
}

/// A member of the page in an answer.
fn find<'a>(answer: &'a Value, member: &str) -> &'a Value {
    answer.as_object().and_then(|answer| answer.values().next()).map(|page| &page[member]).unwrap()
}

#[tokio::test]
async fn p7_rows_inserted_and_deleted_during_a_walk_hide_or_repeat_no_other_row() {
    let seed = seeds()[1 % seeds().len()];
    let (world, mut random) = (World::start(seed).await, SmallRng::seed_from_u64(seed));
    let mesh = MeshClient::new(&world.mesh);
    for operation in lists() {
        let Some(mut changing) = Changing::start(&world, operation).await else { continue };
        for page in [1, 3].into_iter().flat_map(pages) {
            let walked = changing.walk(&mesh, page.clone(), &mut random).await;
            let upwards = page.first.is_some() != page.newest_first.unwrap();
            let in_order = |pair: &[usize]| if upwards { pair[0] < pair[1] } else { pair[0] > pair[1] };
            let name = &operation.name;
            let are_in_order = walked.windows(2).all(in_order);
            assert!(are_in_order, "{name}, seed {seed}: out of order or twice: {walked:?}");
            let rows = changing.view.listing.rows.len();
            let missed: Vec<usize> = (0..rows).step_by(2).filter(|number| !walked.contains(number)).collect();
            assert!(missed.is_empty(), "{name}, seed {seed}: {missed:?} were always there: {walked:?}");
        }
    }
}

/// The store alternates between two contents, each change in one transaction. A page read from both would
/// have flags that do not fit its edges.
#[tokio::test]
async fn p11_edges_and_flags_of_a_page_are_from_one_snapshot() {
    let world = World::start(seeds()[0]).await;
    let mesh = MeshClient::new(&world.mesh);
    for operation in lists() {
        let Some(changing) = Changing::start(&world, operation).await else { continue };
        let (view, rows) = (&changing.view, &changing.view.listing.rows);
        let (low, high): ([usize; 3], [usize; 3]) =
            ([0, 1, 2], [rows.len() - 3, rows.len() - 2, rows.len() - 1]);
        let superfluous: String = (3..rows.len()).map(|number| changing.delete(number)).collect();
        changing.run(&superfluous).await;
        let page = at(&pages(5)[0], &rows[4].cursor);
        let allowed = [low, high]
            .map(|numbers| view.listing.with_rows(numbers.map(|number| rows[number].clone())).answer(&page));
        assert_ne!(allowed[0], allowed[1]);
        let swap = |away: [usize; 3], here: [usize; 3]| {
            let deletes: String = away.map(|number| changing.delete(number)).concat();
            let inserts: String = here.map(|number| changing.insert(number)).concat();
            format!("BEGIN; {deletes} {inserts} COMMIT")
        };
        let swapping = async {
            for _ in 0..30 {
                changing.run(&swap(low, high)).await;
                changing.run(&swap(high, low)).await;
            }
        };
        let reading = async {
            loop {
                let found = view.get(&mesh, &page).await;
                assert!(allowed.contains(&found), "{}: {found}", operation.name);
            }
        };
        tokio::select! {
            () = swapping => {}
            () = reading => {}
        }
    }
}
