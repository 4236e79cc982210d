//! Documents, help texts, messages and strings of the console have none of `WORDS`, which announce a sentence that is
//! hard to understand. Comments are not checked.

use std::{fs, path::Path};

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/..");
const WORDS: &str = "nobody|somebody|anybody|whoever|whomever|whatever|anew|for ever|in vain|is away|are away|was away|\
    were away|be away|told|tells|hear|hears|heard|look at|looks at|give way|gives way|come back|comes back|came back|\
    go on|goes on|went on|stays true|let in|let us in|lets us in|let go|lets go|left alone|taken back|of before|\
    as meant|as it was meant|odd|heed|heeds|shall|for want of|by and by|lest";

/// The texts of a file that a person reads, with their line numbers.
fn texts(name: &str, content: &str) -> Vec<(usize, String)> {
    let mut texts: Vec<_> = content.lines().enumerate().map(|(at, line)| (at + 1, line.to_owned())).collect();
    if name.ends_with(".md") {
        return texts;
    }
    // Doc comments of command-line options are help texts.
    texts.retain(|(_, line)| content.contains("clap::") && line.trim_start().starts_with("/// "));
    let product = content.split("#[cfg(test)]\nmod ").next().unwrap_or_default();
    let is_comment = |line: &str| ["//", "/*", "*"].iter().any(|mark| line.trim_start().starts_with(mark));
    let code: Vec<_> = product.lines().map(|line| if is_comment(line) { "" } else { line }).collect();
    let code = code.join("\n").replace("\\\\", "").replace("\\\"", "'").replace("'\"'", "");
    let mut line = 1;
    for (at, part) in code.split(['"', '`']).enumerate() {
        // Between quotes, or between the tags of JSX.
        let pieces = if at % 2 == 1 { vec![part] } else { part.split(['<', '>']).collect() };
        let is_text = |text: &&str| at % 2 == 1 || name.ends_with("x") && !text.contains(['=', '(', ';']);
        texts.extend(pieces.into_iter().filter(is_text).map(|text| (line, text.to_owned())));
        line += part.matches('\n').count();
    }
    texts
}

fn check(path: &Path, found: &mut Vec<String>) {
    let name = path.to_str().unwrap();
    if path.is_dir() && !["node_modules", "assets", "tests"].iter().any(|other| path.ends_with(other)) {
        return fs::read_dir(path).unwrap().for_each(|entry| check(&entry.unwrap().path(), found));
    }
    for (line, text) in texts(name, &fs::read_to_string(path).unwrap_or_default()) {
        let prose: String = text.split('{').filter_map(|piece| piece.rsplit('}').next()).collect();
        let words = prose.split(|letter: char| !letter.is_alphanumeric()).filter(|word| !word.is_empty());
        let words = format!(" {} ", words.collect::<Vec<_>>().join(" ").to_lowercase());
        let words = words.replace(" odd seed", "").replace(" odd number", "");
        let hits: Vec<_> = WORDS.split('|').filter(|word| words.contains(&format!(" {word} "))).collect();
        // One or two words are identifiers.
        if words.matches(' ').count() > 3 && !hits.is_empty() {
            found.push(format!("{}:{line}: {}:{words}", name.trim_start_matches(ROOT), hits.join(", ")));
        }
    }
}

#[test]
fn texts_for_readers_are_in_plain_words() {
    let mut found = Vec::new();
    let checked = ["README.md", "docs", "services", "libs", "tools"];
    checked.iter().for_each(|name| check(&Path::new(ROOT).join(name), &mut found));
    assert!(found.is_empty(), "{} sentences to rewrite:\n{}", found.len(), found.join("\n"));
}
