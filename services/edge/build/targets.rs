//! Where the links of a document lead when it is a page of the guide.

use std::collections::{BTreeMap, BTreeSet};

use crate::document::{INDEX, Source};

/// Whether a file can be shown as a picture.
pub(crate) fn is_picture(name: &str) -> bool {
    [".png", ".svg"].iter().any(|ending| name.ends_with(ending))
}

/// The files that links can lead to.
pub(crate) struct Targets {
    pages: BTreeSet<String>,
    /// Paths below the gateway's root of pictures, by their paths in `docs`.
    pictures: BTreeMap<String, String>,
}

impl Targets {
    /// These documents, and pictures by their paths below the gateway's root: `guide/pictures/<name>.<digest>.<ending>`.
    pub(crate) fn new<'a>(sources: &[Source], pictures: impl Iterator<Item = &'a str>) -> Self {
        let by_name = pictures.filter_map(|path| {
            let (rest, ending) = path.strip_prefix("guide/")?.rsplit_once('.')?;
            let (stem, _digest) = rest.rsplit_once('.')?;
            Some((format!("{stem}.{ending}"), path.to_owned()))
        });
        Self {
            pages: sources.iter().map(|source| source.name.clone()).collect(),
            pictures: by_name.collect(),
        }
    }

    /// The URL for a link of a document; `None` when the gateway does not serve its target.
    pub(crate) fn url(&self, from: &str, link: &str) -> Option<String> {
        if link.starts_with('#')
            || ["http://", "https://", "mailto:"].iter().any(|scheme| link.starts_with(scheme))
        {
            return Some(link.to_owned());
        }
        let (file, fragment) = match link.split_once('#') {
            Some((file, fragment)) => (file, format!("#{fragment}")),
            None => (link, String::new()),
        };
        let file = resolve(from, file)?;
        let path = match file.strip_suffix(".md") {
            Some("README") => format!("guide/{INDEX}"),
            Some(name) if self.pages.contains(name) => format!("guide/{name}"),
            Some(_) => return None,
            None if file == "tables.sql" => file,
            None => self.pictures.get(&file)?.clone(),
        };
        Some(relative(from, &path) + &fragment)
    }
}

/// The path in `docs` of a file that a document names; `None` outside of `docs`.
fn resolve(from: &str, file: &str) -> Option<String> {
    let mut parts: Vec<&str> = from.split('/').collect();
    parts.pop();
    for part in file.split('/') {
        match part {
            "." => {}
            ".." => {
                parts.pop()?;
            }
            part => parts.push(part),
        }
    }
    Some(parts.join("/"))
}

/// The relative URL from a page to a path below the gateway's root.
pub(crate) fn relative(from: &str, path: &str) -> String {
    let up = "../".repeat(from.matches('/').count());
    match path.strip_prefix("guide/") {
        Some("") if up.is_empty() => "./".to_owned(),
        Some(page) => up + page,
        None => format!("{up}../{path}"),
    }
}
