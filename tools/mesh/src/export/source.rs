//! The gateway as a source of downloads: requests the list of segments and files, and parses the headers of
//! the answers. Errors are split into those worth a retry and permanent ones.

use std::time::Duration;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use mesh_problem::{NOT_MAPPED, Problem, error_chain, sources};
use proto_msgs::{
    Contract, Operation, StreamingOperation,
    v2::{
        ExportNetworkHistoryRequest, HistorySegment, ListAllNetworkHistorySegmentsReply,
        ListAllNetworkHistorySegmentsRequest, Table,
    },
};
use reqwest::{
    Client, RequestBuilder, Response, StatusCode, Url,
    header::{
        CONTENT_DISPOSITION, CONTENT_LENGTH, CONTENT_RANGE, ETAG, HeaderMap, IF_RANGE, RANGE, RETRY_AFTER,
    },
};
use tokio::time::timeout;

use crate::{failure::Failure, http::client_for};

const CONNECT: Duration = Duration::from_secs(10);
/// Limit of the body of an error or of a list of segments, bytes.
const LONGEST_BODY: usize = 64 << 20;

/// Application error numbers: heights off the boundaries of segments, and blocks that are not sealed.
const OFF_BOUNDARY: u32 = 240_012;
const NOT_HELD: u32 = 240_013;

/// The table and heights to download.
#[derive(Clone, Copy, Debug)]
pub(super) struct Request {
    /// The table.
    pub(super) table: Table,
    /// First height.
    pub(super) from: u64,
    /// Last height, included.
    pub(super) to: u64,
}

/// The description of the complete file, from the headers of an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct FileInfo {
    /// The file name in Content-Disposition, unchecked.
    pub(super) name: Option<String>,
    /// The strong entity tag with its quotes.
    pub(super) etag: String,
    /// Length of the complete file.
    pub(super) bytes: u64,
    /// Checksum of the complete file.
    pub(super) crc32c: u32,
    /// Rows of the table, when the header is there.
    pub(super) rows: Option<u64>,
}

/// An answer with the file or its rest as a body.
#[derive(Debug)]
pub(super) struct Answer {
    /// The description of the complete file.
    pub(super) info: FileInfo,
    /// The offset in the file at which the body begins.
    pub(super) from_byte: u64,
    response: Response,
}

/// Why there is no answer.
#[derive(Debug)]
pub(super) enum FetchError {
    /// A temporary failure, worth a retry.
    Passing {
        /// The cause, in a few words.
        why: String,
        /// The gateway's Retry-After.
        wait: Option<Duration>,
    },
    /// HTTP 416: the file is shorter than the local part.
    NoSuchPart,
    /// A permanent failure: one sentence with what to do.
    Refused(String),
}

/// A gateway.
#[derive(Debug)]
pub(super) struct Source {
    client: Client,
    base: String,
    patience: Duration,
}

impl Source {
    /// A gateway with a timeout for its answers.
    pub(super) fn new(base: &Url, patience: Duration) -> Result<Self, Failure> {
        // A gzip answer has no Content-Length, and a ZIP gains nothing by it.
        let client = client_for(base).no_gzip().connect_timeout(CONNECT).build();
        let client = client
            .map_err(|error| Failure::failed(format!("cannot make requests ({})", error_chain(&error))))?;
        Ok(Self { client, base: base.as_str().trim_end_matches('/').to_owned(), patience })
    }

    /// The timeout for an answer and between two pieces of a body.
    pub(super) fn patience(&self) -> Duration {
        self.patience
    }

    /// The URL of a download.
    pub(super) fn url(&self, request: &Request) -> String {
        let path = path_of(ExportNetworkHistoryRequest::NAME);
        let Request { table, from, to } = request;
        format!("{}{path}?fromBlock={from}&toBlock={to}&table={}", self.base, table.as_str_name())
    }

    /// The sealed segments, newest first.
    pub(super) async fn segments(&self) -> Result<Vec<HistorySegment>, FetchError> {
        let path = path_of(ListAllNetworkHistorySegmentsRequest::NAME);
        let url = format!("{}{path}", self.base);
        let answer = self.send(self.client.get(&url)).await?;
        if answer.status() != StatusCode::OK {
            return Err(self.error_from(answer).await);
        }
        let body = self.body(answer).await?;
        let reply: Result<ListAllNetworkHistorySegmentsReply, _> = serde_json::from_slice(&body);
        reply.map(|reply| reply.segments).map_err(|_| foreign(&url))
    }

    /// Requests the complete file, or the rest after a local part, given by its length and entity tag.
    pub(super) async fn file(
        &self,
        request: &Request,
        part_held: Option<(u64, &str)>,
    ) -> Result<Answer, FetchError> {
        let url = self.url(request);
        let mut request = self.client.get(&url);
        if let Some((bytes, etag)) = part_held {
            request = request.header(RANGE, format!("bytes={bytes}-")).header(IF_RANGE, etag);
        }
        let response = self.send(request).await?;
        let read = match response.status() {
            StatusCode::OK => whole(response.headers()).map(|info| (info, 0)),
            StatusCode::PARTIAL_CONTENT if part_held.is_some() => part(response.headers()),
            StatusCode::RANGE_NOT_SATISFIABLE if part_held.is_some() => return Err(FetchError::NoSuchPart),
            _ => return Err(self.error_from(response).await),
        };
        let (info, from_byte) = read.ok_or_else(|| foreign(&url))?;
        Ok(Answer { info, from_byte, response })
    }

    async fn send(&self, request: RequestBuilder) -> Result<Response, FetchError> {
        match timeout(self.patience, request.send()).await {
            Ok(sent) => sent.map_err(|error| passing(root_of(&error))),
            Err(_) => Err(passing(format!("no answer for {} s", self.patience.as_secs()))),
        }
    }

    async fn body(&self, mut response: Response) -> Result<Vec<u8>, FetchError> {
        let mut body = Vec::new();
        loop {
            let piece = timeout(self.patience, response.chunk()).await;
            match piece.map_err(|_| passing("the answer does not end".to_owned()))? {
                Ok(Some(piece)) if body.len() + piece.len() <= LONGEST_BODY => body.extend_from_slice(&piece),
                Ok(Some(_)) => {
                    return Err(FetchError::Refused("the answer is too long; check --url".to_owned()));
                }
                Ok(None) => return Ok(body),
                Err(error) => return Err(passing(root_of(&error))),
            }
        }
    }

    /// Turns an error answer into an error.
    async fn error_from(&self, response: Response) -> FetchError {
        let status = response.status();
        let after = response.headers().get(RETRY_AFTER).and_then(|value| value.to_str().ok()?.parse().ok());
        let problem: Option<Problem> = match self.body(response).await {
            Ok(body) => serde_json::from_slice(&body).ok(),
            Err(_) => None,
        };
        let message = problem.as_ref().map_or_else(|| format!("HTTP {status}"), error_text);
        match status {
            StatusCode::SERVICE_UNAVAILABLE
            | StatusCode::GATEWAY_TIMEOUT
            | StatusCode::BAD_GATEWAY
            | StatusCode::REQUEST_TIMEOUT
            | StatusCode::TOO_MANY_REQUESTS => {
                FetchError::Passing { why: message, wait: after.map(Duration::from_secs) }
            }
            _ => {
                let next = match problem.map(|problem| problem.number()) {
                    Some(OFF_BOUNDARY) => "take one of these, or add --snap",
                    Some(NOT_HELD) => "`first` and `last` are the ends of what is held",
                    Some(_) if status.is_server_error() => "the gateway's log says why",
                    Some(NOT_MAPPED) | None => "check --url",
                    Some(_) => "ask for something else",
                };
                FetchError::Refused(format!("refused: {message}; {next}"))
            }
        }
    }
}

impl Answer {
    /// The next bytes of the body; `None` at its end.
    pub(super) async fn next(&mut self) -> Result<Option<impl AsRef<[u8]> + use<>>, String> {
        self.response.chunk().await.map_err(|error| root_of(&error))
    }
}

/// The HTTP path of an operation of the contract.
pub(crate) fn path_of(operation: &str) -> String {
    let mut operations = Contract::get().operations().iter();
    operations.find(|row| row.name == operation).map(|row| row.template()).unwrap_or_default()
}

/// The message of a problem with its details.
pub(crate) fn error_text(problem: &Problem) -> String {
    let detail = problem.details.first().cloned().unwrap_or_default();
    match detail.inner.as_str() {
        "" => detail.message,
        inner => format!("{} ({inner})", detail.message),
    }
}

fn passing(why: String) -> FetchError {
    FetchError::Passing { why, wait: None }
}

fn foreign(url: &str) -> FetchError {
    FetchError::Refused(format!("{url} answers without what a download must tell of itself; check --url"))
}

/// The innermost cause of an error: that of the system or the protocol.
pub(crate) fn root_of(error: &reqwest::Error) -> String {
    sources(error).last().map_or_else(|| error.to_string(), ToString::to_string)
}

/// Parses the headers of a 200 answer.
fn whole(headers: &HeaderMap) -> Option<FileInfo> {
    let bytes = text(headers, CONTENT_LENGTH.as_str())?.parse().ok()?;
    info(headers, bytes)
}

/// Parses the headers of a 206 answer: the file, and the offset at which the body begins.
fn part(headers: &HeaderMap) -> Option<(FileInfo, u64)> {
    let (range, bytes) = text(headers, CONTENT_RANGE.as_str())?.strip_prefix("bytes ")?.split_once('/')?;
    let (first, last) = range.split_once('-')?;
    let (first, last, bytes): (u64, u64, u64) =
        (first.parse().ok()?, last.parse().ok()?, bytes.parse().ok()?);
    let is_end = first <= last && last.checked_add(1) == Some(bytes);
    if is_end { Some((info(headers, bytes)?, first)) } else { None }
}

fn info(headers: &HeaderMap, bytes: u64) -> Option<FileInfo> {
    let etag = text(headers, ETAG.as_str()).filter(|etag| etag.starts_with('"'))?.to_owned();
    let name = text(headers, CONTENT_DISPOSITION.as_str()).and_then(file_name);
    let rows = text(headers, "x-total-rows").and_then(|rows| rows.parse().ok());
    Some(FileInfo { name, etag, bytes, crc32c: crc32c_of(text(headers, "repr-digest")?)?, rows })
}

fn text<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name)?.to_str().ok()
}

/// The value of `filename="..."`.
fn file_name(disposition: &str) -> Option<String> {
    let (_, rest) = disposition.split_once("filename=\"")?;
    Some(rest.split_once('"')?.0.to_owned())
}

/// The CRC-32C among the digests of a header, most significant byte first.
fn crc32c_of(digests: &str) -> Option<u32> {
    let value = digests.split(',').find_map(|digest| digest.trim().strip_prefix("crc32c=:"))?;
    let bytes = STANDARD.decode(value.strip_suffix(':')?).ok()?;
    bytes.try_into().ok().map(u32::from_be_bytes)
}

#[cfg(test)]
mod tests {
    use reqwest::header::{HeaderName, HeaderValue};

    use super::*;

    const GOOD: [(&str, &str); 5] = [
        ("content-length", "10"),
        ("content-disposition", "attachment; filename=\"n-trades-1-2.zip\""),
        ("etag", "\"abc\""),
        ("repr-digest", "sha-256=:AAAA:, crc32c=:AQIDBA==:"),
        ("x-total-rows", "7"),
    ];

    fn headers(changes: &[(&'static str, &'static str)]) -> HeaderMap {
        let mut map = HeaderMap::new();
        for (name, value) in GOOD.iter().chain(changes) {
            map.insert(HeaderName::from_static(name), HeaderValue::from_static(value));
        }
        map
    }

    #[test]
    fn an_answer_describes_its_file() {
        let info = FileInfo {
            name: Some("n-trades-1-2.zip".into()),
            etag: "\"abc\"".into(),
            bytes: 10,
            crc32c: 0x0102_0304,
            rows: Some(7),
        };
        assert_eq!(whole(&headers(&[])), Some(info.clone()));
        let part_of = |range| part(&headers(&[("content-length", "3"), ("content-range", range)]));
        assert_eq!(part_of("bytes 7-9/10"), Some((info, 7)));
        for wrong in ["bytes 7-8/10", "bytes 7-9/*", "bytes */10", "rows 7-9/10", "bytes 9-7/8", ""] {
            assert_eq!(part_of(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn what_cannot_be_checked_is_no_download() {
        for (name, value) in [
            ("content-length", "many"),
            ("etag", "W/\"abc\""),
            ("repr-digest", "sha-256=:AAAA:"),
            ("repr-digest", "crc32c=:AQID:"),
            ("repr-digest", "crc32c=AQIDBA=="),
        ] {
            assert_eq!(whole(&headers(&[(name, value)])), None, "{name}: {value}");
        }
        for name in ["content-length", "etag", "repr-digest"] {
            let mut without = headers(&[]);
            without.remove(name);
            assert_eq!(whole(&without), None, "{name}");
        }
    }

    #[test]
    fn both_paths_are_the_contracts() {
        assert_eq!(path_of(ExportNetworkHistoryRequest::NAME), "/api/v2/networkhistory/export");
        assert_eq!(path_of(ListAllNetworkHistorySegmentsRequest::NAME), "/api/v2/networkhistory/segments");
    }
}
