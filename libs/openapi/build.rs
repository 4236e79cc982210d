//! Reads the examples of the document from the test cases in tests/cases: those that a file names, else its
//! first case with a complete response of status 200.

use std::{collections::BTreeMap, env, error::Error, fs, path::PathBuf};

use serde::Deserialize;
use serde_json::value::RawValue;

#[path = "src/example.rs"]
mod example;

use example::{Example, Examples};

#[derive(Deserialize)]
struct CaseFile {
    examples: Option<Examples>,
    cases: Vec<Case>,
}

#[derive(Deserialize)]
struct Case {
    name: String,
    #[serde(default)]
    sealed: bool,
    expect: Expected,
}

#[derive(Deserialize)]
struct Expected {
    status: u16,
    body: Option<Box<RawValue>>,
}

fn main() -> Result<(), Box<dyn Error>> {
    let folder = PathBuf::from(env::var("CARGO_MANIFEST_DIR")?).join("../../tests/cases");
    println!("cargo:rerun-if-changed={}", folder.display());
    let mut all = BTreeMap::new();
    for file in fs::read_dir(&folder)? {
        let path = file?.path();
        if path.extension().is_some_and(|extension| extension == "json") {
            let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
            all.insert(name, examples(&fs::read_to_string(&path)?)?);
        }
    }
    fs::write(PathBuf::from(env::var("OUT_DIR")?).join("examples.json"), serde_json::to_string(&all)?)?;
    Ok(())
}

fn examples(text: &str) -> Result<Examples, serde_json::Error> {
    let file: CaseFile = serde_json::from_str(text)?;
    let first = || {
        let mut cases = file.cases.into_iter().filter(|case| case.expect.status == 200 && !case.sealed);
        let answer = cases.find_map(|case| Some((case.name, case.expect.body?)));
        let answers = answer.map(|(summary, body)| Example { summary, status: 200, body });
        Examples { requests: Vec::new(), answers: answers.into_iter().collect() }
    };
    Ok(file.examples.unwrap_or_else(first))
}
