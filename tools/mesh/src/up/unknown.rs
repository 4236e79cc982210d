//! Variables of `--env` that no program of a mesh reads.

/// All variables of the services; the table is generated from their own lists.
const TABLE: &str = include_str!("../../../../docs/operations/variables.md");

/// The beginning of the variables of the development node.
const OF_DEVNODE: &str = "MESH_DEVNODE_";

/// The names that begin like a variable of the mesh and are none: most are misspelt.
pub(super) fn unknown(env: &[(String, String)]) -> impl Iterator<Item = &str> {
    let is_ours = |name: &&str| name.starts_with("MESH_") && !name.starts_with(OF_DEVNODE);
    let is_read = |name: &str| TABLE.contains(&format!("| `{name}` |"));
    env.iter().map(|(name, _)| name.as_str()).filter(is_ours).filter(move |name| !is_read(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn misspelt_variables_are_found_and_others_are_not() {
        let given = ["MESH_LOG", "MESH_HISTRY_INTERVAL", "MESH_DEVNODE_BLOCK_MS", "PATH", "MESH_EDGE"];
        let given = given.map(|name| (name.to_owned(), String::new()));
        assert_eq!(unknown(&given).collect::<Vec<_>>(), ["MESH_HISTRY_INTERVAL", "MESH_EDGE"]);
    }
}
