//! ListDelegations: the latest amount of every party, node and epoch.

use serde_json::json;

use crate::{
    paging::{
        list::{List, Row, number, text},
        page::View,
    },
    recorded_network::{
        check::{UNKNOWN, with_check},
        recording::Recording,
    },
};

const PATH: &str = "/api/v2/delegations";

fn all(recording: &Recording) -> View {
    let table = recording.table("delegations");
    let newest = table.newest(
        |row| (row.number::<i64>("epoch_id"), row.text("party_id"), row.text("node_id")),
        |row| (row.ns("block_time"), row.number::<i64>("seq_num")),
    );
    let rows = newest.into_iter().map(|((epoch, party, node), row)| {
        let amount = row.maybe("amount").unwrap_or("0");
        let key = vec![number(epoch), text(party), text(node)];
        let node = json!({"party": party, "nodeId": node, "amount": amount, "epochSeq": epoch.to_string()});
        Row { key, node }
    });
    View { list: List::Delegations, path: PATH.to_owned(), rows: rows.collect() }
}

#[test]
fn the_latest_amount_of_every_key_is_listed() {
    with_check("ListDelegations, all and page by page", async |recording, check| {
        let all = all(recording);
        assert_eq!(all.rows.len(), 659);
        all.compare(check, PATH).await;
        all.compare(check, &format!("{PATH}?pagination.newestFirst=true")).await;
        for size in [1, 10, 97, 658, 659, 660, 5000, 70_000] {
            all.walk(check, PATH, size).await;
        }
    });
}

#[test]
fn delegations_are_found_by_party_by_node_by_epoch_and_by_any_two_or_all_of_them() {
    with_check("ListDelegations, by party, node and epoch", async |recording, check| {
        let all = all(recording);
        let filters = [("partyId", "party"), ("nodeId", "nodeId"), ("epochId", "epochSeq")];
        for (parameter, field) in filters {
            for [value] in all.occurring([field]) {
                let found = all.filtered(|node| node[field] == value);
                found.compare(check, &format!("{PATH}?{parameter}={value}")).await;
            }
        }
        for [one, other] in [[0, 1], [0, 2], [1, 2]].map(|pair| pair.map(|place| filters[place])) {
            for [first, second] in all.occurring([one.1, other.1]) {
                let found = all.filtered(|node| node[one.1] == first && node[other.1] == second);
                let path = format!("{PATH}?{}={first}&{}={second}", one.0, other.0);
                found.compare(check, &path).await;
            }
        }
        for [party, node_id, epoch] in all.occurring(["party", "nodeId", "epochSeq"]) {
            let this = [party, node_id, epoch];
            let found =
                all.filtered(|node| ["party", "nodeId", "epochSeq"].map(|field| &node[field]) == this);
            assert_eq!(found.rows.len(), 1);
            let path = format!("{PATH}?partyId={party}&nodeId={node_id}&epochId={epoch}");
            found.compare(check, &path).await;
        }
    });
}

#[test]
fn pages_of_filtered_delegations_hold_every_row_once() {
    with_check("ListDelegations, filtered page by page", async |recording, check| {
        let all = all(recording);
        for (parameter, field) in [("partyId", "party"), ("nodeId", "nodeId")] {
            for [value] in all.occurring([field]) {
                let found = all.filtered(|node| node[field] == value);
                for size in [9, 100] {
                    found.walk(check, &format!("{PATH}?{parameter}={value}"), size).await;
                }
            }
        }
        for [epoch] in all.occurring(["epochSeq"]).into_iter().step_by(30) {
            let found = all.filtered(|node| node["epochSeq"] == epoch);
            for size in [1, 2, 3] {
                found.walk(check, &format!("{PATH}?epochId={epoch}"), size).await;
            }
        }
    });
}

#[test]
fn an_unknown_party_node_or_epoch_gets_an_empty_page_and_letter_case_does_not_matter() {
    with_check("ListDelegations, unknown ids and upper case", async |recording, check| {
        let all = all(recording);
        let nothing = all.filtered(|_| false);
        let known = all.occurring(["party", "nodeId"]);
        let [party, node_id] = known.first().unwrap();
        for filter in [
            format!("partyId={UNKNOWN}"),
            format!("nodeId={UNKNOWN}"),
            "epochId=9223372036854775807".to_owned(),
            format!("partyId={node_id}"),
            format!("nodeId={party}"),
            format!("partyId={party}&nodeId={UNKNOWN}"),
        ] {
            nothing.walk(check, &format!("{PATH}?{filter}"), 10).await;
        }
        let found = all.filtered(|node| node["party"] == *party && node["nodeId"] == *node_id);
        let path = format!("{PATH}?partyId={}&nodeId={}", party.to_uppercase(), node_id.to_uppercase());
        found.compare(check, &path).await;
        all.compare(check, &format!("{PATH}?partyId=&nodeId=&epochId=")).await;
    });
}
