//! Requests an operation and compares its answers.

use mesh_oracles::{Listing, query};
use mesh_tests::{Call, assert_problem, assert_refused, assert_same};
use proto_msgs::v2::Pagination;
use serde_json::Value;

use crate::recorded_network::Recording;

/// The comparisons of one operation.
pub(crate) struct Check<'a> {
    pub(crate) recording: &'a Recording,
    /// Whether its answers name the newest block in their headers.
    pub(crate) names_head: bool,
}

impl Check<'_> {
    /// Asserts that the path is answered with exactly this value, over HTTP and gRPC.
    pub(crate) async fn same(&self, path: &str, expected: &Value) {
        let answer = self.recording.mesh.get(path).await;
        assert_eq!(answer.status, 200, "{path}: {answer:?}");
        assert_same(path, &answer.json(), expected);
        assert_eq!(answer.header("content-type"), Some("application/json"), "{path}");
        if self.names_head {
            let (height, time) = &self.recording.head;
            let named = ["x-block-height", "x-block-timestamp"].map(|name| answer.header(name));
            assert_eq!(named, [Some(height.as_str()), Some(time.as_str())], "{path}");
        }
        let called = Call::from_path(path).unwrap_or_else(|| panic!("{path} cannot be said in protobuf"));
        let reply = self.recording.rpc.json(&called).await;
        assert_same(path, &reply.unwrap_or_else(|status| panic!("{path} over gRPC: {status:?}")), expected);
    }

    /// Asserts that a path with filters is answered with these rows, in one answer and in pages of these
    /// sizes.
    pub(crate) async fn pages(&self, target: &str, expected: &Listing, sizes: &[usize]) {
        self.same(target, &expected.answer(&Pagination::default())).await;
        for page in sizes.iter().flat_map(|size| expected.walks(*size)) {
            self.same(&format!("{target}{}", query(&page)), &expected.answer(&page)).await;
        }
    }

    /// Asserts that the object of the path is not found, with this application number.
    pub(crate) async fn not_found(&self, path: &str, number: i64) {
        assert_problem(&self.recording.mesh.get(path).await, 404, 5, number);
        assert_refused(self.recording.rpc.call(&Call::from_path(path).unwrap()).await, 5, number);
    }
}
