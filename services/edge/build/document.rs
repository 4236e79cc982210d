//! One document: Markdown in, HTML out.

use std::{collections::HashMap, ops::Range};

use pulldown_cmark::{Event, HeadingLevel, Options, Parser, Tag, TagEnd, html};

use crate::targets::Targets;

/// The name of the index, whose path is `guide/`.
pub(crate) const INDEX: &str = "";

/// Tags that are written in another form. Alignment becomes a class, because the policy of the pages forbids inline
/// styles; what scrolls can be focused; an empty cell is no heading.
const TAGS: [(&str, &str); 7] = [
    (" style=\"text-align: left\"", ""),
    (" style=\"text-align: right\"", " class=\"right\""),
    (" style=\"text-align: center\"", " class=\"center\""),
    ("<th></th>", "<td></td>"),
    ("<table>", "<div class=\"scroll\" role=\"group\" aria-label=\"Table\" tabindex=\"0\"><table>"),
    ("</table>", "</table></div>"),
    ("<pre>", "<pre tabindex=\"0\">"),
];

/// Titles, in lower case, of a list of links to the sections of the same document.
const TITLES_OF_CONTENTS: [&str; 3] = ["contents", "on this page", "table of contents"];

/// A document.
pub(crate) struct Source {
    /// The path in `docs` without its ending; [`INDEX`] for `README.md`.
    pub(crate) name: String,
    text: String,
    /// The first heading, without markup.
    pub(crate) title: String,
    /// The first paragraph, without markup.
    pub(crate) summary: String,
}

/// A heading of level 2 or 3.
pub(crate) struct Heading {
    pub(crate) is_sub: bool,
    pub(crate) id: String,
    pub(crate) text: String,
}

impl Source {
    pub(crate) fn new(name: String, text: String) -> Self {
        let events = events(&text);
        let first = |is_wanted: fn(&Event<'_>) -> bool| {
            let block = blocks(&events).into_iter().find(|block| is_wanted(&events[block.start]));
            block.map(|block| plain_text(&events[block])).unwrap_or_default()
        };
        let title = first(|event| matches!(event, Event::Start(Tag::Heading { .. })));
        let summary = first(|event| matches!(event, Event::Start(Tag::Paragraph)));
        drop(events);
        Self { name, text, title, summary }
    }

    /// The first sentence of the summary.
    pub(crate) fn first_sentence(&self) -> &str {
        let sentence = self.summary.find(". ").map_or(&*self.summary, |end| &self.summary[..=end]);
        sentence.trim_end_matches(':')
    }

    /// The content as HTML, and the headings below the title. Lists of links to these headings are left out.
    pub(crate) fn render(&self, targets: &Targets) -> (String, Vec<Heading>) {
        let mut events = events(&self.text);
        let contents = contents(&events);
        let headings = name_headings(&mut events, &contents);
        for block in contents.into_iter().rev() {
            events.drain(block);
        }
        let mut is_served = Vec::new();
        events.retain_mut(|event| match event {
            Event::Start(Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. }) => {
                let url = targets.url(&self.name, dest_url);
                is_served.push(url.is_some());
                url.map(|url| *dest_url = url.into()).is_some()
            }
            Event::End(TagEnd::Link | TagEnd::Image) => is_served.pop().unwrap_or_default(),
            _ => true,
        });
        let mut content = String::new();
        html::push_html(&mut content, events.into_iter());
        (TAGS.iter().fold(content, |content, (from, to)| content.replace(from, to)), headings)
    }
}

fn events(text: &str) -> Vec<Event<'_>> {
    let options = Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH | Options::ENABLE_GFM;
    Parser::new_ext(text, options).collect()
}

/// The top-level blocks.
fn blocks(events: &[Event<'_>]) -> Vec<Range<usize>> {
    let (mut blocks, mut depth, mut start) = (Vec::new(), 0_usize, 0);
    for (at, event) in events.iter().enumerate() {
        if depth == 0 {
            start = at;
        }
        match event {
            Event::Start(_) => depth += 1,
            Event::End(_) => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            blocks.push(start..at + 1);
        }
    }
    blocks
}

fn plain_text(events: &[Event<'_>]) -> String {
    let parts = events.iter().map(|event| match event {
        Event::Text(text) | Event::Code(text) => text,
        Event::SoftBreak | Event::HardBreak => " ",
        _ => "",
    });
    parts.collect()
}

/// The blocks before the first section that are a list of links to sections, or the title of such a list.
fn contents(events: &[Event<'_>]) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    for block in blocks(events) {
        let inner = &events[block.clone()];
        match inner[0] {
            Event::Start(Tag::Heading { level: HeadingLevel::H1, .. }) => {}
            Event::Start(Tag::Heading { .. }) if is_title_of_contents(&plain_text(inner)) => {
                found.push(block);
            }
            Event::Start(Tag::Heading { .. }) => break,
            _ if links_to_sections(inner) => found.push(block),
            _ => {}
        }
    }
    found
}

fn is_title_of_contents(text: &str) -> bool {
    TITLES_OF_CONTENTS.contains(&text.trim().trim_end_matches(':').to_lowercase().as_str())
}

/// Whether a block consists of several links to sections, and nothing else but separators and a title.
fn links_to_sections(block: &[Event<'_>]) -> bool {
    let (mut count, mut is_in_link, mut outside) = (0, false, String::new());
    for event in block {
        match event {
            Event::Start(Tag::Link { dest_url, .. }) if dest_url.starts_with('#') => {
                count += 1;
                is_in_link = true;
            }
            Event::Start(Tag::Link { .. }) => return false,
            Event::End(TagEnd::Link) => is_in_link = false,
            Event::Text(text) | Event::Code(text) if !is_in_link => outside.push_str(text),
            _ => {}
        }
    }
    let words = outside.trim_matches(|letter: char| !letter.is_alphanumeric());
    count > 1 && (words.is_empty() || is_title_of_contents(words))
}

/// Gives each heading the id that GitHub gives it, so that the same links lead to it in both places.
fn name_headings(events: &mut [Event<'_>], contents: &[Range<usize>]) -> Vec<Heading> {
    let (mut headings, mut used) = (Vec::new(), HashMap::<String, usize>::new());
    for block in blocks(events) {
        let text = plain_text(&events[block.clone()]);
        let Event::Start(Tag::Heading { level, id, .. }) = &mut events[block.start] else { continue };
        let anchor = anchor(&text);
        let before = used.entry(anchor.clone()).and_modify(|count| *count += 1).or_default();
        let anchor = if *before == 0 { anchor } else { format!("{anchor}-{before}") };
        *id = Some(anchor.clone().into());
        if matches!(level, HeadingLevel::H2 | HeadingLevel::H3) && !contents.contains(&block) {
            headings.push(Heading { is_sub: *level == HeadingLevel::H3, id: anchor, text });
        }
    }
    headings
}

/// GitHub's rule: lower case, spaces as hyphens, no other punctuation than hyphens and underscores.
fn anchor(text: &str) -> String {
    let letters = text.trim().chars().flat_map(char::to_lowercase).filter_map(|letter| match letter {
        ' ' => Some('-'),
        '-' | '_' => Some(letter),
        _ => letter.is_alphanumeric().then_some(letter),
    });
    letters.collect()
}
