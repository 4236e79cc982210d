//! `/guide`, `/tables.sql` and `/llms.txt`: every document for users is a page, and every link of every page leads
//! somewhere.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
};

use mesh_tests::MeshClient;
use reqwest::Url;

const DOCS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs");

/// Documents of developers and evaluators, which are no pages.
const NOT_SERVED: [&str; 6] =
    ["benchmarks", "comparison", "decisions", "developers", "drills", "pull-streams"];

/// All values of attributes that refer to other files or to anchors.
pub(crate) fn links(html: &str) -> impl Iterator<Item = &str> {
    ["href=\"", "src=\""].into_iter().flat_map(|opening| attributes(html, opening))
}

fn attributes<'a>(html: &'a str, opening: &'a str) -> impl Iterator<Item = &'a str> {
    html.split(opening).skip(1).filter_map(|rest| rest.split('"').next())
}

struct Page {
    ids: BTreeSet<String>,
    links: Vec<String>,
}

/// Gets a page and checks what all pages have in common.
async fn page(client: &MeshClient, path: &str) -> Page {
    let answer = client.get(path).await;
    let shown = (answer.status, answer.header("content-type"));
    assert_eq!(shown, (200, Some("text/html; charset=utf-8")), "{path}");
    assert_eq!(answer.header("cache-control"), Some("no-cache"), "{path}");
    let policy = answer.header("content-security-policy").unwrap();
    let is_strict = policy.contains("default-src 'none'; style-src 'self'") && !policy.contains("unsafe");
    assert!(is_strict, "{policy}");
    let html = answer.text();
    for forbidden in ["<script", "<style", " style=", " onclick="] {
        assert!(!html.contains(forbidden), "{path} has {forbidden}");
    }
    for once in ["<main", "<h1", "<title>"] {
        assert_eq!(html.matches(once).count(), 1, "{path}: {once}");
    }
    let ids: Vec<&str> = attributes(html, " id=\"").collect();
    let unique: BTreeSet<String> = ids.iter().copied().map(str::to_owned).collect();
    assert_eq!(ids.len(), unique.len(), "{path} has an id twice: {ids:?}");
    Page { ids: unique, links: links(html).map(str::to_owned).collect() }
}

/// Gets the pages that can be reached from the index, and checks that everything else that they refer to is served.
async fn walk(client: &MeshClient) -> BTreeMap<String, Page> {
    let root: Url = client.url().parse().unwrap();
    let (mut pages, mut others, mut open) = (BTreeMap::new(), BTreeSet::new(), vec!["/guide/".to_owned()]);
    while let Some(path) = open.pop() {
        let found = page(client, &path).await;
        for link in &found.links {
            assert!(!link.starts_with('/'), "{path}: {link} is not relative");
            let target = root.join(&path).unwrap().join(link).unwrap();
            if target.host() != root.host() || target.port() != root.port() {
                continue;
            }
            let file = target.path().to_owned();
            let is_page = file.starts_with("/guide/") && !file.contains('.');
            if is_page && !pages.contains_key(&file) && file != path && !open.contains(&file) {
                open.push(file);
            } else if !is_page && others.insert(file.clone()) {
                assert_eq!(client.get(&file).await.status, 200, "{path} refers to {file}");
            }
        }
        pages.insert(path, found);
    }
    assert!(others.iter().any(|file| file.ends_with(".css")) && others.contains("/docs"), "{others:?}");
    pages
}

/// The paths of the pages that the documents of a folder have.
fn expected(folder: &Path, below: &str) -> Vec<String> {
    let mut paths = Vec::new();
    for entry in folder.read_dir().unwrap().map(Result::unwrap) {
        let name = entry.file_name().into_string().unwrap();
        let stem = name.strip_suffix(".md");
        if NOT_SERVED.contains(&stem.unwrap_or(&name)) || stem == Some("README") {
            continue;
        }
        match stem {
            Some(stem) => paths.push(format!("{below}{stem}")),
            None if entry.path().is_dir() => {
                paths.extend(expected(&entry.path(), &format!("{below}{name}/")));
            }
            None => {}
        }
    }
    paths
}

#[tokio::test]
async fn every_document_for_users_is_a_page_and_every_link_and_anchor_exists() {
    let client = MeshClient::fixture().await;
    let pages = walk(&client).await;
    let mut expected: BTreeSet<String> = expected(Path::new(DOCS), "/guide/").into_iter().collect();
    expected.insert("/guide/".to_owned());
    assert_eq!(pages.keys().cloned().collect::<BTreeSet<_>>(), expected);
    let root: Url = client.url().parse().unwrap();
    let mut count = 0;
    for (path, page) in &pages {
        for link in page.links.iter().filter(|link| link.contains('#')) {
            let target = root.join(path).unwrap().join(link).unwrap();
            let Some(led_to) = pages.get(target.path()) else { continue };
            count += 1;
            assert!(led_to.ids.contains(target.fragment().unwrap()), "{path}: no heading for {link}");
        }
    }
    assert!(count > 100, "only {count} links to headings");
}

#[tokio::test]
async fn the_guide_is_served_as_other_pages_are() {
    let client = MeshClient::fixture().await;
    let docs = client.get("/docs/").await;
    assert_eq!((docs.status, docs.header("location")), (308, Some("../docs")), "{docs:?}");
    let moved = client.get("/guide").await;
    assert_eq!((moved.status, moved.header("location")), (308, Some("guide/")));
    for path in
        ["/guide/nothing", "/guide/developers", "/guide/traders/", "/guide/traders.md", "/guide/style.css"]
    {
        assert_eq!((client.get(path).await.status, path), (404, path));
    }
    let whole = client.get("/guide/errors").await;
    let head = client.send("HEAD", "/guide/errors").await;
    assert_eq!((head.status, head.body.len()), (200, 0));
    assert_eq!(head.header("content-length"), Some(whole.body.len().to_string().as_str()));
    let style = attributes(whole.text(), "<link rel=\"stylesheet\" href=\"").next().unwrap();
    let style = client.get(&format!("/guide/{style}")).await;
    assert_eq!(style.header("cache-control"), Some("public, max-age=31536000, immutable"));
}

#[tokio::test]
async fn programs_find_the_documents() {
    let client = MeshClient::fixture().await;
    let statements = client.get("/tables.sql").await;
    assert_eq!(statements.header("content-type"), Some("text/plain; charset=utf-8"));
    assert_eq!(statements.text(), std::fs::read_to_string(Path::new(DOCS).join("tables.sql")).unwrap());

    let overview = client.get("/llms.txt").await;
    let mut lines = overview.text().lines();
    assert_eq!((lines.next(), lines.next()), (Some("# Tradewind"), Some("")));
    assert!(lines.next().unwrap().starts_with("> "), "a summary");
    let entries: Vec<&str> = lines.filter(|line| line.starts_with("- ")).collect();
    for entry in &entries {
        let (_, rest) = entry.split_once("](").unwrap();
        let (url, description) = rest.split_once("): ").unwrap();
        assert_eq!(client.get(&format!("/{url}")).await.status, 200, "{entry}");
        assert!(description.len() > 5, "{entry}");
    }
    for named in ["(guide/traders)", "(openapi.json)", "(api/v2/datasets)", "(tables.sql)"] {
        assert!(entries.iter().any(|entry| entry.contains(named)), "{named}: {entries:?}");
    }

    let document = client.get("/openapi.json").await.json();
    let server: Url =
        format!("{}{}", client.url(), document["servers"][0]["url"].as_str().unwrap()).parse().unwrap();
    let guide = server.join(document["externalDocs"]["url"].as_str().unwrap()).unwrap();
    assert_eq!(guide.path(), "/guide/");
}
