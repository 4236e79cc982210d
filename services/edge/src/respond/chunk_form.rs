//! The chunk form of a download (contract section 6, X11): one JSON object per line, `result` or, last,
//! `error`.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use bytes::Bytes;
use futures_util::{Stream, StreamExt, stream};
use mesh_problem::Problem;
use proto_msgs::v2::ExportInfo;
use serde::Serialize;
use serde_json::{Value, json};

/// Media type of one JSON value per line.
pub(crate) const NDJSON: &str = "application/x-ndjson";

/// The type of the description of a file.
pub(crate) const INFO_TYPE: &str = "type.googleapis.com/api.v2.ExportInfo";

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Chunk<'a> {
    content_type: &'a str,
    data: String,
    extensions: Vec<Value>,
}

/// A line for each chunk. The first one describes the file, `extensions` of later ones is empty (S2); a
/// failure is the last line.
pub(crate) fn lines(
    content_type: String,
    info: ExportInfo,
    chunks: impl Stream<Item = Result<Bytes, Problem>> + Send + 'static,
) -> impl Stream<Item = Bytes> + Send + 'static {
    let state = (Box::pin(chunks), Some(info), content_type);
    stream::unfold(state, |(mut chunks, mut info, content_type)| async move {
        let line = match chunks.next().await? {
            Ok(bytes) => {
                let extensions = info.take().iter().map(describe).collect();
                let chunk = Chunk { content_type: &content_type, data: STANDARD.encode(bytes), extensions };
                line("result", &chunk)
            }
            Err(problem) => line("error", &problem),
        };
        Some((line, (chunks, info, content_type)))
    })
}

fn describe(info: &ExportInfo) -> Value {
    let mut description = json!({ "@type": INFO_TYPE });
    if let (Value::Object(into), Ok(Value::Object(fields))) = (&mut description, serde_json::to_value(info)) {
        into.extend(fields);
    }
    description
}

fn line(member: &str, value: &impl Serialize) -> Bytes {
    let mut line = format!("{{\"{member}\":").into_bytes();
    // Serializing text and numbers to memory cannot fail.
    let _ = serde_json::to_writer(&mut line, value);
    line.extend_from_slice(b"}\n");
    line.into()
}
