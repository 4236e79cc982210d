//! The frame of a page: head, navigation, table of contents. Its ids contain a dot, which no id of a heading has.

use crate::{
    document::{Heading, INDEX, Source},
    navigation::Navigation,
    targets::{Targets, relative},
};

/// Least number of headings with which a page shows its table of contents.
const MIN_CONTENTS: usize = 3;

/// Paths of the assets below the gateway's root.
pub(crate) struct Assets {
    pub(crate) style: String,
    pub(crate) icon: String,
}

/// What all pages share.
pub(crate) struct Layout<'a> {
    pub(crate) navigation: &'a Navigation,
    pub(crate) sources: &'a [Source],
    pub(crate) targets: &'a Targets,
    pub(crate) assets: &'a Assets,
}

impl Layout<'_> {
    /// A document as a page.
    pub(crate) fn page(&self, source: &Source) -> String {
        let (content, headings) = source.render(self.targets);
        let to = |path: &str| relative(&source.name, path);
        let (index, root) = (to(&format!("guide/{INDEX}")), to(""));
        let (title, summary) = (escape(&source.title), escape(&source.summary));
        let (style, icon) = (to(&self.assets.style), to(&self.assets.icon));
        let (pages, contents) = (self.pages(source), contents(&headings));
        format!(
            r##"<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="description" content="{summary}">
<title>{title} – Tradewind guide</title>
<link rel="icon" type="image/svg+xml" href="{icon}">
<link rel="stylesheet" href="{style}">
</head>
<body>
<a class="skip" href="#guide.content">Skip to the content</a>
<header>
<button type="button" popovertarget="guide.pages">Pages</button>
<a class="brand" href="{index}"><span class="mark"></span>Tradewind guide</a>
<nav aria-label="Gateway"><a href="{root}">Console</a><a href="{root}docs">API</a></nav>
</header>
<div class="frame">
<nav id="guide.pages" class="pages" popover aria-label="Pages of the guide">
{pages}</nav>
<main id="guide.content">
{contents}<article>
{content}</article>
<footer><a href="{root}openapi.json">openapi.json</a><a href="{root}tables.sql">tables.sql</a><a href="{root}llms.txt">llms.txt</a></footer>
</main>
</div>
</body>
</html>
"##
        )
    }

    fn pages(&self, current: &Source) -> String {
        let mut html = self.entry(current, INDEX, "Overview");
        html = format!("<ul>{html}</ul>\n");
        for (title, members) in &self.navigation.sections {
            let entries = members.iter().map(|at| &self.sources[*at]);
            let entries: String =
                entries.map(|source| self.entry(current, &source.name, &source.title)).collect();
            html += &format!("<p>{title}</p>\n<ul>{entries}</ul>\n");
        }
        html
    }

    fn entry(&self, current: &Source, name: &str, title: &str) -> String {
        let url = relative(&current.name, &format!("guide/{name}"));
        let mark = if name == current.name { " aria-current=\"page\"" } else { "" };
        format!("<li><a href=\"{url}\"{mark}>{}</a></li>", escape(title))
    }
}

/// The table of contents; empty for a short page.
fn contents(headings: &[Heading]) -> String {
    if headings.len() < MIN_CONTENTS {
        return String::new();
    }
    let entry = |heading: &Heading| {
        let class = if heading.is_sub { " class=\"sub\"" } else { "" };
        format!("<li{class}><a href=\"#{}\">{}</a></li>", heading.id, escape(&heading.text))
    };
    let entries: String = headings.iter().map(entry).collect();
    format!(
        "<nav class=\"contents\" aria-label=\"On this page\"><details><summary>On this page</summary>\
         <ul>{entries}</ul></details></nav>\n"
    )
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}
