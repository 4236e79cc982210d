//! `mesh get`: prints the answer to a read, now or as of a block.

use clap::Args;
use reqwest::header::{HeaderMap, HeaderValue};
use std::time::Duration;

use crate::{
    failure::{Failure, failed},
    gateway::{Gateway, GatewayArgs, GatewayError, PREFER},
    terminal::print,
    watch::args::ReadPath,
};

/// Longest time without an answer or its next piece, besides the time that the gateway waits for the block.
const PATIENCE: Duration = Duration::from_secs(30);

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  mesh get '/api/v2/orders?partyId=ID&liveOnly=true'
  mesh get /api/v2/party/ID/portfolio --at-block 12345
  mesh get /accounts?party=ID --at-block 12345 --wait 10     after a transaction of block 12345")]
pub(crate) struct GetArgs {
    /// The read: path and query as for curl, or the full URL
    #[arg(value_name = "PATH")]
    read: ReadPath,
    #[command(flatten)]
    gateway: GatewayArgs,
    /// The answer as it was when this block was the newest
    #[arg(long, value_name = "HEIGHT")]
    at_block: Option<u64>,
    /// Wait so long for that block, at most 10 s
    #[arg(long, value_name = "SECONDS", requires = "at_block")]
    wait: Option<u8>,
}

pub(crate) async fn get(args: GetArgs) -> Result<(), Failure> {
    let GetArgs { read, gateway, at_block, wait } = args;
    let mut url = read.url(&gateway.url)?;
    if let Some(height) = at_block {
        url.query_pairs_mut().append_pair("atBlock", &height.to_string());
    }
    let gateway = Gateway::new(&gateway.at(url.clone()), PATIENCE, |client| client)?;
    let mut headers = HeaderMap::new();
    if let Some(seconds) = wait {
        let prefer = HeaderValue::try_from(format!("handling=strict, wait={seconds}"));
        headers.extend(prefer.ok().map(|prefer| (PREFER, prefer)));
    }
    let answer = gateway.text(url.as_str(), headers).await;
    print(&answer.map_err(|error| match error {
        GatewayError::Unanswered { .. } => failed!("no answer from {url} ({error}); {}", error.advice()),
        error => failed!("{error}"),
    })?)
}
