//! `/`: the console. Its script and style are built from `console/` and committed; scripts and styles are served under names that
//! change with their content, so a browser keeps them for ever.

use std::{borrow::Cow, io};

use http::HeaderValue;

use super::{HTML, Keeps, Page, SCRIPT, STYLE, TEXT, digest};

/// Everything comes from this gateway, no text becomes a script, a style or markup, and nobody frames the page.
const POLICY: HeaderValue = HeaderValue::from_static(
    "default-src 'self'; object-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; \
     require-trusted-types-for 'script'; trusted-types 'none'",
);

const PICTURE: &str = "image/svg+xml";

const INDEX: &str = include_str!("../../console/src/index.html");

/// What the page loads: the name it has there without `console/`, what it is, its bytes.
const LOADED: [(&str, &str, &[u8]); 3] = [
    ("app.css", STYLE, include_bytes!("../../assets/console/app.css")),
    ("app.js", SCRIPT, include_bytes!("../../assets/console/app.js")),
    ("icon.svg", PICTURE, include_bytes!("../../console/src/icon.svg")),
];

/// The page and what it loads, by path.
pub(super) fn pages() -> io::Result<Vec<(Cow<'static, str>, Page)>> {
    let mut index = INDEX.to_owned();
    let mut pages = Vec::new();
    for (name, media_type, bytes) in LOADED {
        let (stem, ending) = name.split_once('.').unwrap_or((name, ""));
        let path = format!("console/{stem}.{}.{ending}", digest(bytes));
        index = index.replace(&format!("\"console/{name}\""), &format!("\"{path}\""));
        let page = Page { keeps: Keeps::ForEver, ..Page::plain("console", media_type, bytes)? };
        pages.push((Cow::Owned(format!("/{path}")), page));
    }
    let licences = Page::plain("console", TEXT, include_bytes!("../../assets/console/licences.txt"))?;
    pages.push((Cow::Borrowed("/console/licences.txt"), licences));
    let index = Page { policy: Some(POLICY), ..Page::plain("console", HTML, index.as_bytes())? };
    pages.push((Cow::Borrowed("/"), index));
    Ok(pages)
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use flate2::{Compression, write::GzEncoder};
    use http::{HeaderMap, header::CACHE_CONTROL};

    use super::*;

    /// The whole page, gzipped (issue 8).
    const WEIGHT_AT_MOST: usize = 100_000;

    fn packed(bytes: &[u8]) -> usize {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap().len()
    }

    #[test]
    fn the_page_loads_what_is_here_by_names_that_change_with_it() {
        let pages = pages().unwrap();
        let (_, index) = pages.iter().find(|(path, _)| path == "/").unwrap();
        let index = String::from_utf8(index.form.plain().to_vec()).unwrap();
        for (path, page) in pages.iter().filter(|(_, page)| page.keeps == Keeps::ForEver) {
            assert!(index.contains(&format!("\"{}\"", &path[1..])), "{path} is not loaded: {index}");
            let answer = page.answer("", &HeaderMap::new()).unwrap();
            assert_eq!(answer.headers()[CACHE_CONTROL], "public, max-age=31536000, immutable", "{path}");
        }
        for (name, _, _) in LOADED {
            assert!(!index.contains(&format!("console/{name}")), "{name} has its plain name: {index}");
        }
        assert_eq!(index.matches("src=").count() + index.matches("href=").count(), LOADED.len(), "{index}");
    }

    #[test]
    fn the_page_has_no_script_or_style_of_its_own_text() {
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
        let parts = LOADED.iter().map(|(name, _, bytes)| (*name, packed(bytes)));
        let parts: Vec<_> = parts.chain([("index.html", packed(INDEX.as_bytes()))]).collect();
        let weight: usize = parts.iter().map(|(_, bytes)| bytes).sum();
        println!("the console weighs {weight} bytes gzipped: {parts:?}");
        assert!(weight <= WEIGHT_AT_MOST, "{weight} bytes gzipped: {parts:?}");
    }
}
