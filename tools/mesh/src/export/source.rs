//! The gateway as a source of downloads: requests the list of segments and files, and parses the headers of
//! the answers.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use mesh_problem::NOT_MAPPED;
use proto_msgs::{
    Operation as _, StreamingOperation as _,
    v2::{
        ExportNetworkHistoryRequest, HistorySegment, ListAllNetworkHistorySegmentsReply,
        ListAllNetworkHistorySegmentsRequest, Table,
    },
};
use reqwest::{
    Response, StatusCode,
    header::{CONTENT_DISPOSITION, CONTENT_LENGTH, CONTENT_RANGE, ETAG, HeaderMap, IF_RANGE, RANGE},
};

use crate::{
    failure::{Failure, failed},
    gateway::{Gateway, GatewayError, foreign},
};

/// Application error numbers: heights off the boundaries of segments, and blocks that are not sealed.
const OFF_BOUNDARY: u32 = 240_012;
const NOT_HELD: u32 = 240_013;

#[derive(Clone, Copy, Debug)]
pub(super) struct Request {
    pub(super) table: Table,
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
    pub(super) bytes: u64,
    pub(super) crc32c: u32,
    /// Rows of the table, when the header is there.
    pub(super) rows: Option<u64>,
}

/// An answer with the file or its rest as a body.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) info: FileInfo,
    /// The offset in the file at which the body begins.
    pub(super) from_byte: u64,
    pub(super) response: Response,
}

/// First and last height of each sealed segment.
pub(super) async fn spans(gateway: &Gateway) -> Result<Vec<(u64, u64)>, GatewayError> {
    let url = gateway.url(ListAllNetworkHistorySegmentsRequest::NAME);
    let reply: ListAllNetworkHistorySegmentsReply = gateway.get(&url, &["segments"]).await?;
    let span = |segment: &HistorySegment| {
        Some((u64::try_from(segment.from_height).ok()?, u64::try_from(segment.to_height).ok()?))
    };
    Ok(reply.segments.iter().filter_map(span).collect())
}

/// Requests the complete file, or the rest after a local part, given by its length and the file's tag.
pub(super) async fn file(
    gateway: &Gateway,
    request: &Request,
    part_held: Option<(u64, &str)>,
) -> Result<Answer, GatewayError> {
    let Request { table, from, to } = request;
    let url = gateway.url(ExportNetworkHistoryRequest::NAME);
    let url = format!("{url}?fromBlock={from}&toBlock={to}&table={}", table.as_str_name());
    let mut headers = HeaderMap::new();
    if let Some((bytes, etag)) = part_held {
        headers.insert(RANGE, format!("bytes={bytes}-").parse().map_err(|_| foreign(&url))?);
        headers.insert(IF_RANGE, etag.parse().map_err(|_| foreign(&url))?);
    }
    let response = gateway.download(&url, headers).await?;
    let read = match response.status() {
        StatusCode::PARTIAL_CONTENT if part_held.is_some() => part(response.headers()),
        StatusCode::OK => whole(response.headers()).map(|info| (info, 0)),
        _ => None,
    };
    let (info, from_byte) = read.ok_or_else(|| {
        let why = "answers without the headers of a download: check --url, and whether a proxy or CDN on \
                   the way removes Content-Length or weakens the ETag";
        GatewayError::Foreign(format!("{url} {why}"))
    })?;
    Ok(Answer { info, from_byte, response })
}

/// The failure for an error that a retry does not help against, with what to do.
pub(super) fn refused(error: &GatewayError) -> Failure {
    let GatewayError::Status { status, problem, .. } = error else {
        return Failure::failed(error.to_string());
    };
    let next = match problem.as_ref().map(|problem| problem.number()) {
        Some(OFF_BOUNDARY) => "take one of these, or add --snap",
        Some(NOT_HELD) => "`first` and `last` are the ends of what is held",
        Some(_) if status.is_server_error() => "the gateway's log says why",
        Some(NOT_MAPPED) | None => "check --url",
        Some(_) => return failed!("refused: {error}"),
    };
    failed!("refused: {error}; {next}")
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
}
