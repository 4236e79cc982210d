//! Variables of `--env` that no program of a mesh reads.

/// All variables of the services; the table is generated from their own lists.
const TABLE: &str = include_str!("../../../../docs/operations/variables.md");

/// The variables of the development node: the beginning of most, and the one that real nodes have, too.
const OF_DEVNODE: &str = "MESH_DEVNODE_";
const POW_PREFIX: &str = "MESH_POW_PREFIX";

/// The names that begin like a variable of the mesh and are none: most are misspelt.
pub(super) fn unknown(env: &[(String, String)]) -> impl Iterator<Item = &str> {
    let is_of_node = |name: &str| name.starts_with(OF_DEVNODE) || name == POW_PREFIX;
    let is_ours = move |name: &&str| name.starts_with("MESH_") && !is_of_node(name);
    let is_read = |name: &str| TABLE.contains(&format!("| `{name}` |"));
    env.iter().map(|(name, _)| name.as_str()).filter(is_ours).filter(move |name| !is_read(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn misspelt_variables_are_found_and_others_are_not() {
        let given = [
            "MESH_LOG", "MESH_HISTRY_INTERVAL", "MESH_DEVNODE_BLOCK_MS", "MESH_POW_PREFIX", "PATH",
            "MESH_EDGE",
        ];
        let given = given.map(|name| (name.to_owned(), String::new()));
        assert_eq!(unknown(&given).collect::<Vec<_>>(), ["MESH_HISTRY_INTERVAL", "MESH_EDGE"]);
    }
}
