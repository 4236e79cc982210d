//! Messages and enums as JSON schemas, by the contract's JSON rules (J2-J10).

use prost_reflect::{EnumDescriptor, FieldDescriptor, Kind, MessageDescriptor, OneofDescriptor};
use proto_msgs::{CANDLE_INTERVALS, Contract, Format, MAX_LIST_LENGTH};

use crate::{
    comments::Comments,
    json::{Json, object},
    notes,
};

const PACKAGE: &str = "api.v2.";

/// The text of an `int64`.
const INT64: &str = "^(0|-?[1-9][0-9]{0,18})$";

/// Where a value is used. Requests accept more forms than responses have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Usage {
    /// In a parameter of path or query, as text.
    Parameter,
    /// In the JSON body of a request.
    RequestBody,
    /// In a response.
    Response,
}

/// The schemas that have a name, in the order in which they were first needed.
#[derive(Debug)]
pub(crate) struct Schemas {
    pub(crate) comments: Comments,
    named: Vec<(String, Json)>,
}

impl Schemas {
    /// No schemas yet.
    pub(crate) fn new(comments: Comments) -> Self {
        Self { comments, named: Vec::new() }
    }

    /// All of them, as `components.schemas`.
    pub(crate) fn into_named(self) -> Json {
        Json::Object(self.named)
    }

    /// Adds a named schema that is not one of the contract's messages.
    pub(crate) fn name(&mut self, name: &str, schema: Json) {
        self.named.push((name.to_owned(), schema));
    }

    /// A reference to a message's schema.
    pub(crate) fn message(&mut self, message: &MessageDescriptor, usage: Usage) -> Json {
        let name = short(message.full_name());
        if !self.is_named(&name) {
            let place = self.named.len();
            self.named.push((name.clone(), object! {}));
            self.named[place].1 = self.message_itself(message, usage);
        }
        reference(&name)
    }

    /// A reference to the schema of a message that no operation has.
    pub(crate) fn message_named(&mut self, name: &str, usage: Usage) -> Json {
        match described(name) {
            Some(message) => self.message(&message, usage),
            None => reference(name),
        }
    }

    /// The schema of a message.
    pub(crate) fn message_itself(&mut self, message: &MessageDescriptor, usage: Usage) -> Json {
        let schema = object! { "description" => self.comments.of(message) };
        let arms: Vec<OneofDescriptor> =
            message.oneofs().filter(|one_of| one_of.fields().len() > 0 && !is_presence(one_of)).collect();
        if let [one_of] = arms.as_slice()
            && one_of.fields().len() == message.fields().len()
        {
            return self.one_of(schema, one_of, usage);
        }
        let (mut properties, mut required) = (object! {}, Vec::new());
        for field in message.fields().filter(|field| !is_ruled_out(field)) {
            properties.put(field.json_name(), self.field(&field, usage));
            let is_there = match usage {
                Usage::Response => field.containing_oneof().is_none(),
                Usage::Parameter | Usage::RequestBody => notes::of_field(&field).required,
            };
            if is_there {
                required.push(field.json_name().to_owned());
            }
        }
        schema
            .with("type", "object")
            .with("properties", properties)
            .with_some("required", (!required.is_empty()).then_some(required))
    }

    /// The schema of a message with a `oneof`.
    fn one_of(&mut self, schema: Json, one_of: &OneofDescriptor, usage: Usage) -> Json {
        let may_be_empty = notes::may_be_empty(one_of);
        let mut arms = Vec::new();
        for field in one_of.fields() {
            let properties = object! { field.json_name() => self.field(&field, usage) };
            arms.push(object! { "type" => "object", "properties" => properties }.with_some(
                "required",
                (!may_be_empty || one_of.fields().len() > 1).then(|| vec![field.json_name()]),
            ));
        }
        match (arms.pop(), arms.is_empty(), schema) {
            (Some(Json::Object(only)), true, Json::Object(mut schema)) => {
                schema.extend(only);
                Json::Object(schema)
            }
            (last, _, schema) => {
                arms.extend(last);
                if may_be_empty {
                    arms.push(object! { "type" => "object", "maxProperties" => 0_u32 });
                }
                schema.with("oneOf", arms)
            }
        }
    }

    /// The schema of a field with its comment.
    pub(crate) fn field(&mut self, field: &FieldDescriptor, usage: Usage) -> Json {
        let value = self.value(field, usage);
        let schema = match field.is_list() {
            true => object! { "type" => "array", "items" => value }
                .with_some("maxItems", (usage == Usage::Parameter).then_some(MAX_LIST_LENGTH)),
            false => value,
        };
        match usage {
            // The description of a parameter is outside its schema.
            Usage::Parameter => schema,
            Usage::RequestBody | Usage::Response => schema.with("description", self.comments.of(field)),
        }
    }

    fn value(&mut self, field: &FieldDescriptor, usage: Usage) -> Json {
        let rule = Contract::get().rule(field);
        let least = notes::of_field(field).least;
        match field.kind() {
            Kind::Bool => object! { "type" => "boolean" },
            Kind::Int32 => object! { "type" => "integer", "format" => "int32" }
                .with_some("minimum", (least > 0).then_some(least))
                .with("maximum", i32::MAX.unsigned_abs()),
            Kind::Uint32 => object! {
                "type" => "integer", "format" => "uint32", "minimum" => least, "maximum" => u32::MAX,
            },
            Kind::Int64 if rule.format == Format::Time && usage != Usage::Response => time(),
            Kind::Int64 => {
                let is_negative = rule.format != Format::NotNegative;
                long("int64", if is_negative { INT64 } else { "^(0|[1-9][0-9]{0,18})$" }, usage)
            }
            Kind::Uint64 => long("uint64", "^(0|[1-9][0-9]{0,19})$", usage),
            Kind::Bytes => object! { "type" => "string", "contentEncoding" => "base64" },
            Kind::Enum(names) if rule.missing.is_some() => self.needed(&names),
            Kind::Enum(names) => self.enumeration(&names),
            Kind::Message(message) => self.message(&message, usage),
            _ => object! { "type" => "string" }
                .with_some("pattern", pattern(rule.format, usage))
                .with_some("maxLength", rule.max_chars),
        }
    }

    /// A reference to an enum's schema.
    fn enumeration(&mut self, names: &EnumDescriptor) -> Json {
        let name = short(names.full_name());
        if !self.is_named(&name) {
            let schema = self.enumeration_of(names, |_| true);
            self.named.push((name.clone(), schema));
        }
        reference(&name)
    }

    /// The schema of an enum without its unspecified value.
    fn needed(&self, names: &EnumDescriptor) -> Json {
        self.enumeration_of(names, |number| number != 0)
    }

    fn enumeration_of(&self, names: &EnumDescriptor, includes: impl Fn(i32) -> bool) -> Json {
        let mut description = self.comments.of(names).to_owned();
        let mut listed = Vec::new();
        description.push('\n');
        for value in names.values().filter(|value| includes(value.number())) {
            description.extend(["\n- `", value.name(), "`: ", self.comments.of(&value)]);
            listed.push(value.name().to_owned());
        }
        object! { "description" => description, "type" => "string", "enum" => listed }
    }

    fn is_named(&self, name: &str) -> bool {
        self.named.iter().any(|(named, _)| named == name)
    }
}

/// A message of the contract.
pub(crate) fn described(name: &str) -> Option<MessageDescriptor> {
    Contract::get().pool().get_message_by_name(&format!("{PACKAGE}{name}"))
}

/// A reference to a named schema.
pub(crate) fn reference(name: &str) -> Json {
    object! { "$ref" => format!("#/components/schemas/{name}") }
}

/// `api.v2.Withdrawal.Status` -> `WithdrawalStatus`.
fn short(full_name: &str) -> String {
    full_name.strip_prefix(PACKAGE).unwrap_or(full_name).replace('.', "")
}

/// Whether a `oneof` only represents an optional field.
fn is_presence(one_of: &OneofDescriptor) -> bool {
    one_of.fields().any(|field| field.field_descriptor_proto().proto3_optional())
}

/// Whether another field of its `oneof` is required, so that this one is always refused.
fn is_ruled_out(field: &FieldDescriptor) -> bool {
    let one_of = field.containing_oneof().filter(|one_of| !is_presence(one_of));
    one_of.is_some_and(|one_of| {
        one_of.fields().any(|other| other.number() != field.number() && notes::of_field(&other).required)
    })
}

/// The schema of a 64-bit integer: text; in the body of a request a number is accepted, too (J3).
fn long(format: &str, pattern: &str, usage: Usage) -> Json {
    match usage {
        Usage::RequestBody => {
            object! { "type" => vec!["string", "integer"], "format" => format, "pattern" => pattern }
        }
        Usage::Parameter | Usage::Response => {
            object! { "type" => "string", "format" => format, "pattern" => pattern }
        }
    }
}

/// The schema of a time in a request: nanoseconds, or RFC 3339 (J8).
fn time() -> Json {
    let nanoseconds = object! { "format" => "int64", "pattern" => INT64 };
    let spelled = object! { "format" => "date-time" };
    object! { "type" => "string", "anyOf" => vec![nanoseconds, spelled] }
}

/// The format of a text as a regular expression. Requests may have hex in any case; responses have lower
/// case.
fn pattern(format: Format, usage: Usage) -> Option<String> {
    let hex = if usage == Usage::Response { "[0-9a-f]" } else { "[0-9a-fA-F]" };
    Some(match format {
        Format::Any | Format::NotNegative | Format::Time => return None,
        Format::Hex64 => format!("^{hex}{{64}}$"),
        Format::Hex128 => format!("^{hex}{{128}}$"),
        Format::Party | Format::PartyOrZeros => format!("^({hex}{{64}}|network)$"),
        Format::Asset => "^[A-Za-z0-9_-]{1,64}$".to_owned(),
        Format::CandleId => format!("^trades_candle_({})_{hex}{{64}}$", CANDLE_INTERVALS.join("|")),
        Format::Decimal => "^(0|-?[1-9][0-9]*)$".to_owned(),
        Format::Address => "^0x[0-9a-fA-F]{40}$".to_owned(),
    })
}
