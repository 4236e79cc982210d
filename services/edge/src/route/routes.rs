//! The routes: the contract's operations and the edge's own pages. A path matches one of them or none.

use std::{collections::HashMap, sync::Arc};

use proto_msgs::{Contract, Method, OperationInfo, Segment};

use crate::{
    decode::percent::{PathField, Text, decode_segment},
    grpc::{protocol::standard_service, watch},
    route::{page::Page, pages::Pages, status},
};

/// All routes, fixed paths before patterns.
pub(crate) struct Routes {
    operations: &'static [OperationInfo],
    /// Indexes of `operations`, those with fewer fields in their path first.
    order: Vec<usize>,
    /// Operations by their gRPC paths.
    rpcs: HashMap<String, &'static OperationInfo>,
    pages: Pages,
}

/// The match of a path.
#[derive(Clone)]
pub(crate) enum RouteMatch {
    /// An operation, and the values of its path's fields.
    Operation(&'static OperationInfo, Vec<PathField>),
    /// A page of the edge.
    Page(Arc<Page>),
    /// The status of the mesh, for the console.
    Status,
    /// Watches of several reads on one stream (W10).
    Watch,
}

/// The methods of a read or a page, as the value of `Allow`.
pub(crate) const READ_METHODS: &str = "GET, HEAD, OPTIONS";
const SUBMIT_METHODS: &str = "POST, OPTIONS";
/// The methods that any path serves.
pub(crate) const ALL_METHODS: &str = "GET, HEAD, POST, OPTIONS";

/// The methods of an operation, as the value of `Allow`.
pub(crate) fn methods(operation: &OperationInfo) -> &'static str {
    match operation.method {
        Method::Get => READ_METHODS,
        Method::Post => SUBMIT_METHODS,
    }
}

/// The path of watches, and their name in metrics and logs.
const WATCH_PATH: &str = "/watch";
pub(crate) const WATCH: &str = "watch";

impl Routes {
    /// The contract's operations, and these pages.
    pub(crate) fn of_contract(pages: Pages) -> Arc<Self> {
        let operations = Contract::get().operations();
        let mut order: Vec<usize> = (0..operations.len()).collect();
        order.sort_by_key(|index| {
            operations[*index].path.iter().filter(|segment| matches!(segment, Segment::Field(_))).count()
        });
        let rpcs = operations.iter().map(|operation| (operation.rpc(), operation)).collect();
        Arc::new(Self { operations, order, rpcs, pages })
    }

    /// The name in logs of what a path leads to.
    pub(crate) fn operation_name(&self, path: &str, is_grpc: bool) -> Option<&'static str> {
        match is_grpc {
            true if path == watch::PATH => Some(watch::NAME),
            true => self.rpc(path).map_or_else(|| standard_service(path), |rpc| Some(rpc.name.as_str())),
            false => self.find(path).as_ref().map(RouteMatch::name),
        }
    }

    /// The operation of a gRPC path.
    pub(crate) fn rpc(&self, path: &str) -> Option<&'static OperationInfo> {
        self.rpcs.get(path).copied()
    }

    /// The match of a path. Segments are compared percent-decoded.
    pub(crate) fn find(&self, path: &str) -> Option<RouteMatch> {
        if let Some(page) = self.pages.get(path) {
            return Some(RouteMatch::Page(Arc::clone(page)));
        }
        if path == status::PATH {
            return Some(RouteMatch::Status);
        }
        if path == WATCH_PATH {
            return Some(RouteMatch::Watch);
        }
        let segments: Vec<Text<'_>> = path.strip_prefix('/')?.split('/').map(decode_segment).collect();
        self.order.iter().find_map(|index| {
            let operation = &self.operations[*index];
            match_fields(&operation.path, &segments).map(|fields| RouteMatch::Operation(operation, fields))
        })
    }
}

impl RouteMatch {
    /// The name in metrics and logs.
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Self::Operation(operation, _) => &operation.name,
            Self::Page(page) => page.name,
            Self::Status => status::NAME,
            Self::Watch => WATCH,
        }
    }

    /// The path template, for traces.
    pub(crate) fn route(&self, path: &str) -> String {
        match self {
            Self::Operation(operation, _) => operation.template(),
            Self::Page(_) | Self::Status | Self::Watch => path.to_owned(),
        }
    }

    /// The value of `Allow`.
    pub(crate) fn allow(&self) -> &'static str {
        match self {
            Self::Operation(operation, _) => methods(operation),
            Self::Page(_) | Self::Status | Self::Watch => READ_METHODS,
        }
    }
}

/// The values of a path's fields, if the path matches.
fn match_fields(pattern: &'static [Segment], segments: &[Text<'_>]) -> Option<Vec<PathField>> {
    if pattern.len() != segments.len() {
        return None;
    }
    let mut fields = Vec::new();
    for (expected, given) in pattern.iter().zip(segments) {
        match expected {
            Segment::Fixed(text) if given.as_deref() == Ok(text) => {}
            Segment::Fixed(_) => return None,
            Segment::Field(name) => {
                let value = given.clone().map(|text| text.into_owned().into());
                fields.push((name.as_str(), value));
            }
        }
    }
    Some(fields)
}
