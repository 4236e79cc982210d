//! Lists the oracles: every `<operation>.sql` of this folder by the name of its operation.

use std::{env, fs, path::Path};

/// `list_trades` -> `ListTrades`.
fn operation(file: &str) -> String {
    let capital = |word: &str| word[..1].to_uppercase() + &word[1..];
    file.split('_').map(capital).collect()
}

fn main() {
    println!("cargo::rerun-if-changed=.");
    let folder = env::var("CARGO_MANIFEST_DIR").expect("cargo sets it");
    let mut rows = Vec::new();
    for entry in fs::read_dir(&folder).expect("the folder of this package").flatten() {
        let path = entry.path();
        let name = path.file_stem().and_then(|name| name.to_str()).unwrap_or_default();
        if path.extension().is_some_and(|extension| extension == "sql") && name != "functions" {
            rows.push(format!("({:?}, include_str!({path:?}))", operation(name)));
        }
    }
    rows.sort();
    let output = Path::new(&env::var("OUT_DIR").expect("cargo sets it")).join("statements.rs");
    fs::write(output, format!("&[{}]", rows.join(", "))).expect("the output folder is writable");
}
