//! A GET request, read by the contract: the operation, the values of its parameters, and the page.

use form_urlencoded::parse;
use prost_reflect::{FieldDescriptor, Kind, MessageDescriptor};
use proto_msgs::{Contract, Method, OperationInfo, Segment, v2::Pagination};
use serde_json::{Map, Value, json};

/// A request for an operation.
#[derive(Debug, Clone)]
pub struct Question {
    /// The operation.
    pub operation: &'static OperationInfo,
    /// The given parameters by their dotted names: texts, and lists of texts.
    pub(crate) parameters: Value,
    /// The page, for a list.
    pub pagination: Pagination,
}

/// A scalar parameter of an operation.
#[derive(Debug, Clone)]
pub struct Leaf {
    /// Its dotted name, as in a query.
    pub name: String,
    /// Its declaration.
    pub field: FieldDescriptor,
}

/// The scalar parameters of a request message.
pub fn leaves(message: &MessageDescriptor) -> Vec<Leaf> {
    let below = |field: FieldDescriptor| match field.kind() {
        Kind::Message(inner) => {
            let named = |leaf: Leaf| Leaf { name: format!("{}.{}", field.json_name(), leaf.name), ..leaf };
            leaves(&inner).into_iter().map(named).collect::<Vec<_>>()
        }
        _ => vec![Leaf { name: field.json_name().to_owned(), field }],
    };
    message.fields().flat_map(below).collect()
}

impl Question {
    /// Reads a path with its query; `None` when it belongs to no operation. Parameters without a meaning are
    /// ignored.
    pub fn read(target: &str) -> Option<Self> {
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        let (operation, mut given) = operation_of(path)?;
        given.extend(parse(query.as_bytes()).map(|(name, text)| (camel_case(&name), text.into_owned())));
        let (leaves, mut parameters) = (leaves(&operation.request), Map::new());
        let mut pagination = Pagination::default();
        for (name, text) in given.into_iter().filter(|(_, text)| !text.is_empty()) {
            if let Some(name) = name.strip_prefix("pagination.") {
                paginate(&mut pagination, name, text);
            } else if let Some(leaf) = leaves.iter().find(|leaf| leaf.name == name)
                && let Some(value) = canonical(&leaf.field, &text)
            {
                match parameters.get_mut(&name).and_then(Value::as_array_mut) {
                    Some(values) => values.push(value),
                    None if leaf.field.is_list() => drop(parameters.insert(name, json!([value]))),
                    None => drop(parameters.insert(name, value)),
                }
            }
        }
        Some(Self { operation, parameters: Value::Object(parameters), pagination })
    }

    /// Whether the answer has pages.
    pub fn is_list(&self) -> bool {
        self.operation.request.get_field_by_name("pagination").is_some()
    }
}

/// The operation of a path, and the fields in the path; `None` when it belongs to no operation.
pub fn operation_of(path: &str) -> Option<(&'static OperationInfo, Vec<(String, String)>)> {
    let segments: Vec<&str> = path.strip_prefix('/')?.split('/').collect();
    let mut operations = Contract::get().operations().iter().filter(|row| row.method == Method::Get);
    operations.find_map(|row| Some((row, path_fields(row, &segments)?)))
}

/// The fields in a path of this operation; `None` when it is a path of another one.
fn path_fields(operation: &OperationInfo, segments: &[&str]) -> Option<Vec<(String, String)>> {
    let mut fields = Vec::new();
    for (expected, given) in operation.path.iter().zip(segments) {
        match expected {
            Segment::Fixed(text) if text == given => {}
            Segment::Fixed(_) => return None,
            Segment::Field(name) => {
                let field = operation.request.get_field_by_name(name)?;
                fields.push((field.json_name().to_owned(), (*given).to_owned()));
            }
        }
    }
    (operation.path.len() == segments.len()).then_some(fields)
}

/// `date_range.start_timestamp` -> `dateRange.startTimestamp`: names are accepted in both forms.
fn camel_case(name: &str) -> String {
    let mut words = name.split('_');
    let first = words.next().unwrap_or_default().to_owned();
    words.fold(first, |name, word| {
        name + &word[..1.min(word.len())].to_uppercase() + word.get(1..).unwrap_or_default()
    })
}

fn paginate(pagination: &mut Pagination, name: &str, text: String) {
    match name {
        "first" => pagination.first = text.parse().ok(),
        "last" => pagination.last = text.parse().ok(),
        "after" => pagination.after = Some(text),
        "before" => pagination.before = Some(text),
        "newestFirst" => pagination.newest_first = Some(text == "true" || text == "1"),
        _ => {}
    }
}

/// A value in the form of the store: ids in lower case, enums by name. `None` for an enum's 0, which is no
/// filter.
fn canonical(field: &FieldDescriptor, text: &str) -> Option<Value> {
    if let Kind::Enum(names) = field.kind() {
        let named = names.get_value_by_name(text).or_else(|| names.get_value(text.parse().ok()?))?;
        return (named.number() != 0).then(|| json!(named.name()));
    }
    if field.kind() == Kind::Bool {
        return Some(json!(matches!(text, "true" | "1")));
    }
    let is_id = text.len() == 64 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    // No stored text contains NUL, nor the character that stands for it here.
    Some(json!(if is_id { text.to_lowercase() } else { text.replace('\0', "\u{fffd}") }))
}
