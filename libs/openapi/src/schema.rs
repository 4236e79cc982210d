//! Messages and enums as JSON schemas, by the contract's JSON rules (J2-J10).

use std::{collections::BTreeSet, sync::LazyLock};

use heck::ToShoutySnakeCase;
use prost_reflect::{EnumDescriptor, FieldDescriptor, Kind, MessageDescriptor, OneofDescriptor};
use proto_msgs::{CANDLE_INTERVALS, Contract, Format, MAX_LIST_LENGTH};

use crate::{
    comments::Comments,
    json::{Json, object},
    notes,
};

const PACKAGE: &str = "api.v2.";

/// The text of an integer. How many digits there may be is said by `maxLength`: a comma within a pattern ends it for the
/// generators that write patterns into Go's struct tags.
const SIGNED: &str = "^(0|-?[1-9][0-9]*)$";
const NOT_NEGATIVE: &str = "^(0|[1-9][0-9]*)$";
const HEIGHT: &str = "^[1-9][0-9]*$";
/// Characters of the longest `int64` that is not negative, and of the longest `int64` and `uint64`.
const INT64_DIGITS: u32 = 19;
const LONG_CHARS: u32 = 20;
/// Nanoseconds, or a date and a time of day.
const TIME: &str = "^(0|[1-9][0-9]*|[0-9]{4}-[0-9]{2}-[0-9]{2}[Tt ][0-9:.]+([Zz]|[+-][0-9:]+))$";

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

    /// The schema of a message that is a `oneof`: an object that has one of its members. Not JSON schema's `oneOf`,
    /// whose arms have no names: generators invent some, and find out which arm it is by trying all of them.
    fn one_of(&mut self, schema: Json, one_of: &OneofDescriptor, usage: Usage) -> Json {
        let mut properties = object! {};
        for field in one_of.fields() {
            properties.put(field.json_name(), self.field(&field, usage));
        }
        let is_there = !notes::may_be_empty(one_of);
        let only = one_of.fields().next().filter(|_| is_there && one_of.fields().len() == 1);
        let several = one_of.fields().len() > 1;
        schema
            .with("type", "object")
            .with("properties", properties)
            .with_some("required", only.map(|field| vec![field.json_name().to_owned()]))
            .with_some("minProperties", (is_there && several).then_some(1_u32))
            .with_some("maxProperties", several.then_some(1_u32))
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
            Usage::RequestBody if matches!(field.kind(), Kind::Int64 | Kind::Uint64) => {
                schema.with("description", format!("{} A number is taken, too.", self.comments.of(field)))
            }
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
            Kind::Int64 if rule.format == Format::NotNegative => long("int64", NOT_NEGATIVE, INT64_DIGITS),
            Kind::Int64 => long("int64", SIGNED, LONG_CHARS),
            Kind::Uint64 if rule.format == Format::Height => long("uint64", HEIGHT, LONG_CHARS),
            Kind::Uint64 => long("uint64", NOT_NEGATIVE, LONG_CHARS),
            Kind::Bytes => object! { "type" => "string", "contentEncoding" => "base64" },
            Kind::Enum(names) => self.enumeration(&names),
            Kind::Message(message) => self.message(&message, usage),
            _ => object! { "type" => "string" }
                .with_some("pattern", pattern(rule.format, usage))
                .with_some("maxLength", rule.max_chars.or(max_chars(rule.format))),
        }
    }

    /// A reference to an enum's schema, without its unspecified value where requests are refused for that. No enum of
    /// requests is used both ways (a test below), so that one name is enough.
    fn enumeration(&mut self, names: &EnumDescriptor) -> Json {
        let name = short(names.full_name());
        if !self.is_named(&name) {
            let is_needed = NEEDED_ENUMS.contains(names.full_name());
            let schema = self.enumeration_of(names, &name, |number| !is_needed || number != 0);
            self.named.push((name.clone(), schema));
        }
        reference(&name)
    }

    fn enumeration_of(&self, names: &EnumDescriptor, title: &str, includes: impl Fn(i32) -> bool) -> Json {
        let mut description = self.comments.of(names).to_owned();
        let (mut listed, mut constants) = (Vec::new(), Vec::new());
        description.push('\n');
        for value in names.values().filter(|value| includes(value.number())) {
            description.extend(["\n- `", value.name(), "`: ", self.comments.of(&value)]);
            listed.push(value.name().to_owned());
            constants.push(constant(title, value.name()));
        }
        object! {
            "description" => description, "type" => "string", "enum" => listed, "x-enum-varnames" => constants,
        }
    }

    fn is_named(&self, name: &str) -> bool {
        self.named.iter().any(|(named, _)| named == name)
    }
}

/// The enums that a request must have.
static NEEDED_ENUMS: LazyLock<BTreeSet<String>> = LazyLock::new(|| {
    let contract = Contract::get();
    let fields = contract.pool().all_messages().flat_map(|message| message.fields().collect::<Vec<_>>());
    let needed = fields.filter(|field| contract.rule(field).missing.is_some());
    let name = |field: FieldDescriptor| Some(field.kind().as_enum()?.full_name().to_owned());
    needed.filter_map(name).collect()
});

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

/// The name of an enum's value in a program that declares the values of all enums side by side (Go): it begins with the
/// enum's name. `TradeType` and `TYPE_DEFAULT` -> `TRADE_TYPE_DEFAULT`. On the wire stays `TYPE_DEFAULT`.
fn constant(enumeration: &str, value: &str) -> String {
    let name = enumeration.to_shouty_snake_case();
    let mut words: Vec<&str> = name.split('_').collect();
    // The words with which the enum's name ends and the value's begins stand once.
    let begins = |words: &[&str]| value.starts_with(&format!("{}_", words.join("_")));
    let common = (0..words.len()).find(|from| words.get(*from..).is_some_and(begins)).unwrap_or(words.len());
    words.truncate(common);
    words.push(value);
    words.join("_")
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

/// The schema of a 64-bit integer: text. That the body of a request may have a number instead (J3) is said in words,
/// because a schema with two types is one that generators of clients refuse.
fn long(format: &str, pattern: &str, max_chars: u32) -> Json {
    object! { "type" => "string", "format" => format, "pattern" => pattern, "maxLength" => max_chars }
}

/// The schema of a time in a request: nanoseconds, or RFC 3339 (J8). One text for both, for the same reason.
fn time() -> Json {
    object! { "type" => "string", "pattern" => TIME }
}

/// The most characters of a format whose pattern does not say so.
fn max_chars(format: Format) -> Option<usize> {
    (format == Format::Asset).then_some(64)
}

/// The format of a text as a regular expression. Requests may have hex in any case; responses have lower
/// case.
fn pattern(format: Format, usage: Usage) -> Option<String> {
    let hex = if usage == Usage::Response { "[0-9a-f]" } else { "[0-9a-fA-F]" };
    Some(match format {
        Format::Any | Format::NotNegative | Format::Time | Format::Height => return None,
        Format::Hex64 => format!("^{hex}{{64}}$"),
        Format::Hex128 => format!("^{hex}{{128}}$"),
        Format::Party | Format::PartyOrZeros => format!("^({hex}{{64}}|network)$"),
        Format::Asset => "^[A-Za-z0-9_-]+$".to_owned(),
        Format::CandleId => format!("^trades_candle_({})_{hex}{{64}}$", CANDLE_INTERVALS.join("|")),
        Format::Decimal => SIGNED.to_owned(),
        Format::Address => "^0x[0-9a-fA-F]{40}$".to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn constants_begin_with_the_name_of_their_enum() {
        assert_eq!(constant("TradeType", "TYPE_DEFAULT"), "TRADE_TYPE_DEFAULT");
        assert_eq!(
            constant("MarketTradingMode", "TRADING_MODE_NO_TRADING"),
            "MARKET_TRADING_MODE_NO_TRADING"
        );
        assert_eq!(constant("Side", "SIDE_BUY"), "SIDE_BUY");
        assert_eq!(constant("GetTransactionReplyStatus", "PENDING"), "GET_TRANSACTION_REPLY_STATUS_PENDING");
        assert_eq!(constant("TradeType", "TYPEFACE"), "TRADE_TYPE_TYPEFACE");
    }

    #[test]
    fn an_enum_is_needed_in_every_request_or_in_none() {
        let contract = Contract::get();
        let (mut needed, mut seen) = (BTreeMap::new(), BTreeSet::new());
        let mut messages: Vec<_> = contract.operations().iter().map(|row| row.request.clone()).collect();
        while let Some(message) = messages.pop() {
            if !message.full_name().starts_with(PACKAGE) || !seen.insert(message.full_name().to_owned()) {
                continue;
            }
            for field in message.fields() {
                match field.kind() {
                    Kind::Message(inner) => messages.push(inner),
                    Kind::Enum(names) => {
                        let is_needed = contract.rule(&field).missing.is_some();
                        let earlier = needed.insert(names.full_name().to_owned(), is_needed);
                        assert!(earlier.is_none_or(|earlier| earlier == is_needed), "{}", field.full_name());
                    }
                    _ => {}
                }
            }
        }
        assert!(needed.len() > 5, "only {needed:?} were looked at");
    }
}
