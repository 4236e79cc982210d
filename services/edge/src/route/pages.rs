//! The edge's own pages: health, the limits in force, the API document and the page that shows it, the guide, the
//! console.

use std::{borrow::Cow, collections::HashMap, sync::Arc};

use http::HeaderValue;
use mesh_openapi::Document;

use crate::{
    config::Config,
    route::{
        console, guide, limits,
        page::{Caching, HTML, Page, SCRIPT, STYLE, TEXT},
    },
};

/// The page runs its own scripts and calls this host alone. `data:` is for the icons in its style sheet.
const POLICY: HeaderValue = HeaderValue::from_static(
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; \
     base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
);

/// Pages by path.
pub(crate) type Pages = HashMap<Cow<'static, str>, Arc<Page>>;

/// All pages by path.
pub(crate) fn all(config: &Config) -> Pages {
    let limits = limits::in_force(config);
    let health = Page { caching: Caching::NoStore, is_vital: true, ..Page::plain("health", TEXT, b"ok") };
    let docs = Page::plain("docs", HTML, include_bytes!("../../assets/docs/index.html"));
    let pages = [
        ("/health", health),
        ("/limits", Page::json(limits::LIMITS, move || limits)),
        ("/openapi.json", Page::json("openapi", Document::of_contract)),
        ("/docs", Page { policy: Some(POLICY), ..docs }),
        ("/docs/", Page::moved("docs", "../docs")),
        ("/docs/page.css", Page::plain("docs", STYLE, include_bytes!("../../assets/docs/page.css"))),
        ("/docs/watch.js", Page::plain("docs", SCRIPT, include_bytes!("../../assets/docs/watch.js"))),
        ("/docs/layout.js", Page::plain("docs", SCRIPT, include_bytes!("../../assets/docs/layout.js"))),
        ("/docs/page.js", Page::plain("docs", SCRIPT, include_bytes!("../../assets/docs/page.js"))),
        (
            "/docs/swagger-ui.css",
            Page::gzipped("docs", STYLE, include_bytes!("../../assets/docs/swagger-ui.css.gz")),
        ),
        (
            "/docs/swagger-ui-bundle.js",
            Page::gzipped("docs", SCRIPT, include_bytes!("../../assets/docs/swagger-ui-bundle.js.gz")),
        ),
        // The scripts name this path for their licences.
        (
            "/docs/swagger-ui-bundle.js.LICENSE.txt",
            Page::plain("docs", TEXT, include_bytes!("../../assets/docs/swagger-ui-bundle.js.LICENSE.txt")),
        ),
        ("/docs/LICENSE", Page::plain("docs", TEXT, include_bytes!("../../assets/docs/LICENSE"))),
        ("/docs/NOTICE", Page::plain("docs", TEXT, include_bytes!("../../assets/docs/NOTICE"))),
    ];
    let pages = pages.into_iter().map(|(path, page)| (Cow::Borrowed(path), page));
    let pages = pages.chain(guide::pages()).chain(console::pages());
    pages.map(|(path, page)| (path, Arc::new(page))).collect()
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use flate2::read::GzDecoder;
    use http::{
        HeaderMap, StatusCode,
        header::{ACCEPT_ENCODING, CONTENT_ENCODING, ETAG, IF_NONE_MATCH},
    };
    use mesh_chassis::{Config as _, Env};
    use sha2::{Digest, Sha256};

    use super::*;

    fn pages() -> Pages {
        all(&Config::read(&mut Env::default()))
    }

    #[test]
    fn the_vendored_files_have_the_checksums_of_their_note() {
        let (pages, note) = (pages(), include_str!("../../assets/docs/README.md"));
        for name in ["swagger-ui.css", "swagger-ui-bundle.js"] {
            let plain = pages[format!("/docs/{name}").as_str()].content().body.plain();
            let sum: String = Sha256::digest(&plain).iter().map(|byte| format!("{byte:02x}")).collect();
            assert!(note.contains(&format!("| `{name}` | `{sum}` |")), "{name} has {sum}");
        }
    }

    #[test]
    fn every_page_is_the_same_gzipped_and_plain_and_is_revalidated_by_its_tag() {
        let gzip = HeaderMap::from_iter([(ACCEPT_ENCODING, HeaderValue::from_static("gzip"))]);
        for (path, page) in pages() {
            if let Some(gzipped) = &page.content().body.gzipped {
                let mut plain = Vec::new();
                GzDecoder::new(&gzipped[..]).read_to_end(&mut plain).unwrap();
                assert_eq!(page.content().body.plain(), plain, "{path}");
                assert_eq!(page.answer("", &gzip).unwrap().headers()[CONTENT_ENCODING], "gzip", "{path}");
            }
            let answer = page.answer("", &HeaderMap::new()).unwrap();
            assert!(!answer.headers().contains_key(CONTENT_ENCODING), "{path}");
            let Some(etag) = answer.headers().get(ETAG) else { continue };
            let again = page.answer("", &HeaderMap::from_iter([(IF_NONE_MATCH, etag.clone())])).unwrap();
            assert_eq!(again.status(), StatusCode::NOT_MODIFIED, "{path}");
        }
    }
}
