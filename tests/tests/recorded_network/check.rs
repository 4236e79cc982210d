//! Requests an operation, compares its answers, and counts the comparisons.

use mesh_oracles::{Listing, query};
use mesh_testbed::Answer;
use mesh_tests::{Call, assert_refused, difference};
use proto_msgs::v2::Pagination;
use serde_json::Value;

use crate::recorded_network::recording::{Recording, say};

/// The comparisons of one operation.
pub(crate) struct Check<'a> {
    recording: &'a Recording,
    operation: &'a str,
    names_head: bool,
    answers: usize,
    rows: usize,
    refusals: usize,
}

impl<'a> Check<'a> {
    /// Checks of an operation whose answers name the newest block in their headers.
    pub(crate) fn new(recording: &'a Recording, operation: &'a str) -> Self {
        Self { recording, operation, names_head: true, answers: 0, rows: 0, refusals: 0 }
    }

    /// Checks of an operation whose answers need not name the newest block.
    pub(crate) fn without_head(recording: &'a Recording, operation: &'a str) -> Self {
        Self { names_head: false, ..Self::new(recording, operation) }
    }

    /// Asserts that the path is answered with exactly this value, which contains this many rows.
    pub(crate) async fn same(&mut self, path: &str, expected: &Value, rows: usize) {
        let answer = self.recording.mesh.get(path).await;
        assert_eq!(answer.status, 200, "{path}: {answer:?}");
        if let Some(difference) = difference(&answer.json(), expected) {
            panic!("GET {path}: {difference}");
        }
        assert_eq!(answer.header("content-type"), Some("application/json"), "{path}");
        if self.names_head {
            self.compare_head(path, &answer);
        }
        self.same_over_grpc(path, expected).await;
        self.answers += 1;
        self.rows += rows;
    }

    /// Asserts that a path with filters is answered with these rows, in one answer and in pages of these
    /// sizes.
    pub(crate) async fn pages(&mut self, target: &str, expected: &Listing, sizes: &[usize]) {
        let whole = Pagination::default();
        self.same(target, &expected.answer(&whole), expected.rows.len()).await;
        for page in sizes.iter().flat_map(|size| expected.walks(*size)) {
            let rows = expected.page(&page).0.len();
            self.same(&format!("{target}{}", query(&page)), &expected.answer(&page), rows).await;
        }
    }

    /// Asserts that the path is refused with this status, code and application number.
    pub(crate) async fn refused(&mut self, path: &str, status: u16, code: i64, number: i64) {
        let answer = self.recording.mesh.get(path).await;
        let body = answer.json();
        let detail = &body["details"][0];
        let found = (answer.status, body["code"].as_i64(), detail["code"].as_i64());
        assert_eq!(found, (status, Some(code), Some(number)), "{path}: {answer:?}");
        assert_eq!(detail["@type"], "type.googleapis.com/api.v2.ErrorDetail", "{path}");
        assert!(answer.header("x-request-id").is_some(), "{path}: {answer:?}");
        if let Some(called) = Call::from_path(path).filter(|called| !called.operation.streaming) {
            assert_refused(self.recording.rpc.call(&called).await, code, number);
        }
        self.refusals += 1;
    }

    /// Prints the number of comparisons.
    pub(crate) fn done(self) {
        let Self { operation, answers, rows, refusals, .. } = self;
        let refused =
            if refusals == 0 { String::new() } else { format!(", {refusals} refusals as expected") };
        say(&format!(
            "{operation}: {answers} answers equal over HTTP and gRPC, {rows} rows in them{refused}"
        ));
    }

    /// Asserts that gRPC gives the same answer.
    async fn same_over_grpc(&self, path: &str, expected: &Value) {
        let called = Call::from_path(path).unwrap_or_else(|| panic!("{path} cannot be said in protobuf"));
        let reply = self.recording.rpc.json(&called).await;
        let reply = reply.unwrap_or_else(|status| panic!("{path} over gRPC: {status:?}"));
        if let Some(difference) = difference(&reply, expected) {
            panic!("{path} over gRPC: {difference}");
        }
    }

    fn compare_head(&self, path: &str, answer: &Answer) {
        let head = &self.recording.head;
        let named = (answer.header("x-block-height"), answer.header("x-block-timestamp"));
        let (height, time) = (head.height.to_string(), head.time_ns.to_string());
        assert_eq!(named, (Some(height.as_str()), Some(time.as_str())), "{path}");
    }
}
