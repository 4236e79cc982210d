//! Rules P1 to P6 and P9 to P12 of the contract, each on every list.

use mesh_testbed::{Database, Mesh};
use serde_json::Value;

use crate::paging::list::{LISTS, List};
use crate::paging::page::{Ask, Page, View};

const FIVE: [i64; 5] = [1, 2, 3, 4, 5];

/// The four lists with these rows, and what a client is to see of them.
async fn lists(numbers: &[i64]) -> (Database, Mesh, Vec<View>) {
    let (database, views) = stored(numbers).await;
    let mesh = Mesh::start(&database).await;
    (database, mesh, views)
}

async fn stored(numbers: &[i64]) -> (Database, Vec<View>) {
    let database = Database::fresh().await;
    let client = database.connect().await;
    for list in LISTS {
        client.batch_execute(&list.insert(numbers)).await.unwrap();
    }
    (database, LISTS.map(|list| View::numbered(list, numbers)).to_vec())
}

async fn page_of(mesh: &Mesh, view: &View, query: &str) -> Page {
    let answer = mesh.get(&format!("{}{query}", view.path)).await;
    assert_eq!(answer.status, 200, "{query}: {answer:?}");
    Page::of(view.list, &answer)
}

#[tokio::test]
async fn p1_every_page_is_in_display_order_also_one_from_the_end() {
    let (_database, mesh, views) = lists(&FIVE).await;
    for view in &views {
        for ask in [Ask::first(3), Ask::last(3)] {
            let key = |cursor| view.row_of(cursor).map(|row| &row.key);
            let newest = view.get(&mesh, &ask).await;
            let oldest = view.get(&mesh, &ask.oldest_first()).await;
            assert!(newest.cursors().is_sorted_by(|one, other| key(one) > key(other)));
            assert!(oldest.cursors().is_sorted_by(|one, other| key(one) < key(other)));
            assert_ne!(newest, oldest);
        }
        let explicit = page_of(&mesh, view, "&pagination.newestFirst=true&pagination.first=3").await;
        assert_eq!(explicit, view.expected(&Ask::first(3)), "true is the default");
    }
}

/// Order by bytes: upper case before lower case, digits before letters, whatever the language.
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
    let page = View::new(List::Proposals, "", Vec::new()).answer(&mesh, &Ask::default().oldest_first()).await;
    let shown: Vec<_> = page.nodes().map(|node| node["networkReleaseTag"].as_str().unwrap()).collect();
    assert_eq!(shown, tags);
}

#[tokio::test]
async fn p3_first_follows_the_cursor_and_last_comes_before_it() {
    let (_database, mesh, views) = lists(&FIVE).await;
    for view in &views {
        let list = view.list;
        let shown = |page: &Page| page.nodes().cloned().collect::<Vec<Value>>();
        let nodes = |numbers: &[i64]| numbers.iter().map(|number| list.row(*number).node).collect::<Vec<_>>();
        let after = view.get(&mesh, &Ask::first(2).at(list, &list.key(4))).await;
        assert_eq!(shown(&after), nodes(&[3, 2]));
        let before = view.get(&mesh, &Ask::last(2).at(list, &list.key(2))).await;
        assert_eq!(shown(&before), nodes(&[4, 3]));
        assert_eq!(shown(&view.get(&mesh, &Ask::first(2)).await), nodes(&[5, 4]));
        assert_eq!(shown(&view.get(&mesh, &Ask::last(2)).await), nodes(&[2, 1]));
    }
}

#[tokio::test]
async fn p4_a_page_without_a_size_has_1000_rows() {
    let numbers: Vec<i64> = (1..=1003).collect();
    let (_database, mesh, views) = lists(&numbers).await;
    for view in &views {
        let list = view.list;
        let default = view.expected(&Ask::first(1000));
        assert_eq!(default.edges.len(), 1000);
        assert_eq!(page_of(&mesh, view, "").await, default);
        assert_eq!(page_of(&mesh, view, "&pagination.newestFirst=true").await, default);
        let oldest = page_of(&mesh, view, "&pagination.newestFirst=false").await;
        assert_eq!(oldest, view.expected(&Ask::first(1000).oldest_first()));
        let after = format!("&pagination.after={}", crate::paging::list::cursor(list, &list.key(1002)));
        assert_eq!(
            page_of(&mesh, view, &after).await,
            view.expected(&Ask::first(1000).at(list, &list.key(1002)))
        );
        let before = format!("&pagination.before={}", crate::paging::list::cursor(list, &list.key(2)));
        assert_eq!(
            page_of(&mesh, view, &before).await,
            view.expected(&Ask::last(1000).at(list, &list.key(2)))
        );
    }
}

#[tokio::test]
async fn p5_a_larger_page_is_cut_to_5000_rows_and_the_flags_tell() {
    let numbers: Vec<i64> = (1..=5002).collect();
    let (_database, mesh, views) = lists(&numbers).await;
    for view in &views {
        for size in [5001, 1_000_000, 2_147_483_647] {
            let page = page_of(&mesh, view, &format!("&pagination.first={size}")).await;
            assert_eq!(page, view.expected(&Ask::first(5000)));
            assert!(page.has_next && !page.has_previous);
        }
        let page = page_of(&mesh, view, "&pagination.last=5002").await;
        assert_eq!(page, view.expected(&Ask::last(5000)));
        assert!(page.has_previous && !page.has_next);
    }
}

#[tokio::test]
async fn p5_both_page_sizes_can_be_configured() {
    let (database, views) = stored(&FIVE).await;
    let mesh =
        Mesh::configure(&database).env("MESH_PAGE_DEFAULT", "2").env("MESH_PAGE_MAX", "3").start().await;
    for view in &views {
        assert_eq!(page_of(&mesh, view, "").await, view.expected(&Ask::first(2)));
        assert_eq!(page_of(&mesh, view, "&pagination.first=4").await, view.expected(&Ask::first(3)));
        assert_eq!(page_of(&mesh, view, "&pagination.last=4").await, view.expected(&Ask::last(3)));
    }
}

#[tokio::test]
async fn p6_sizes_below_one_and_contradictions_are_refused() {
    let (_database, mesh, views) = lists(&FIVE).await;
    for view in &views {
        let cursor = crate::paging::list::cursor(view.list, &view.list.key(3));
        for (query, reason) in [
            ("first=0", "pagination limit must be greater than 0"),
            ("first=-1", "pagination limit must be greater than 0"),
            ("last=0", "pagination limit must be greater than 0"),
            ("last=-2147483648", "pagination limit must be greater than 0"),
            ("after=CURSOR&pagination.before=CURSOR", "after and before exclude each other"),
            ("first=1&pagination.last=1", "first and last exclude each other"),
            ("after=CURSOR&pagination.last=1", "after and last exclude each other"),
            ("before=CURSOR&pagination.first=1", "before and first exclude each other"),
        ] {
            let query = query.replace("CURSOR", &cursor);
            let answer = mesh.get(&format!("{}&pagination.{query}", view.path)).await;
            let body = answer.json();
            assert_eq!((answer.status, &body["code"]), (400, &3.into()), "{query}: {answer:?}");
            assert_eq!(body["details"][0]["code"], 10028, "{query}");
            assert_eq!(body["details"][0]["message"], reason, "{query}");
        }
        for query in ["first=2147483648", "first=x", "last=1.0", "newestFirst=maybe"] {
            let answer = mesh.get(&format!("{}&pagination.{query}", view.path)).await;
            assert_eq!(
                (answer.status, &answer.json()["details"][0]["code"]),
                (400, &10028.into()),
                "{query}"
            );
        }
    }
}

#[tokio::test]
async fn p6_an_empty_cursor_is_absent() {
    let (_database, mesh, views) = lists(&FIVE).await;
    for view in &views {
        let page = page_of(&mesh, view, "&pagination.after=&pagination.before=&pagination.last=2").await;
        assert_eq!(page, view.expected(&Ask::last(2)));
    }
}

#[tokio::test]
async fn p9_flags_are_true_of_the_set_in_either_direction() {
    let (_database, mesh, views) = lists(&FIVE).await;
    let mut seen = Vec::new();
    for view in &views {
        for size in [1, 4, 5, 6] {
            for ask in [Ask::first(size), Ask::last(size)] {
                view.get(&mesh, &ask).await;
                for number in FIVE {
                    let page = view.get(&mesh, &ask.clone().at(view.list, &view.list.key(number))).await;
                    seen.push((page.has_next, page.has_previous));
                }
            }
        }
    }
    for flags in [(true, true), (true, false), (false, true)] {
        assert!(seen.contains(&flags), "{flags:?}");
    }
}

#[tokio::test]
async fn p10_an_empty_page_has_no_cursors_and_tells_what_lies_on_the_other_side() {
    let (_database, mesh, views) = lists(&FIVE).await;
    for view in &views {
        let list = view.list;
        for (ask, number, flags) in [
            (Ask::first(2), 1, (false, true)),
            (Ask::first(2), 0, (false, true)),
            (Ask::last(2), 5, (true, false)),
            (Ask::last(2), 6, (true, false)),
            (Ask::first(2).oldest_first(), 5, (false, true)),
            (Ask::last(2).oldest_first(), 1, (true, false)),
        ] {
            let page = view.get(&mesh, &ask.at(list, &list.key(number))).await;
            assert_eq!((page.start.as_str(), page.end.as_str(), page.edges.len()), ("", "", 0));
            assert_eq!((page.has_next, page.has_previous), flags);
        }
    }
}

#[tokio::test]
async fn p10_nothing_lies_on_either_side_of_a_position_in_an_empty_list() {
    let database = Database::fresh().await;
    let mesh = Mesh::start(&database).await;
    for list in LISTS {
        let view = View::numbered(list, &[]);
        for ask in [Ask::first(2), Ask::last(2)] {
            let page = view.get(&mesh, &ask.at(list, &list.key(3))).await;
            assert_eq!((page.has_next, page.has_previous), (false, false));
        }
    }
}
