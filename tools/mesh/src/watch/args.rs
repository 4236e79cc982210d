//! Command-line options of `mesh watch`.

use std::{num::NonZeroU64, str::FromStr};

use clap::Args;
use reqwest::Url;

use crate::{failure::Failure, gateway::GatewayArgs};

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  mesh watch /blockchain/height
  mesh watch '/api/v2/trades?marketId=ID&pagination.first=10'
  mesh watch '/api/v2/markets' --json | jq -c '[.height, (.answer.markets.edges | length)]'
It shows states and not a log: what lies between two of them may be skipped.")]
pub(crate) struct WatchArgs {
    /// The read: path and query as for curl, or the full URL
    #[arg(value_name = "PATH")]
    pub(crate) read: ReadPath,
    #[command(flatten)]
    pub(crate) gateway: GatewayArgs,
    /// Exit after this many events
    #[arg(long, value_name = "N")]
    pub(crate) count: Option<NonZeroU64>,
    /// Print each event as one line of JSON: its height with the answer or the problem
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ReadPath {
    Whole(Url),
    /// A path at the gateway of `--url`, without the first slash.
    Path(String),
}

impl ReadPath {
    /// The URL of the read at this gateway.
    pub(crate) fn url(&self, gateway: &Url) -> Result<Url, Failure> {
        match self {
            Self::Whole(url) => Ok(url.clone()),
            Self::Path(path) => Url::parse(&format!("{}/{path}", gateway.as_str().trim_end_matches('/')))
                .map_err(|_| Failure::usage("PATH makes no URL; write it as for curl")),
        }
    }
}

impl FromStr for ReadPath {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || "write path and query, such as /api/v2/markets?pagination.first=10".to_owned();
        let text = text.trim().split('#').next().unwrap_or_default();
        let path = text.trim_start_matches('/');
        let host = text.split(['/', '?']).next().unwrap_or_default();
        let url = match text {
            _ if path.is_empty() => return Err(wrong()),
            text if text.contains("://") && host.ends_with(':') => text.to_owned(),
            // As curl takes it.
            text if host.contains(':') => format!("http://{text}"),
            _ => return Ok(Self::Path(path.to_owned())),
        };
        let url = Url::parse(&url).map_err(|_| wrong())?;
        let is_anonymous = url.username().is_empty() && url.password().is_none();
        let is_gateway = ["http", "https"].contains(&url.scheme()) && url.has_host() && is_anonymous;
        if is_gateway { Ok(Self::Whole(url)) } else { Err(wrong()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_read_is_written_as_for_curl() {
        let base = "https://h/below/".parse().unwrap();
        for (text, url) in [
            ("/api/v2/trades?marketId=a&x=b c", "https://h/below/api/v2/trades?marketId=a&x=b%20c"),
            ("accounts?party=p", "https://h/below/accounts?party=p"),
            ("//accounts#x", "https://h/below/accounts"),
            ("/api?a=http://x:1/", "https://h/below/api?a=http://x:1/"),
            ("http://i:1/accounts?a", "http://i:1/accounts?a"),
            ("i:1/accounts", "http://i:1/accounts"),
        ] {
            assert_eq!(text.parse::<ReadPath>().unwrap().url(&base).unwrap().as_str(), url, "{text}");
        }
        for wrong in ["", "/", "#", "ftp://h/a", "http:///", "http://me@h/a", "http://me:you@h/a"] {
            wrong.parse::<ReadPath>().unwrap_err();
        }
    }
}
