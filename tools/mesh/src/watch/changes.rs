//! The differences of two answers as text: one line for each member and each row of a list.

use serde_json::{Map, Value};

/// Members with the position of a page only.
const CURSORS: [&str; 3] = ["cursor", "startCursor", "endCursor"];

/// Lines `PATH: OLD -> NEW` of changed members, `+ PATH NEW` of added and `- PATH OLD` of removed ones.
pub(super) fn changes(old: &Value, new: &Value) -> Vec<String> {
    let mut lines = Vec::new();
    compare("", old, new, &mut lines);
    lines
}

fn compare(path: &str, old: &Value, new: &Value, lines: &mut Vec<String>) {
    match (old, new) {
        (old, new) if old == new => {}
        (Value::Object(old), Value::Object(new)) => compare_members(path, old, new, lines),
        (Value::Array(old), Value::Array(new)) => compare_rows(path, old, new, lines),
        (old, new) => lines.push(format!("{path}: {old} -> {new}")),
    }
}

fn compare_members(path: &str, old: &Map<String, Value>, new: &Map<String, Value>, lines: &mut Vec<String>) {
    let path_of = |name: &str| if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") };
    for (name, value) in new.iter().filter(|(name, _)| !CURSORS.contains(&name.as_str())) {
        match old.get(name) {
            Some(old) => compare(&path_of(name), old, value, lines),
            None => lines.push(format!("+ {} {value}", path_of(name))),
        }
    }
    for (name, value) in old.iter().filter(|(name, _)| !new.contains_key(*name)) {
        lines.push(format!("- {} {value}", path_of(name)));
    }
}

fn compare_rows(path: &str, old: &[Value], new: &[Value], lines: &mut Vec<String>) {
    let mut left: Vec<&Value> = old.iter().collect();
    let mut take = |is_it: &dyn Fn(&Value) -> bool| {
        left.iter().position(|row| is_it(row)).map(|index| left.remove(index))
    };
    // Equal rows are no candidates for changed ones.
    let others: Vec<_> =
        new.iter().enumerate().filter(|(_, row)| take(&|old| old == *row).is_none()).collect();
    for (index, row) in others {
        match take(&|old| is_same_row(old, row)) {
            Some(old) => compare(&format!("{path}[{index}]"), old, row, lines),
            None => lines.push(format!("+ {path} {}", content(row))),
        }
    }
    lines.extend(left.into_iter().map(|row| format!("- {path} {}", content(row))));
}

/// Whether two rows are states of the same object: by their identifying members, else by most of their members.
fn is_same_row(old: &Value, new: &Value) -> bool {
    let (Value::Object(old), Value::Object(new)) = (old, new) else { return false };
    for name in ["cursor", "id"] {
        if let (Some(old), Some(new)) = (old.get(name), new.get(name)) {
            return old == new;
        }
    }
    let equal = new.iter().filter(|(name, value)| old.get(*name) == Some(value)).count();
    equal * 2 > new.len().max(old.len())
}

/// A row without its cursor.
fn content(row: &Value) -> &Value {
    row.get("cursor").and(row.get("node")).unwrap_or(row)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn members_are_named_by_their_paths() {
        let old = json!({"a": {"b": "1", "c": [1]}, "gone": null, "same": [{}], "kind": 1});
        let new = json!({"a": {"b": "2", "c": [1]}, "come": {"x": 1}, "same": [{}], "kind": [1]});
        let expected = ["a.b: \"1\" -> \"2\"", "+ come {\"x\":1}", "kind: 1 -> [1]", "- gone null"];
        assert_eq!(changes(&old, &new), expected);
        assert_eq!(changes(&new, &new), [""; 0]);
        assert_eq!(changes(&json!(1), &json!(2)), [": 1 -> 2"]);
    }

    #[test]
    fn rows_of_a_page_come_change_and_go_without_their_cursors() {
        let page = |rows: &[(&str, u32)]| {
            let edge = |(id, size): &(&str, u32)| json!({"node": {"id": id, "size": size}, "cursor": format!("c{id}")});
            let edges: Vec<_> = rows.iter().map(edge).collect();
            json!({"trades": {"edges": edges, "pageInfo": {"startCursor": rows[0].0, "hasNextPage": true}}})
        };
        let found = changes(&page(&[("c", 1), ("b", 2), ("a", 3)]), &page(&[("d", 4), ("c", 1), ("b", 9)]));
        let expected = [
            "+ trades.edges {\"id\":\"d\",\"size\":4}",
            "trades.edges[2].node.size: 2 -> 9",
            "- trades.edges {\"id\":\"a\",\"size\":3}",
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn rows_without_a_name_are_known_by_most_of_their_members() {
        let row = |party: &str, balance: u32| json!({"party": party, "asset": "x", "balance": balance});
        let found = changes(&json!([row("p", 1), row("q", 2)]), &json!([row("q", 3), row("p", 1)]));
        assert_eq!(found, ["[0].balance: 2 -> 3"]);
        let found = changes(&json!([row("p", 1)]), &json!([row("q", 2)]));
        assert_eq!(found.len(), 2, "{found:?}");
        assert_eq!(changes(&json!([1, 2, 2]), &json!([2, 3])), ["+  3", "-  1", "-  2"]);
    }
}
