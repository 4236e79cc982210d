//! For whom a request says it is, beside the `Host` of HTTP/1, which the guard looks at: the authority of its target
//! (absolute form, `CONNECT`, `:authority`) and the `Host` of HTTP/2.

use http::{Request, Version, header::HOST};
use mesh_framing::is_host;

/// Whether all of it is a host, with or without a port (RFC 9110, 4.2 and 7.2; RFC 9113, 8.3.1).
pub(crate) fn is_sound<B>(request: &Request<B>) -> bool {
    if request.uri().authority().is_some_and(|authority| !is_host(authority.as_str().as_bytes())) {
        return false;
    }
    if request.version() < Version::HTTP_2 {
        return true;
    }
    let mut hosts = request.headers().get_all(HOST).iter();
    let first = hosts.next().is_none_or(|host| host.is_empty() || is_host(host.as_bytes()));
    first && hosts.next().is_none()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(version: Version, target: &str, hosts: &[&str]) -> Request<()> {
        let request = Request::builder().version(version).uri(target);
        hosts.iter().fold(request, |request, host| request.header(HOST, *host)).body(()).unwrap()
    }

    #[test]
    fn an_authority_is_a_host_without_user_information() {
        for version in [Version::HTTP_10, Version::HTTP_11, Version::HTTP_2] {
            for target in ["/", "*", "/a@b", "http://x/", "http://x:80/@", "http://[::1]:80", "x:80"] {
                assert!(is_sound(&request(version, target, &["x"])), "{target}");
            }
            for target in
                ["http://u@x/", "http://u:p@x/", "http://x:99999/", "http://x:80x/", "http://:80/", "u@x:80"]
            {
                assert!(!is_sound(&request(version, target, &["x"])), "{target}");
            }
        }
    }

    #[test]
    fn over_http_2_there_is_one_host_at_most() {
        for hosts in [&[][..], &["x"], &["x:80"], &[""]] {
            assert!(is_sound(&request(Version::HTTP_2, "http://x/", hosts)), "{hosts:?}");
        }
        for hosts in [&["a b"][..], &["u@x"], &["x", "x"]] {
            assert!(!is_sound(&request(Version::HTTP_2, "http://x/", hosts)), "{hosts:?}");
        }
    }
}
