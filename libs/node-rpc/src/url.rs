//! The address of a consensus node's RPC. Its credentials go into a header and are never shown.

use std::{fmt, str::FromStr};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use http::{HeaderValue, Uri, uri::PathAndQuery};
use mesh_chassis::Env;
use percent_encoding::percent_decode_str;

/// The accepted form. No error contains the address, which may have a password.
const FORM: &str = "write it as http://host:port or https://user:password@host";

/// The address of a node's RPC, `http` or `https`, without its credentials, and the header that carries them.
///
/// It is displayed as scheme, host and port only: providers of nodes put keys into the path, too.
#[derive(Clone, PartialEq, Eq)]
pub struct NodeUrl {
    uri: Uri,
    authorization: Option<HeaderValue>,
}

impl NodeUrl {
    /// The address without the credentials.
    pub fn uri(&self) -> &Uri {
        &self.uri
    }

    /// The value of the `Authorization` header of each request, when the address has credentials. It is
    /// marked as sensitive.
    pub fn authorization(&self) -> Option<&HeaderValue> {
        self.authorization.as_ref()
    }

    /// Whether connections need TLS.
    pub fn is_tls(&self) -> bool {
        self.uri.scheme_str() == Some("https")
    }

    /// The address of a path below it, with the query of the address. The path begins without a slash.
    pub fn endpoint(&self, path: &str) -> Uri {
        let base = self.uri.path().trim_end_matches('/');
        let query = self.uri.query().map(|query| format!("?{query}")).unwrap_or_default();
        let mut parts = self.uri.clone().into_parts();
        parts.path_and_query = format!("{base}/{path}{query}").parse::<PathAndQuery>().ok();
        Uri::from_parts(parts).unwrap_or_else(|_| self.uri.clone())
    }
}

impl NodeUrl {
    /// Reads `MESH_NODE_URL`, which is required: one address or several, separated by commas.
    pub fn read_list(env: &mut Env) -> Vec<Self> {
        let text = env.required("MESH_NODE_URL");
        Self::parse_list(&text, env)
    }

    /// Reads `MESH_NODE_URL`; none where it is not set.
    pub fn read_optional(env: &mut Env) -> Vec<Self> {
        let text = env.optional("MESH_NODE_URL").unwrap_or_default();
        Self::parse_list(&text, env)
    }

    fn parse_list(text: &str, env: &mut Env) -> Vec<Self> {
        let mut addresses = text.split(',').map(str::trim).filter(|address| !address.is_empty()).peekable();
        if addresses.peek().is_none() && !text.is_empty() {
            env.check("MESH_NODE_URL", Err(FORM));
        }
        let mut nodes = Vec::new();
        for address in addresses {
            match address.parse() {
                Ok(url) => nodes.push(url),
                Err(mistake) => {
                    env.mistake(format!("MESH_NODE_URL cannot be read: {mistake}, several with commas"));
                }
            }
        }
        nodes
    }
}

impl FromStr for NodeUrl {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let uri: Uri = text.parse().map_err(|_| FORM.to_owned())?;
        let is_http = matches!(uri.scheme_str(), Some("http" | "https"));
        let authority = uri.authority().filter(|found| is_http && !found.host().is_empty()).ok_or(FORM)?;
        // Without a port, the text ends with the host; another end is no number of a port.
        if authority.port_u16().is_none() && !authority.as_str().ends_with(authority.host()) {
            return Err(FORM.to_owned());
        }
        let Some((credentials, address)) = authority.as_str().rsplit_once('@') else {
            return Ok(Self { uri, authorization: None });
        };
        let authorization = Some(basic(credentials)?);
        let address = address.parse().map_err(|_| FORM.to_owned())?;
        let mut parts = uri.into_parts();
        parts.authority = Some(address);
        Ok(Self { uri: Uri::from_parts(parts).map_err(|_| FORM.to_owned())?, authorization })
    }
}

/// The header of percent-encoded credentials, `user:password` or `user` (RFC 7617).
fn basic(credentials: &str) -> Result<HeaderValue, String> {
    let (user, password) = credentials.split_once(':').unwrap_or((credentials, ""));
    let mut plain: Vec<u8> = percent_decode_str(user).collect();
    plain.push(b':');
    plain.extend(percent_decode_str(password));
    let value = HeaderValue::try_from(format!("Basic {}", STANDARD.encode(plain)));
    let mut value = value.map_err(|_| FORM.to_owned())?;
    value.set_sensitive(true);
    Ok(value)
}

impl fmt::Display for NodeUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (scheme, authority) = (self.uri.scheme_str().unwrap_or_default(), self.uri.authority());
        write!(f, "{scheme}://{}", authority.map_or("", |authority| authority.as_str()))
    }
}

impl fmt::Debug for NodeUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "NodeUrl({self})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credentials_and_paths_are_used_and_not_shown() {
        let url: NodeUrl =
            "https://us%40er:p%3As%2Fs@node.example:8443/canary/rpc/?key=canary".parse().unwrap();
        assert_eq!(url.uri(), "https://node.example:8443/canary/rpc/?key=canary");
        assert_eq!(url.endpoint("status"), "https://node.example:8443/canary/rpc/status?key=canary");
        let value = url.authorization().unwrap();
        let sent = STANDARD.decode(value.to_str().unwrap().trim_start_matches("Basic ")).unwrap();
        assert!(sent == b"us@er:p:s/s" && value.is_sensitive());
        assert_eq!(format!("{url} {url:?}"), "https://node.example:8443 NodeUrl(https://node.example:8443)");
        let token: NodeUrl = "http://token@[::1]:26657".parse().unwrap();
        assert_eq!(token.authorization().unwrap(), "Basic dG9rZW46");
        assert!(url.is_tls() && !token.is_tls());
    }

    #[test]
    fn only_http_addresses_with_a_host_are_accepted() {
        for good in ["http://node:26657", "http://127.0.0.1:26657/", "https://node", "HTTP://node/rpc"] {
            let url: NodeUrl = good.parse().unwrap();
            assert!(url.authorization().is_none(), "{good}");
        }
        let url: NodeUrl = "http://node:26657".parse().unwrap();
        assert_eq!(url.endpoint("status"), "http://node:26657/status");
        for bad in [
            "node:26657", "tcp://canary@node:26657", "http://", "http://canary@", "/status", "",
            "http://a b", "http://node:99999", "http://node:canary",
        ] {
            let mistake = bad.parse::<NodeUrl>().unwrap_err();
            assert!(mistake == FORM, "{bad}: {mistake}");
        }
    }

    #[test]
    fn a_wrong_address_is_a_mistake_also_where_none_is_needed() {
        for text in ["tcp://node:26657", ","] {
            let mut env = Env::of([("MESH_NODE_URL".to_owned(), text.to_owned())]);
            assert!(NodeUrl::read_optional(&mut env).is_empty(), "{text}");
            assert_eq!(env.mistakes().len(), 1, "{text}: {:?}", env.mistakes());
        }
        let mut env = Env::default();
        assert!(NodeUrl::read_optional(&mut env).is_empty() && env.mistakes().is_empty());
    }
}
