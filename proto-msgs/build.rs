//! Compiles the contract: descriptors (as bytes, which keep every option), prost messages, their JSON form,
//! one row per operation (`Operation`, or `StreamingOperation` when it streams), the application numbers of
//! its refusals as constants, and what each workload does. Needs no protoc.

use std::{collections::BTreeMap, env, error::Error, fmt::Write, fs, path::PathBuf};

use heck::{ToKebabCase, ToSnakeCase};
use prost_reflect::{
    DescriptorPool, DynamicMessage, FieldDescriptor, MethodDescriptor, ServiceDescriptor, Value,
    prost::Message as _, prost_types::FileDescriptorSet,
};

const FILES: [&str; 8] = [
    "api/v2/common.proto", "api/v2/edge.proto", "api/v2/export.proto", "api/v2/node_info.proto",
    "api/v2/query.proto", "api/v2/tx_relay.proto", "api/v2/watch.proto", "google/rpc/status.proto",
];

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo:rerun-if-changed=proto");
    let out = PathBuf::from(env::var("OUT_DIR")?);
    let mut compiler = protox::Compiler::new(["proto"])?;
    compiler.include_imports(true).include_source_info(true).open_files(FILES)?;
    let encoded = without_bare_places(&compiler.encode_file_descriptor_set())?;
    fs::write(out.join("contract.bin"), &encoded)?;
    let pool = DescriptorPool::decode(encoded.as_slice())?;
    fs::write(out.join("numbers.rs"), numbers(&pool)?)?;
    fs::write(out.join("operations.rs"), operations(&pool)?)?;
    fs::write(out.join("workloads.rs"), workloads(&pool))?;

    let descriptors: FileDescriptorSet = compiler.file_descriptor_set();
    prost_build::Config::new().bytes(["."]).compile_fds(descriptors)?;
    pbjson_build::Builder::new()
        .register_descriptors(&encoded)?
        .emit_fields()
        .ignore_unknown_fields()
        // Messages of gRPC alone: `Any` has no JSON form here.
        .exclude([".api.v2.WatchRequest", ".api.v2.WatchReply"])
        .build(&[".api.v2"])?;
    Ok(())
}

/// The descriptors without the places in the source of what has no comment, which are most of their size.
fn without_bare_places(encoded: &[u8]) -> Result<Vec<u8>, Box<dyn Error>> {
    let pool = DescriptorPool::decode(encoded)?;
    let set = pool.get_message_by_name("google.protobuf.FileDescriptorSet").ok_or("no descriptor.proto")?;
    let mut set = DynamicMessage::decode(set, encoded)?;
    let files = set.get_field_by_name_mut("file").and_then(Value::as_list_mut).ok_or("no files")?;
    for file in files.iter_mut().filter_map(Value::as_message_mut) {
        let source = file.get_field_by_name_mut("source_code_info").and_then(Value::as_message_mut);
        let places = source.and_then(|source| source.get_field_by_name_mut("location")?.as_list_mut());
        places.ok_or("no places")?.retain(|place| {
            place.as_message().is_some_and(|place| place.has_field_by_name("leading_comments"))
        });
    }
    Ok(set.encode_to_vec())
}

/// The services of the contract with an HTTP path: those of the workloads. The edge answers the others.
fn workload_services(pool: &DescriptorPool) -> impl Iterator<Item = ServiceDescriptor> {
    let http = pool.get_extension_by_name("google.api.http");
    pool.services().filter(move |service| {
        let mut methods = service.methods();
        http.as_ref().is_some_and(|http| methods.any(|method| method.options().has_extension(http)))
    })
}

/// What a request says that can be answered as of a block.
const PAST: &str = "    fn at_block(&self) -> Option<u64> {
        self.at_block
    }
    fn chain_id(&self) -> Option<&str> {
        self.chain_id.as_deref()
    }
";

/// One `impl Operation` per unary rpc, one `impl StreamingOperation` per stream, which has no reply message.
fn operations(pool: &DescriptorPool) -> Result<String, std::fmt::Error> {
    let (mut code, mut unary) = (String::new(), Vec::new());
    let within = pool.get_extension_by_name("api.v2.answer_within_ms").expect("declared in proto/");
    for service in workload_services(pool) {
        for method in service.methods() {
            let (operation, reply) = match method.is_server_streaming() {
                true => ("StreamingOperation", String::new()),
                false => ("Operation", format!("    type Reply = v2::{};\n", method.output().name())),
            };
            let within = match method.options().get_extension(&within).as_u32() {
                Some(ms) if ms > 0 => format!("    const ANSWER_WITHIN_MS: Option<u32> = Some({ms});\n"),
                _ => String::new(),
            };
            let past = match method.input().get_field_by_name("at_block") {
                Some(_) => PAST,
                None => "",
            };
            writeln!(
                code,
                "impl {operation} for v2::{input} {{\n{reply}{within}    const WORKLOAD: &'static str = \"{workload}\";\n    const NAME: &'static str = \"{name}\";\n{past}}}",
                input = method.input().name(),
                workload = service.name().to_kebab_case(),
                name = method.name(),
            )?;
            if method.input().get_field_by_name("pagination").is_some() {
                code += &paged(&method).ok_or(std::fmt::Error)?;
            }
            if !method.is_server_streaming() {
                unary.push(method.input().name().to_owned());
            }
        }
    }
    writeln!(
        code,
        "/// Calls a macro with the names of the requests of all operations that have one reply.
#[macro_export]
macro_rules! unary_requests {{ ($call:ident) => {{ $call!({}) }}; }}",
        unary.join(", ")
    )?;
    Ok(code)
}

/// The `impl PagedOperation` of a list, whose reply has either a page with edges, or nodes and the page's information.
fn paged(method: &MethodDescriptor) -> Option<String> {
    let message = |field: &FieldDescriptor| field.kind().as_message().cloned();
    let reply = method.output();
    let listed = reply.fields().find(|field| field.name() != "page_info")?;
    let (node, reply) = match reply.get_field_by_name("page_info") {
        Some(_) => (
            message(&listed)?,
            format!("{}: nodes.into_iter().map(|(node, _)| node).collect(), page_info", listed.name()),
        ),
        None => {
            let page = message(&listed)?;
            let edge = message(&page.get_field_by_name("edges")?)?;
            let edges = format!(
                "nodes.into_iter().map(|(node, cursor)| v2::{} {{ node: Some(node), cursor }}).collect()",
                edge.name()
            );
            let page = format!("v2::{} {{ edges: {edges}, page_info }}", page.name());
            (message(&edge.get_field_by_name("node")?)?, format!("{}: Some({page})", listed.name()))
        }
    };
    Some(format!(
        "impl PagedOperation for v2::{input} {{
    type Node = v2::{node};
    fn pagination(&self) -> Option<&v2::Pagination> {{
        self.pagination.as_ref()
    }}
    fn page(nodes: Vec<(Self::Node, String)>, page_info: v2::PageInfo) -> Self::Reply {{
        let page_info = Some(page_info);
        Self::Reply {{ {reply} }}
    }}
}}
",
        input = method.input().name(),
        node = node.name(),
    ))
}

/// Name and description of each workload: the comment of its service.
fn workloads(pool: &DescriptorPool) -> String {
    let row = |service: ServiceDescriptor| {
        let file = service.parent_file();
        let info = file.file_descriptor_proto().source_code_info.as_ref();
        let mut places = info.into_iter().flat_map(|info| &info.location);
        let comment = places.find(|place| place.path == service.path());
        let lines = comment.and_then(|place| place.leading_comments.as_deref()).unwrap_or_default().lines();
        let text = lines.map(str::trim).collect::<Vec<_>>().join(" ");
        (service.name().to_kebab_case(), text)
    };
    format!("{:?}\n", workload_services(pool).map(row).collect::<Vec<_>>())
}

/// One module per rpc with the numbers of its refusals: those that the rpc names, and those of its
/// parameters' rules (`CANDLE_ID_INVALID`, `PARTY_ID_MISSING`). Each says when it is given.
fn numbers(pool: &DescriptorPool) -> Result<String, Box<dyn Error>> {
    let mut code = String::new();
    for method in workload_services(pool).flat_map(|service| service.methods().collect::<Vec<_>>()) {
        let mut numbers = BTreeMap::new();
        for refusal in refusals(pool, &method)? {
            let text = |field: &str| Some(refusal.get_field_by_name(field)?.as_str()?.to_owned());
            let (name, when) = (text("name").unwrap_or_default(), text("when").unwrap_or_default());
            let number = number(&refusal, "number");
            if name.is_empty() {
                continue;
            }
            let (before, reasons) = numbers.entry(name.clone()).or_insert((number, Vec::new()));
            if *before != number {
                return Err(format!("{}: {name} is both {before} and {number}", method.name()).into());
            }
            reasons.push(format!("{when}."));
        }
        for (name, number, reason) in parameter_numbers(pool, &method)? {
            numbers.insert(name, (number, vec![reason]));
        }
        if numbers.is_empty() {
            continue;
        }
        writeln!(code, "/// {}.", method.name())?;
        writeln!(code, "pub mod {} {{", method.name().to_snake_case())?;
        for (name, (number, reasons)) in numbers {
            for reason in reasons {
                writeln!(code, "    /// - {reason}")?;
            }
            writeln!(code, "    pub const {name}: u32 = {number};")?;
        }
        writeln!(code, "}}")?;
    }
    Ok(code)
}

/// The refusals that an rpc declares.
fn refusals(pool: &DescriptorPool, method: &MethodDescriptor) -> Result<Vec<DynamicMessage>, Box<dyn Error>> {
    let extension = pool.get_extension_by_name("api.v2.operation").ok_or("no option `operation`")?;
    let options = method.options();
    let note = options.get_extension(&extension).as_message().cloned();
    let list = note.and_then(|note| Some(note.get_field_by_name("refusals")?.as_list()?.to_vec()));
    Ok(list.unwrap_or_default().iter().filter_map(|refusal| refusal.as_message().cloned()).collect())
}

/// A constant: name, number, and when the number is given.
type Constant = (String, u32, String);

/// The numbers in the rules of an rpc's own parameters.
fn parameter_numbers(
    pool: &DescriptorPool,
    method: &MethodDescriptor,
) -> Result<Vec<Constant>, Box<dyn Error>> {
    let extension = pool.get_extension_by_name("api.v2.rule").ok_or("no option `rule`")?;
    let mut numbers = Vec::new();
    for field in method.input().fields() {
        let options = field.options();
        let Some(rule) = options.get_extension(&extension).as_message().cloned() else { continue };
        for (kind, reason) in [("missing", "is missing"), ("invalid", "cannot be used")] {
            let number = number(&rule, kind);
            if number != 0 {
                let name = format!("{}_{}", field.name(), kind).to_uppercase();
                numbers.push((name, number, format!("`{}` {reason}.", field.name())));
            }
        }
    }
    Ok(numbers)
}

fn number(message: &DynamicMessage, field: &str) -> u32 {
    message.get_field_by_name(field).and_then(|value| value.as_u32()).unwrap_or_default()
}
