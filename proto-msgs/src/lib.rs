//! The contract: every operation, message and enum, the rules of their parameters, their JSON form.
//!
//! All of it is generated from `proto/`, in two forms: types with [`Operation`] for the services, and
//! [`Contract`], data read from the descriptors, for the edge, which has no code per operation.

mod contract;
mod table;

pub use contract::{Contract, Format, Method, OperationInfo, Rule, Segment};

/// Messages of package `api.v2`, with the JSON form of the contract: lowerCamelCase names, 64-bit integers
/// as strings, enums by name, every scalar and list present (J2-J7).
#[allow(missing_docs, clippy::all, clippy::uninlined_format_args, unreachable_pub)]
pub mod v2 {
    include!(concat!(env!("OUT_DIR"), "/api.v2.rs"));
    include!(concat!(env!("OUT_DIR"), "/api.v2.serde.rs"));
}

/// Messages of Google's packages that the contract uses.
#[allow(missing_docs, clippy::all, unreachable_pub)]
pub mod google {
    /// Package `google.api`.
    pub mod api {
        include!(concat!(env!("OUT_DIR"), "/google.api.rs"));
    }
    /// Package `google.rpc`.
    pub mod rpc {
        include!(concat!(env!("OUT_DIR"), "/google.rpc.rs"));
    }
}

/// The application numbers of refusals (contract section 2.2), one module per operation: those that the
/// operation declares under a name, and those of its parameters' rules.
pub mod numbers {
    include!(concat!(env!("OUT_DIR"), "/numbers.rs"));
}

/// A request that knows its reply and where it is answered, so that no call site spells either.
pub trait Operation: prost::Message + Default + Send + 'static {
    /// The reply of a successful request.
    type Reply: prost::Message + Default + serde::Serialize + Send + 'static;
    /// Longest time of an answer, milliseconds; `None` = that of a read.
    const ANSWER_WITHIN_MS: Option<u32> = None;
    /// The workload that answers, e.g. `query`.
    const WORKLOAD: &'static str;
    /// The operation's one name, e.g. `GetWithdrawal`.
    const NAME: &'static str;

    /// Height of the block that the answer is as of; `None` = the newest, as for operations without a past.
    fn at_block(&self) -> Option<u64> {
        None
    }

    /// Id of the chain that is meant; `None` = any.
    fn chain_id(&self) -> Option<&str> {
        None
    }
}

/// A request that is answered by a page of a list (contract section 3).
pub trait PagedOperation: Operation {
    /// What is listed.
    type Node: prost::Message;

    /// Which page is asked for.
    fn pagination(&self) -> Option<&v2::Pagination>;

    /// The reply with these nodes and their cursors, in display order.
    fn page(nodes: Vec<(Self::Node, String)>, page_info: v2::PageInfo) -> Self::Reply;
}

/// A request that is answered by a stream of bytes.
pub trait StreamingOperation: prost::Message + Default + Send + 'static {
    /// The workload that answers, e.g. `export`.
    const WORKLOAD: &'static str;
    /// The operation's one name, e.g. `ExportLedgerEntries`.
    const NAME: &'static str;
}

/// The intervals of candles as candle ids spell them (contract 4.12), shortest first.
pub const CANDLE_INTERVALS: [&str; 7] =
    ["block", "1_minute", "5_minutes", "15_minutes", "1_hour", "6_hours", "1_day"];

impl v2::DateRange {
    /// Its bounds as parameters, start and end.
    pub const PARAMETERS: [&'static str; 2] = ["dateRange.startTimestamp", "dateRange.endTimestamp"];
}

/// Most elements of a list parameter (contract section 7).
pub const MAX_LIST_LENGTH: usize = 50;
/// How long the node may take for an answer to a transaction, milliseconds (contract section 7).
pub const NODE_CALL_MS: u32 = 5000;
/// How long a transaction may take to come into a block, milliseconds (contract section 7).
pub const COMMIT_MS: u32 = 15_000;

include!(concat!(env!("OUT_DIR"), "/operations.rs"));

/// Workloads with their descriptions.
const DESCRIPTIONS: &[(&str, &str)] = &include!(concat!(env!("OUT_DIR"), "/workloads.rs"));

/// What a workload does, in one sentence: the comment of its service in the contract.
pub fn description(workload: &str) -> Option<&'static str> {
    DESCRIPTIONS.iter().find(|(name, _)| *name == workload).map(|(_, text)| *text)
}
