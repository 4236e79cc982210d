//! Which documents are served, and their order in the navigation.

use std::fmt::Write as _;

use crate::document::{INDEX, Source};

/// Documents for developers and evaluators; a folder ends with a slash.
const NOT_SERVED: [&str; 6] =
    ["benchmarks", "comparison", "decisions/", "developers", "drills", "pull-streams"];

/// The sections of the navigation with their documents. A missing document is left out. A name that ends with a slash
/// stands for the other documents of that folder.
const SECTIONS: [(&str, &[&str]); 4] = [
    ("Start", &["first-ten-minutes", "your-network"]),
    ("Use the API", &["traders", "transactions", "api", "errors", "versioning"]),
    ("Analyse", &["analysts", "recipes", "tables", "segments"]),
    ("Operate", &["operations", "operations/", "telemetry", "troubleshooting"]),
];

/// The section of served documents that no other section names.
const OTHERS: &str = "More";

/// What the gateway is, for `llms.txt` and for an index that is not written.
const SUMMARY: &str = "Tradewind is an API gateway for a trading network: markets, trades, candles, accounts, rewards and \
                       history over HTTP, gRPC and server-sent events, and submission of signed transactions.";

/// The last section of `llms.txt`.
const REFERENCE: &str = "
## Reference

- [openapi.json](openapi.json): every operation, parameter, schema and error as an OpenAPI 3.1 document.
- [datasets](api/v2/datasets): the tables that can be exported, with rows, blocks and times, and their columns, as JSON.
- [tables.sql](tables.sql): PostgreSQL statements that create the tables of the exported history.
- [API browser](docs): a page that shows the OpenAPI document and sends requests.
";

/// Whether a document is a page of the guide.
pub(crate) fn is_served(name: &str) -> bool {
    !NOT_SERVED
        .iter()
        .any(|left_out| name == *left_out || (left_out.ends_with('/') && name.starts_with(left_out)))
}

/// The sections with indexes of the documents.
pub(crate) struct Navigation {
    pub(crate) sections: Vec<(&'static str, Vec<usize>)>,
}

impl Navigation {
    /// Sorts the documents into the sections. Adds an index to the documents if they have none.
    pub(crate) fn of(sources: &mut Vec<Source>) -> Self {
        let mut rest: Vec<usize> = (0..sources.len()).filter(|at| sources[*at].name != INDEX).collect();
        let mut sections = Vec::new();
        for (title, names) in SECTIONS {
            let mut members = Vec::new();
            for name in names {
                let is_named = |at: &usize| {
                    let found = &sources[*at].name;
                    found == name || (name.ends_with('/') && found.starts_with(name))
                };
                members.extend(rest.extract_if(.., |at| is_named(at)));
            }
            sections.push((title, members));
        }
        sections.push((OTHERS, rest));
        sections.retain(|(_, members)| !members.is_empty());
        let navigation = Self { sections };
        if !sources.iter().any(|source| source.name == INDEX) {
            let index = navigation.index(sources);
            sources.push(Source::new(INDEX.to_owned(), index));
        }
        navigation
    }

    fn index(&self, sources: &[Source]) -> String {
        let list = self.list(sources, |name| format!("{name}.md"));
        format!("# Guide\n\n{SUMMARY}\n{list}")
    }

    /// The text of `/llms.txt`.
    pub(crate) fn llms(&self, sources: &[Source]) -> String {
        let list = self.list(sources, |name| format!("guide/{name}"));
        format!("# Tradewind\n\n> {SUMMARY}\n{list}{REFERENCE}")
    }

    /// The sections in Markdown, each document with its first sentence.
    fn list(&self, sources: &[Source], url: impl Fn(&str) -> String) -> String {
        let mut list = String::new();
        for (title, members) in &self.sections {
            // Writing to a string cannot fail.
            let _ = write!(list, "\n## {title}\n\n");
            for source in members.iter().map(|at| &sources[*at]) {
                let _ = writeln!(
                    list,
                    "- [{}]({}): {}",
                    source.title,
                    url(&source.name),
                    source.first_sentence()
                );
            }
        }
        list
    }
}
