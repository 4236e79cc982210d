//! The name of a workload out of its service's name in the contract; the build uses this file too.

/// `TxRelay` -> `tx-relay`.
pub(crate) fn workload(service: &str) -> String {
    let mut kebab = String::new();
    for (at, letter) in service.char_indices() {
        if letter.is_ascii_uppercase() && at > 0 {
            kebab.push('-');
        }
        kebab.push(letter.to_ascii_lowercase());
    }
    kebab
}
