//! Parameters of path and query into the request message.

use std::{borrow::Cow, collections::HashMap};

use mesh_problem::{MALFORMED, Problem};
use prost_reflect::{DynamicMessage, FieldDescriptor, Kind, MessageDescriptor, ReflectMessage, Value};
use proto_msgs::{Contract, Format};

use crate::decode::{
    field_path::{self, FieldPath},
    percent::{NotUtf8, PathField, Text, decode_form},
    preferences::Handling,
    time,
    unknown_names::{self, UnknownNames},
    value,
};

/// The parameter that every operation has beside the fields of its request (J12).
pub(super) const PRETTY: &str = "pretty";

/// The parameters of a query string, percent-decoded, in their order. A value may not be UTF-8.
pub(crate) struct Parameters<'a>(Vec<(Cow<'a, str>, Text<'a>)>);

impl<'a> Parameters<'a> {
    /// Parses a query string.
    ///
    /// # Errors
    /// When a name is not UTF-8.
    pub(crate) fn parse(query: &'a str) -> Result<Self, Problem> {
        let pairs = query.split('&').filter(|pair| !pair.is_empty());
        let parse = |pair: &'a str| {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            let name = decode_form(name).map_err(|NotUtf8(name)| {
                let problem = Problem::invalid(MALFORMED, "the name of a parameter is not UTF-8");
                problem.with_inner(field_path::quote(&name))
            })?;
            Ok((name, decode_form(value)))
        };
        pairs.map(parse).collect::<Result<_, _>>().map(Self)
    }

    /// Adds the unknown parameters of an operation without parameters.
    pub(super) fn add_unknown(&self, unknown: &mut UnknownNames) {
        self.0.iter().filter(|(name, _)| name != PRETTY).for_each(|(name, _)| unknown.push(name));
    }

    /// The values of the only parameter that is known, and the names of the others (J11).
    ///
    /// # Errors
    /// When there is `atBlock`, or with strict handling any other.
    pub(crate) fn only(&self, known: &str, handling: Handling) -> Result<(Vec<&str>, UnknownNames), Problem> {
        let mut unknown = UnknownNames::default();
        self.0
            .iter()
            .filter(|(name, _)| name != known && name != PRETTY)
            .for_each(|(name, _)| unknown.push(name));
        if unknown.has_at_block() {
            return Err(unknown_names::watch_at_block());
        }
        if handling == Handling::Strict && !unknown.is_empty() {
            return Err(unknown.refusal("a parameter is unknown", &[known.to_owned()]));
        }
        let values = self.0.iter().filter(|(name, text)| name == known && !is_empty(text));
        let not_utf8 = |NotUtf8(text): &NotUtf8| {
            let problem = Problem::invalid(MALFORMED, format!("{known} is not UTF-8"));
            problem.with_inner(field_path::quote(text))
        };
        let values = values.map(|(_, text)| text.as_deref().map_err(not_utf8));
        Ok((values.collect::<Result<_, _>>()?, unknown))
    }

    /// Whether the answer is to be indented: `?pretty`, `?pretty=true` (J12).
    ///
    /// # Errors
    /// When `pretty` is malformed or given twice.
    pub(crate) fn pretty(&self) -> Result<bool, Problem> {
        let mut given = self.0.iter().filter(|(name, _)| name == PRETTY).map(|(_, text)| text);
        let Some(text) = given.next() else { return Ok(false) };
        if given.next().is_some() {
            return Err(given_twice(PRETTY));
        }
        match text.as_deref().unwrap_or_else(|NotUtf8(text)| text) {
            "" | "true" | "1" => Ok(true),
            "false" | "0" => Ok(false),
            other => Err(Problem::invalid(MALFORMED, "pretty must be true, false, 1 or 0")
                .with_inner(field_path::quote(other))),
        }
    }
}

/// Fills the message. All unknown parameters are added to `unknown`, also when there is an error.
///
/// # Errors
/// At the first parameter that is malformed or given twice, with strict handling also at a time that is
/// too small to be in nanoseconds.
pub(super) fn fill(
    message: &mut DynamicMessage,
    path: &[PathField],
    parameters: &Parameters<'_>,
    handling: Handling,
    unknown: &mut UnknownNames,
) -> Result<(), Problem> {
    let descriptor = message.descriptor();
    let groups = group(&descriptor, path, parameters, unknown);
    for (name, text) in path.iter().filter(|(_, text)| !is_empty(text)) {
        let path: FieldPath = descriptor.get_field_by_name(name).into_iter().collect();
        let value = parse_value(&path, text, handling)?;
        set(message, &path, value);
    }
    for (path, texts) in groups? {
        let Some(field) = path.last() else { continue };
        if field.is_list() {
            field_path::check_length(&path, texts.len())?;
            let values: Result<_, _> = texts.iter().map(|text| parse_value(&path, text, handling)).collect();
            set(message, &path, Value::List(values?));
        } else if let [text] = texts.as_slice() {
            let value = parse_value(&path, text, handling)?;
            set(message, &path, value);
        }
    }
    Ok(())
}

/// Whether a text is present and empty.
fn is_empty(text: &Text<'_>) -> bool {
    text.as_ref().is_ok_and(|text| text.is_empty())
}

/// The texts of each known parameter, in order of appearance. Empty texts are dropped: an empty optional
/// parameter counts as absent. A singular parameter given twice, in either spelling, is refused. A field of
/// the path is no parameter of the query.
fn group<'a>(
    descriptor: &MessageDescriptor,
    path_fields: &[PathField],
    parameters: &'a Parameters<'_>,
    unknown: &mut UnknownNames,
) -> Result<Vec<(FieldPath, Vec<&'a Text<'a>>)>, Problem> {
    let mut groups: Vec<(FieldPath, Vec<&Text<'_>>)> = Vec::new();
    let mut indexes: HashMap<Vec<u32>, usize> = HashMap::new();
    let mut twice = None;
    for (name, text) in &parameters.0 {
        let is_of_query = |path: &FieldPath| match path.as_slice() {
            [field] => path_fields.iter().all(|(name, _)| *name != field.name()),
            _ => true,
        };
        let Some(path) = find_field(descriptor, name).filter(is_of_query) else {
            if name != PRETTY {
                unknown.push(name);
            }
            continue;
        };
        let numbers = path.iter().map(FieldDescriptor::number).collect();
        let is_new = !indexes.contains_key(&numbers);
        let index = *indexes.entry(numbers).or_insert(groups.len());
        if is_new {
            groups.push((path, Vec::new()));
        } else if !groups[index].0.last().is_some_and(FieldDescriptor::is_list) {
            twice.get_or_insert(index);
        }
        if !is_empty(text) {
            groups[index].1.push(text);
        }
    }
    if let Some(index) = twice {
        return Err(given_twice(&field_path::path_text(&groups[index].0)));
    }
    groups.retain(|(_, texts)| !texts.is_empty());
    Ok(groups)
}

/// The field of a dotted name in either spelling (J2), if there is one.
fn find_field(descriptor: &MessageDescriptor, name: &str) -> Option<FieldPath> {
    let mut path = FieldPath::new();
    let mut inside = Some(descriptor.clone());
    for part in name.split('.') {
        let message = inside?;
        let field = message.get_field_by_json_name(part).or_else(|| message.get_field_by_name(part))?;
        inside = match field.kind() {
            Kind::Message(message) if !field.is_list() => Some(message),
            _ => None,
        };
        path.push(field);
    }
    // A sub-message itself has no text form.
    (inside.is_none()).then_some(path)
}

fn parse_value(path: &[FieldDescriptor], text: &Text<'_>, handling: Handling) -> Result<Value, Problem> {
    let Some(field) = path.last() else { return Err(Problem::invalid(MALFORMED, "no such parameter")) };
    let text = text.as_deref().map_err(|NotUtf8(text)| field_path::malformed(path, "UTF-8", text))?;
    let rule = Contract::get().rule(field);
    let parsed = match rule.format {
        Format::Time if handling == Handling::Strict && time::is_too_early(text) => {
            return Err(field_path::too_early(path, text));
        }
        Format::Time => time::parse(text).map(Value::I64),
        _ => value::parse(&field.kind(), text),
    };
    let expected = match parsed {
        Ok(parsed) => match value::check(parsed, rule) {
            Ok(checked) => return Ok(checked),
            Err(expected) => expected,
        },
        Err(expected) => expected.to_owned(),
    };
    Err(field_path::malformed(path, &expected, text))
}

fn given_twice(name: &str) -> Problem {
    Problem::invalid(MALFORMED, "a parameter is given twice").with_inner(name)
}

fn set(message: &mut DynamicMessage, path: &[FieldDescriptor], value: Value) {
    match path {
        [] => {}
        [field] => message.set_field(field, value),
        [field, rest @ ..] => {
            if let Some(inner) = message.get_field_mut(field).as_message_mut() {
                set(inner, rest, value);
            }
        }
    }
}
