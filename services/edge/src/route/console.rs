//! `/`: the console. Its script and style are built from `console/` and committed. They are served under
//! names with a digest of their content, so that browsers can cache them without a time limit.

use std::borrow::Cow;

use http::HeaderValue;

use crate::route::page::{Caching, HTML, PICTURE, Page, SCRIPT, STYLE, TEXT, digest};

/// Only this gateway is a source, text cannot become script, style or markup, and the page cannot be framed.
const POLICY: HeaderValue = HeaderValue::from_static(
    "default-src 'self'; object-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; \
     require-trusted-types-for 'script'; trusted-types 'none'",
);

const INDEX: &str = include_str!("../../console/src/index.html");

/// The assets of the page: name without `console/`, media type, bytes.
const ASSETS: [(&str, &str, &[u8]); 3] = [
    ("app.css", STYLE, include_bytes!("../../assets/console/app.css")),
    ("app.js", SCRIPT, include_bytes!("../../assets/console/app.js")),
    ("icon.svg", PICTURE, include_bytes!("../../console/src/icon.svg")),
];

/// The page and its assets, by path.
pub(super) fn pages() -> Vec<(Cow<'static, str>, Page)> {
    let mut index = INDEX.to_owned();
    let mut pages = Vec::new();
    for (name, media_type, bytes) in ASSETS {
        let (stem, ending) = name.split_once('.').unwrap_or((name, ""));
        let path = format!("console/{stem}.{}.{ending}", digest(bytes));
        index = index.replace(&format!("\"console/{name}\""), &format!("\"{path}\""));
        let page = Page { caching: Caching::Immutable, ..Page::plain("console", media_type, bytes) };
        pages.push((Cow::Owned(format!("/{path}")), page));
    }
    let licences = Page::plain("console", TEXT, include_bytes!("../../assets/console/licences.txt"));
    pages.push((Cow::Borrowed("/console/licences.txt"), licences));
    let index = Page { policy: Some(POLICY), ..Page::plain("console", HTML, index.into_bytes()) };
    pages.push((Cow::Borrowed("/"), index));
    pages
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use flate2::{Compression, write::GzEncoder};
    use http::{HeaderMap, header::CACHE_CONTROL};

    use super::*;

    /// Greatest size of the whole page, gzipped, bytes.
    const MAX_WEIGHT: usize = 100_000;

    fn gzipped_length(bytes: &[u8]) -> usize {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap().len()
    }

    #[test]
    fn the_page_loads_its_assets_by_names_with_their_digest() {
        let pages = pages();
        let (_, index) = pages.iter().find(|(path, _)| path == "/").unwrap();
        let index = String::from_utf8(index.content().body.plain().to_vec()).unwrap();
        for (path, page) in pages.iter().filter(|(_, page)| page.caching == Caching::Immutable) {
            assert!(index.contains(&format!("\"{}\"", &path[1..])), "{path} is not loaded: {index}");
            let answer = page.answer("", &HeaderMap::new()).unwrap();
            assert_eq!(answer.headers()[CACHE_CONTROL], "public, max-age=31536000, immutable", "{path}");
        }
        for (name, _, _) in ASSETS {
            assert!(!index.contains(&format!("console/{name}")), "{name} has its plain name: {index}");
        }
        assert_eq!(index.matches("src=").count() + index.matches("href=").count(), ASSETS.len(), "{index}");
    }

    #[test]
    fn the_page_has_no_inline_script_or_style() {
        for inline in ["<style", "style=", " onclick", " onload", "javascript:"] {
            assert!(!INDEX.contains(inline), "{inline}");
        }
        let scripts: Vec<_> = INDEX.match_indices("<script").collect();
        assert!(scripts.iter().all(|(at, _)| INDEX[*at..].starts_with("<script type=\"module\" src=")));
        let policy = POLICY;
        let policy = policy.to_str().unwrap();
        assert!(policy.contains("default-src 'self'") && !policy.contains("unsafe"), "{policy}");
    }

    #[test]
    fn the_whole_page_is_light() {
        let parts = ASSETS.iter().map(|(name, _, bytes)| (*name, gzipped_length(bytes)));
        let parts: Vec<_> = parts.chain([("index.html", gzipped_length(INDEX.as_bytes()))]).collect();
        let weight: usize = parts.iter().map(|(_, bytes)| bytes).sum();
        println!("the console weighs {weight} bytes gzipped: {parts:?}");
        assert!(weight <= MAX_WEIGHT, "{weight} bytes gzipped: {parts:?}");
    }
}
