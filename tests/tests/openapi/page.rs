//! `/docs` in a browser: everything that it loads comes from this gateway, and its policy allows nothing
//! else.

use mesh_tests::MeshClient;

use crate::guide::links;

/// Hosts from which such pages often load fonts, scripts and pictures.
const FOREIGN_HOSTS: &str = "fonts.googleapis fonts.gstatic cdn.jsdelivr unpkg.com cdnjs.cloudflare proxy.scalar \
    google-analytics googletagmanager";

#[tokio::test]
async fn everything_that_the_page_loads_comes_from_the_gateway() {
    let mesh_client = MeshClient::fixture().await;
    let page = mesh_client.get("/docs").await;
    assert_eq!((page.status, page.header("content-type")), (200, Some("text/html; charset=utf-8")));
    // What ends with a slash is a link to another page.
    let is_loaded = |target: &&str| !target.starts_with("data:") && !target.ends_with('/');
    let loaded: Vec<&str> = links(page.text()).filter(is_loaded).collect();
    assert!(loaded.len() >= 5, "{loaded:?}");
    let mut texts = vec![("/docs".to_owned(), page.text().to_owned())];
    for target in loaded {
        assert!(!target.contains(':') && !target.starts_with('/'), "{target} is not beside the page");
        let answer = mesh_client.get(&format!("/{target}")).await;
        assert_eq!(answer.status, 200, "{target}");
        let kind = match target.rsplit('.').next() {
            Some("css") => "text/css; charset=utf-8",
            Some("js") => "text/javascript; charset=utf-8",
            _ => "application/json",
        };
        assert_eq!(answer.header("content-type"), Some(kind), "{target}");
        assert_eq!(answer.header("x-content-type-options"), Some("nosniff"), "{target}");
        texts.push((target.to_owned(), answer.text().to_owned()));
    }
    for (name, text) in texts {
        for host in FOREIGN_HOSTS.split(' ') {
            assert!(!text.contains(host), "{name} knows {host}");
        }
        for reference in ["@import", "url(http", "url(\"http", "url('http", "url(//"] {
            assert!(!text.contains(reference) || name.ends_with("bundle.js"), "{name} has {reference}");
        }
    }
    for own in ["/docs", "/docs/watch.js", "/docs/layout.js", "/docs/page.js", "/docs/page.css"] {
        assert!(!mesh_client.get(own).await.text().contains("//www"), "{own}");
        assert!(!mesh_client.get(own).await.text().contains("http"), "{own}");
    }
}

#[tokio::test]
async fn the_policy_allows_requests_to_this_gateway_only_and_no_inline_script() {
    let mesh_client = MeshClient::fixture().await;
    let page = mesh_client.get("/docs").await;
    let policy = page.header("content-security-policy").unwrap();
    let mut rules: Vec<&str> = policy.split(';').map(str::trim).collect();
    rules.sort_unstable();
    let expected = "base-uri 'none'; connect-src 'self'; default-src 'none'; form-action 'none'; \
        frame-ancestors 'none'; img-src 'self' data:; script-src 'self'; style-src 'self'";
    assert_eq!(rules.join("; "), expected);
    let html = page.text();
    assert!(html.match_indices("<script").all(|(at, _)| html[at..].starts_with("<script src=")), "{html}");
    for forbidden in ["<style", "style=", " on"] {
        assert!(!html.contains(forbidden), "{forbidden}: {html}");
    }
    for path in ["/docs/page", "/docs/README.md", "/docs/swagger-ui.css.gz"] {
        assert_eq!(mesh_client.get(path).await.status, 404, "{path}");
    }
}
