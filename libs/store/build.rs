//! Lists the migrations for `schema.rs`, sorted by number.

use std::{env, error::Error, fmt::Write as _, fs, path::Path};

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo:rerun-if-changed=migrations");
    let mut migrations = Vec::new();
    for entry in fs::read_dir("migrations")? {
        let file = entry?.file_name().into_string().map_err(|name| format!("{}", name.display()))?;
        let name = file.strip_suffix(".sql").ok_or("a migration ends with .sql")?;
        let number = name.strip_prefix('V').and_then(|name| name.split_once("__"));
        let (number, _) = number.ok_or("a migration is named V<number>__<name>.sql")?;
        migrations.push((number.parse::<i32>()?, name.to_owned()));
    }
    migrations.sort();
    let mut list = String::from("[");
    for (version, name) in migrations {
        let sql = format!("include_str!(concat!(env!(\"CARGO_MANIFEST_DIR\"), \"/migrations/{name}.sql\"))");
        write!(list, "Migration {{ version: {version}, name: \"{name}\", sql: {sql} }},")?;
    }
    fs::write(Path::new(&env::var("OUT_DIR")?).join("migrations.rs"), list + "]")?;
    Ok(())
}
