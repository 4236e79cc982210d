//! The HTTP proxy between this program and a gateway, as the environment names it (`http_proxy`, `https_proxy`,
//! `all_proxy` and `no_proxy`, also in upper case). A gateway of this machine is always reached directly.

use std::net::IpAddr;

use hyper_util::client::proxy::matcher::Matcher;
use reqwest::Url;

/// The proxy that the client chooses for a URL, for messages: "the proxy" and its address without credentials. `None`
/// for a direct connection.
pub(crate) fn proxy_of(url: &Url) -> Option<String> {
    proxy_among(&Matcher::from_system(), url)
}

fn proxy_among(proxies: &Matcher, url: &Url) -> Option<String> {
    let proxy = proxies.intercept(&url.as_str().parse().ok()?)?;
    let (scheme, authority) = (proxy.uri().scheme_str()?, proxy.uri().authority()?.as_str());
    let address = authority.rsplit_once('@').map_or(authority, |(_, address)| address);
    Some(format!("the proxy {scheme}://{address}"))
}

/// Whether the host of a URL is this machine, which no proxy can reach.
pub(crate) fn is_this_machine(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default().trim_matches(['[', ']']).trim_end_matches('.');
    match host.parse::<IpAddr>() {
        Ok(address) => {
            let address = address.to_canonical();
            address.is_loopback() || address.is_unspecified()
        }
        Err(_) => host == "localhost" || host.ends_with(".localhost"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_machine_is_known_by_every_spelling() {
        let here = "127.0.0.1 127.9.9.9 127.1 2130706433 [::1] [::ffff:127.0.0.1] 0.0.0.0 [::] localhost LOCALHOST. \
            mesh.localhost";
        for host in here.split(' ') {
            assert!(is_this_machine(&format!("http://{host}:8080/x").parse().unwrap()), "{host}");
        }
        for host in
            ["128.0.0.1", "10.0.0.1", "[fe80::1]", "example.org", "localhost.example.org", "notlocalhost"]
        {
            assert!(!is_this_machine(&format!("https://{host}/").parse().unwrap()), "{host}");
        }
    }

    #[test]
    fn a_proxy_is_shown_without_its_password() {
        let proxies =
            Matcher::builder().all("http://user:canary@proxy.example:3128").no("inside.example").build();
        let of = |url: &str| proxy_among(&proxies, &url.parse().unwrap());
        assert_eq!(of("https://gateway.example/x").as_deref(), Some("the proxy http://proxy.example:3128"));
        assert_eq!(of("http://inside.example:8080/"), None);
    }
}
