//! `/guide`: the documents for users, operators and analysts as pages, with `/tables.sql` and `/llms.txt`. `build/main.rs`
//! renders them when the edge is compiled. Their links are relative, so a gateway may be mounted below a prefix.

use std::borrow::Cow;

use http::HeaderValue;

use crate::route::page::{Caching, HTML, PICTURE, Page, STYLE, TEXT};

/// The pages have no script and load style and pictures of this gateway alone.
const POLICY: HeaderValue = HeaderValue::from_static(
    "default-src 'none'; style-src 'self'; img-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
);

/// The name in metrics and logs.
const NAME: &str = "guide";

/// Paths and contents.
const FILES: &[(&str, &[u8])] = include!(concat!(env!("OUT_DIR"), "/guide.rs"));

/// The pages and their assets, by path.
pub(super) fn pages() -> Vec<(Cow<'static, str>, Page)> {
    let mut pages = vec![(Cow::Borrowed("/guide"), Page::moved(NAME, "guide/"))];
    for &(path, bytes) in FILES {
        let page = match path.rsplit_once('.').map(|(_, ending)| ending) {
            Some("css") => Page { caching: Caching::Immutable, ..Page::plain(NAME, STYLE, bytes) },
            Some("svg") => Page { caching: Caching::Immutable, ..Page::plain(NAME, PICTURE, bytes) },
            Some("png") => {
                Page { caching: Caching::Immutable, ..Page::uncompressed(NAME, "image/png", bytes) }
            }
            Some(_) => Page::plain(NAME, TEXT, bytes),
            None => Page { policy: Some(POLICY), ..Page::plain(NAME, HTML, bytes) },
        };
        pages.push((Cow::Borrowed(path), page));
    }
    pages
}
