//! What the edge answers by itself: health, the limits in force, the API's document and the page that shows it, the
//! console. All of it is made once, at the start.

mod console;
mod limits;

use std::{
    borrow::Cow,
    collections::HashMap,
    io::{self, Read, Write},
    sync::{Arc, OnceLock},
};

use bytes::Bytes;
use flate2::{Compression, read::GzDecoder, write::GzEncoder};
use http::{
    HeaderMap, HeaderValue, StatusCode,
    header::{
        CACHE_CONTROL, CONTENT_ENCODING, CONTENT_SECURITY_POLICY, CONTENT_TYPE, ETAG, VARY,
        X_CONTENT_TYPE_OPTIONS,
    },
};
use mesh_openapi::Document;
use mesh_problem::Problem;
use serde::Serialize;
use sha2::{Digest, Sha256};
use warp::reply::Response;

use crate::{answer, config::Config, request};

/// What is shorter is not worth packing (J15).
const PACKED_FROM: usize = 1 << 10;

/// The page runs its own scripts and asks this host alone. `data:` is for the icons in its style sheet.
const POLICY: HeaderValue = HeaderValue::from_static(
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; \
     base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
);

const JSON: &str = "application/json";
const HTML: &str = "text/html; charset=utf-8";
const STYLE: &str = "text/css; charset=utf-8";
const SCRIPT: &str = "text/javascript; charset=utf-8";
const TEXT: &str = "text/plain; charset=utf-8";

/// Pages by path.
pub(crate) type Pages = HashMap<Cow<'static, str>, Arc<Page>>;

/// A page that is the same for everybody.
#[derive(Debug)]
pub(crate) struct Page {
    /// What it is counted as.
    pub(crate) name: &'static str,
    /// Whether it is answered whatever its client did before.
    pub(crate) is_vital: bool,
    media_type: &'static str,
    keeps: Keeps,
    etag: String,
    /// What a page may do in a browser.
    policy: Option<HeaderValue>,
    form: Form,
    /// The indented form (J12), of JSON alone.
    pretty: Option<Form>,
}

/// Whether a client may keep a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Keeps {
    /// No.
    Nothing,
    /// As long as it asks by the tag whether it is still the same.
    Asking,
    /// What is at this path never changes.
    ForEver,
}

/// A body, plain and packed; one of the two is made of the other.
#[derive(Debug)]
struct Form {
    plain: OnceLock<Bytes>,
    packed: Option<Bytes>,
}

/// All pages. `/docs/...` is what the page `/docs` loads.
///
/// # Errors
/// When one of them cannot be written.
pub(crate) fn all(config: &Config) -> io::Result<Pages> {
    let health = Page { keeps: Keeps::Nothing, is_vital: true, ..Page::plain("health", TEXT, b"ok")? };
    let docs = Page::plain("docs", HTML, include_bytes!("../../assets/docs/index.html"))?;
    let pages = [
        ("/health", health),
        ("/limits", Page::json("limits", &limits::in_force(config))?),
        ("/openapi.json", Page::json("openapi", &Document::of_contract())?),
        ("/docs", Page { policy: Some(POLICY), ..docs }),
        ("/docs/page.css", Page::plain("docs", STYLE, include_bytes!("../../assets/docs/page.css"))?),
        ("/docs/page.js", Page::plain("docs", SCRIPT, include_bytes!("../../assets/docs/page.js"))?),
        (
            "/docs/swagger-ui.css",
            Page::packed("docs", STYLE, include_bytes!("../../assets/docs/swagger-ui.css.gz")),
        ),
        (
            "/docs/swagger-ui-bundle.js",
            Page::packed("docs", SCRIPT, include_bytes!("../../assets/docs/swagger-ui-bundle.js.gz")),
        ),
        // Where the scripts say that their licences are.
        (
            "/docs/swagger-ui-bundle.js.LICENSE.txt",
            Page::plain("docs", TEXT, include_bytes!("../../assets/docs/swagger-ui-bundle.js.LICENSE.txt"))?,
        ),
        ("/docs/LICENSE", Page::plain("docs", TEXT, include_bytes!("../../assets/docs/LICENSE"))?),
        ("/docs/NOTICE", Page::plain("docs", TEXT, include_bytes!("../../assets/docs/NOTICE"))?),
    ];
    let pages = pages.into_iter().map(|(path, page)| (Cow::Borrowed(path), page));
    Ok(pages.chain(console::pages()?).map(|(path, page)| (path, Arc::new(page))).collect())
}

impl Page {
    fn json(name: &'static str, value: &impl Serialize) -> io::Result<Self> {
        let page = Self::plain(name, JSON, &serde_json::to_vec(value)?)?;
        Ok(Self { pretty: Some(Form::of(&serde_json::to_vec_pretty(value)?)?), ..page })
    }

    fn plain(name: &'static str, media_type: &'static str, bytes: &[u8]) -> io::Result<Self> {
        Ok(Self::of(name, media_type, bytes, Form::of(bytes)?))
    }

    fn packed(name: &'static str, media_type: &'static str, bytes: &'static [u8]) -> Self {
        let form = Form { plain: OnceLock::new(), packed: Some(Bytes::from_static(bytes)) };
        Self::of(name, media_type, bytes, form)
    }

    fn of(name: &'static str, media_type: &'static str, bytes: &[u8], form: Form) -> Self {
        let (keeps, etag) = (Keeps::Asking, tag(bytes));
        Self { name, is_vital: false, media_type, keeps, etag, policy: None, form, pretty: None }
    }

    /// The answer to one client: 304 when it has the page already.
    ///
    /// # Errors
    /// When `?pretty` is malformed.
    pub(crate) fn answer(&self, query: &str, request: &HeaderMap) -> Result<Response, Problem> {
        let form = match &self.pretty {
            Some(pretty) if request::pretty(query)? => pretty,
            _ => &self.form,
        };
        let packed = form.packed.clone().filter(|_| answer::takes_gzip(request));
        let is_kept = self.keeps != Keeps::Nothing;
        let is_unchanged = is_kept && answer::is_unchanged(request, &self.etag);
        let mut response = match &packed {
            _ if is_unchanged => Response::default(),
            Some(packed) => Response::new(packed.clone().into()),
            None => Response::new(form.plain().into()),
        };
        let headers = response.headers_mut();
        headers.insert(VARY, HeaderValue::from_static("Accept-Encoding"));
        headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
        let keeps = match self.keeps {
            Keeps::Nothing => "no-store",
            Keeps::Asking => "no-cache",
            Keeps::ForEver => "public, max-age=31536000, immutable",
        };
        headers.insert(CACHE_CONTROL, HeaderValue::from_static(keeps));
        if let Some(etag) = is_kept.then(|| self.etag.parse().ok()).flatten() {
            headers.insert(ETAG, etag);
        }
        if is_unchanged {
            *response.status_mut() = StatusCode::NOT_MODIFIED;
            return Ok(response);
        }
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(self.media_type));
        if packed.is_some() {
            headers.insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
        }
        if let Some(policy) = &self.policy {
            headers.insert(CONTENT_SECURITY_POLICY, policy.clone());
        }
        Ok(response)
    }
}

impl Form {
    fn of(bytes: &[u8]) -> io::Result<Self> {
        let plain = OnceLock::from(Bytes::copy_from_slice(bytes));
        if bytes.len() < PACKED_FROM {
            return Ok(Self { plain, packed: None });
        }
        let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
        encoder.write_all(bytes)?;
        Ok(Self { plain, packed: Some(encoder.finish()?.into()) })
    }

    /// It as it is; what came packed is unpacked for the first client that cannot.
    fn plain(&self) -> Bytes {
        let unpacked = || {
            let mut plain = Vec::new();
            // What a test has unpacked before it was built in can be unpacked.
            let _ = GzDecoder::new(self.packed.as_deref().unwrap_or_default()).read_to_end(&mut plain);
            plain.into()
        };
        self.plain.get_or_init(unpacked).clone()
    }
}

/// A weak tag: one for all forms.
fn tag(bytes: &[u8]) -> String {
    format!("W/\"{}\"", digest(bytes))
}

/// Enough of a digest to tell two versions apart.
fn digest(bytes: &[u8]) -> String {
    Sha256::digest(bytes)[..8].iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use http::header::{ACCEPT_ENCODING, IF_NONE_MATCH};
    use mesh_chassis::{Config as _, Env};

    use super::*;

    fn pages() -> Pages {
        all(&Config::read(&mut Env::default())).unwrap()
    }

    #[test]
    fn what_is_packed_in_the_repository_is_what_its_note_says() {
        let (pages, note) = (pages(), include_str!("../../assets/docs/README.md"));
        for name in ["swagger-ui.css", "swagger-ui-bundle.js"] {
            let plain = pages[format!("/docs/{name}").as_str()].form.plain();
            let sum: String = Sha256::digest(&plain).iter().map(|byte| format!("{byte:02x}")).collect();
            assert!(note.contains(&format!("| `{name}` | `{sum}` |")), "{name} has {sum}");
        }
    }

    #[test]
    fn every_page_is_the_same_packed_and_plain_and_is_known_by_its_tag() {
        let gzip = HeaderMap::from_iter([(ACCEPT_ENCODING, HeaderValue::from_static("gzip"))]);
        for (path, page) in pages() {
            if let Some(packed) = &page.form.packed {
                let mut plain = Vec::new();
                GzDecoder::new(&packed[..]).read_to_end(&mut plain).unwrap();
                assert_eq!(page.form.plain(), plain, "{path}");
                assert_eq!(page.answer("", &gzip).unwrap().headers()[CONTENT_ENCODING], "gzip", "{path}");
            }
            let answer = page.answer("", &HeaderMap::new()).unwrap();
            assert!(!answer.headers().contains_key(CONTENT_ENCODING), "{path}");
            let Some(etag) = answer.headers().get(ETAG) else { continue };
            let again = page.answer("", &HeaderMap::from_iter([(IF_NONE_MATCH, etag.clone())])).unwrap();
            assert_eq!(again.status(), StatusCode::NOT_MODIFIED, "{path}");
        }
    }

    #[test]
    fn json_is_indented_on_request() {
        let limits = &pages()["/limits"];
        assert_eq!(limits.answer("pretty", &HeaderMap::new()).unwrap().status(), StatusCode::OK);
        assert_eq!(limits.answer("pretty=x", &HeaderMap::new()).unwrap_err().number(), 10_015);
        let pretty = limits.pretty.as_ref().unwrap().plain();
        assert!(pretty.len() > limits.form.plain().len() && pretty.contains(&b'\n'));
    }
}
