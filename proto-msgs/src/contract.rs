//! The contract as data: one row per operation with its HTTP route, and the rule of each field.

use std::{collections::HashMap, sync::OnceLock, time::Duration};

use heck::ToKebabCase;
use prost_reflect::{
    DescriptorPool, DynamicMessage, ExtensionDescriptor, FieldDescriptor, MessageDescriptor,
    MethodDescriptor, Value,
};

use crate::v2;
pub use crate::v2::Format;

/// The compiled descriptors, with all options and comments.
const DESCRIPTORS: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/contract.bin"));

/// All operations, in the order of declaration.
#[derive(Debug)]
pub struct Contract {
    pool: DescriptorPool,
    operations: Vec<OperationInfo>,
    /// Rules by the full names of their fields.
    rules: HashMap<String, Rule>,
}

/// One operation as the edge needs it.
#[derive(Debug, Clone)]
pub struct OperationInfo {
    /// Its one name, e.g. `GetWithdrawal`.
    pub name: String,
    /// The full name of its gRPC service, e.g. `api.v2.Query`.
    pub service: String,
    /// The workload that answers it, e.g. `query`.
    pub workload: String,
    /// HTTP method.
    pub method: Method,
    /// Path, cut at the slashes.
    pub path: Vec<Segment>,
    /// Whether the answer is a stream of chunks (an export).
    pub streaming: bool,
    /// The declaration itself, with its options and its comment.
    pub rpc: MethodDescriptor,
    /// The request message.
    pub request: MessageDescriptor,
    /// The reply message.
    pub reply: MessageDescriptor,
    /// Longest time of an answer; `None` = that of a read.
    pub answer_within: Option<Duration>,
    /// Whether the answer changes with the node's blocks rather than with the store's.
    pub follows_node: bool,
}

/// HTTP method of an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Method {
    /// A read; parameters in path and query.
    Get,
    /// A submission; parameters in a JSON body.
    Post,
}

/// One segment of a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Segment {
    /// This very text.
    Fixed(String),
    /// Any text: the value of this field of the request.
    Field(String),
}

/// Rule of one field, with what it inherits already filled in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rule {
    /// Form of the value.
    pub format: Format,
    /// Application number when the parameter is absent; `None` = it may be absent.
    pub missing: Option<u32>,
    /// Application number when the value is malformed; `None` = inherited from the field that holds its
    /// message.
    pub invalid: Option<u32>,
    /// Greatest number of characters.
    pub max_chars: Option<usize>,
    /// What the parameter is called in an error text.
    pub called: Option<String>,
}

impl Contract {
    /// The contract this build was made from.
    pub fn get() -> &'static Self {
        static CONTRACT: OnceLock<Contract> = OnceLock::new();
        CONTRACT.get_or_init(Self::read)
    }

    /// All operations, in the order of declaration.
    pub fn operations(&self) -> &[OperationInfo] {
        &self.operations
    }

    /// All descriptors.
    pub fn pool(&self) -> &DescriptorPool {
        &self.pool
    }

    /// The rule of a field.
    pub fn rule(&self, field: &FieldDescriptor) -> &Rule {
        self.rules.get(field.full_name()).unwrap_or(&Rule::NONE)
    }

    fn read() -> Self {
        let pool = DescriptorPool::decode(DESCRIPTORS).expect("the build wrote these descriptors");
        let extension = |name| pool.get_extension_by_name(name).expect("declared in proto/");
        let http = extension("google.api.http");
        let options = OperationOptions {
            within: extension("api.v2.answer_within_ms"),
            follows_node: extension("api.v2.follows_node"),
            http,
        };
        let operations = pool
            .services()
            .flat_map(|service| service.methods().collect::<Vec<_>>())
            // The edge answers a method without a path by itself.
            .filter(|method| method.options().has_extension(&options.http))
            .map(|method| operation(&method, &options))
            .collect();
        let rules = rules(&pool, &extension("api.v2.rule"));
        Self { pool, operations, rules }
    }
}

impl Rule {
    /// The rule of a field without one.
    const NONE: Self =
        Self { format: Format::Any, missing: None, invalid: None, max_chars: None, called: None };
}

/// The rules of all fields that declare one.
fn rules(pool: &DescriptorPool, extension: &ExtensionDescriptor) -> HashMap<String, Rule> {
    let number = |number: u32| (number != 0).then_some(number);
    let read = |field: FieldDescriptor| {
        let options = field.options();
        let declared = options.has_extension(extension).then(|| options.get_extension(extension))?;
        let rule: v2::Rule = declared.as_message()?.transcode_to().ok()?;
        let rule = Rule {
            format: rule.format(),
            missing: number(rule.missing),
            invalid: number(rule.invalid),
            max_chars: number(rule.max_chars).map(|most| most as usize),
            called: (!rule.called.is_empty()).then_some(rule.called),
        };
        Some((field.full_name().to_owned(), rule))
    };
    pool.all_messages().flat_map(|message| message.fields().filter_map(read).collect::<Vec<_>>()).collect()
}

/// The options of an operation that the edge reads.
struct OperationOptions {
    http: ExtensionDescriptor,
    within: ExtensionDescriptor,
    follows_node: ExtensionDescriptor,
}

fn operation(method: &MethodDescriptor, extensions: &OperationOptions) -> OperationInfo {
    let options = method.options();
    let within = options.get_extension(&extensions.within).as_u32().filter(|ms| *ms > 0);
    let http = options.get_extension(&extensions.http);
    let http = http.as_message().cloned().expect("an operation has a google.api.http path");
    let text = |name: &str| text_field(&http, name);
    let (http_method, template) = match text("get") {
        Some(template) => (Method::Get, template),
        None => (Method::Post, text("post").expect("an rpc is reached by GET or POST")),
    };
    OperationInfo {
        name: method.name().to_owned(),
        service: method.parent_service().full_name().to_owned(),
        workload: method.parent_service().name().to_kebab_case(),
        method: http_method,
        path: template.trim_start_matches('/').split('/').map(segment).collect(),
        streaming: method.is_server_streaming(),
        rpc: method.clone(),
        request: method.input(),
        reply: method.output(),
        answer_within: within.map(|ms| Duration::from_millis(ms.into())),
        follows_node: options.get_extension(&extensions.follows_node).as_bool().unwrap_or_default(),
    }
}

fn text_field(message: &DynamicMessage, name: &str) -> Option<String> {
    match message.get_field_by_name(name).as_deref() {
        Some(Value::String(text)) if !text.is_empty() => Some(text.clone()),
        _ => None,
    }
}

fn segment(text: &str) -> Segment {
    match text.strip_prefix('{').and_then(|rest| rest.strip_suffix('}')) {
        Some(field) => Segment::Field(field.to_owned()),
        None => Segment::Fixed(text.to_owned()),
    }
}

impl OperationInfo {
    /// Whether it answers in pages.
    pub fn is_paged(&self) -> bool {
        self.request.get_field_by_name("pagination").is_some()
    }

    /// Whether its answer can have many rows: a page, or lists in a single object.
    pub fn has_rows(&self) -> bool {
        let is_list = |field: FieldDescriptor| field.is_list() && field.kind().as_message().is_some();
        let has_list = |message: &MessageDescriptor| message.fields().any(is_list);
        let mut members = self.reply.fields().filter_map(|field| field.kind().as_message().cloned());
        self.is_paged() || has_list(&self.reply) || members.any(|member| has_list(&member))
    }

    /// Whether its answer can be had as of a block.
    pub fn has_past(&self) -> bool {
        self.request.get_field_by_name("at_block").is_some()
    }

    /// The HTTP path as a template, e.g. `/api/v2/withdrawal/{id}`.
    pub fn template(&self) -> String {
        let mut template = String::new();
        for segment in &self.path {
            template.push('/');
            match segment {
                Segment::Fixed(text) => template.push_str(text),
                Segment::Field(name) => template.extend(["{", name, "}"]),
            }
        }
        template
    }

    /// Whether it can be watched: it is a read whose answer is one message.
    pub fn is_watchable(&self) -> bool {
        self.method == Method::Get && !self.streaming
    }

    /// Its path over gRPC, e.g. `/api.v2.Query/GetWithdrawal`.
    pub fn rpc(&self) -> String {
        format!("/{}/{}", self.service, self.name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_operations_share_a_name_or_a_route() {
        let rows = Contract::get().operations();
        let names: std::collections::HashSet<_> = rows.iter().map(|row| &row.name).collect();
        let routes: std::collections::HashSet<_> = rows.iter().map(|row| row.template()).collect();
        assert_eq!((names.len(), routes.len()), (rows.len(), rows.len()));
    }

    #[test]
    fn answers_with_many_rows_are_pages_and_objects_with_lists() {
        let has_rows =
            |name| Contract::get().operations().iter().any(|row| row.name == name && row.has_rows());
        let names = ["ListTrades", "GetPortfolio", "GetMarketDepth", "LastBlockHeight", "GetOrder"];
        assert_eq!(names.map(has_rows), [true, true, true, false, false]);
    }

    #[test]
    fn every_workload_says_what_it_does() {
        let workloads = Contract::get().operations().iter().map(|row| row.workload.as_str());
        let workloads: std::collections::BTreeSet<_> = workloads.collect();
        let descriptions: std::collections::BTreeSet<_> =
            workloads.iter().filter_map(|workload| crate::description(workload)).collect();
        assert_eq!(descriptions.len(), workloads.len(), "{descriptions:?}");
        assert!(descriptions.iter().all(|text| text.ends_with('.')), "{descriptions:?}");
    }

    #[test]
    fn every_declaration_has_a_comment() {
        let pool = Contract::get().pool();
        let mut bare = Vec::new();
        for file in pool.files().filter(|file| file.package_name() == "api.v2") {
            let file = file.file_descriptor_proto();
            let commented: std::collections::HashSet<Vec<i32>> = file
                .source_code_info
                .iter()
                .flat_map(|info| &info.location)
                .filter(|place| place.leading_comments.as_ref().is_some_and(|text| !text.trim().is_empty()))
                .map(|place| place.path.clone())
                .collect();
            let mut need = |path: Vec<i32>, name: String| {
                if !commented.contains(&path) {
                    bare.push(name);
                }
            };
            for (at, message) in (0..).zip(&file.message_type) {
                need(vec![4, at], message.name().to_owned());
                for (field, declared) in (0..).zip(&message.field) {
                    need(vec![4, at, 2, field], format!("{}.{}", message.name(), declared.name()));
                }
            }
            for (at, declared) in (0..).zip(&file.enum_type) {
                need(vec![5, at], declared.name().to_owned());
                for (value, name) in (0..).zip(&declared.value) {
                    need(vec![5, at, 2, value], name.name().to_owned());
                }
            }
            for (at, service) in (0..).zip(&file.service) {
                need(vec![6, at], service.name().to_owned());
                for (method, name) in (0..).zip(&service.method) {
                    need(vec![6, at, 2, method], name.name().to_owned());
                }
            }
        }
        assert!(bare.is_empty(), "without a comment: {bare:?}");
    }
}
