//! `metadata.json` (H3): the description of a segment. The SHA-256 of its bytes is the segment's id.

use serde::{Deserialize, Serialize};

use crate::{digest::Digest, name::MAX_CHAIN_ID_BYTES};

/// The member's name in a segment file.
pub(crate) const NAME: &str = "metadata.json";
/// The longest text that is read.
pub(crate) const MAX_BYTES: u64 = 1 << 20;
/// The only format there is.
pub(crate) const FORMAT: u32 = 1;

const MAX_MEMBERS: usize = 256;

/// The description of a segment; the fields are in the order of the JSON.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Metadata {
    /// Always 1.
    pub format_version: u32,
    /// The chain's id, unchanged.
    pub chain_id: String,
    /// Schema version (H8).
    pub database_version: u32,
    /// First height.
    pub height_from: u64,
    /// Last height.
    pub height_to: u64,
    /// Time of the first block, nanoseconds since 1970.
    #[serde(with = "nanoseconds")]
    pub block_time_from: i64,
    /// Time of the last block, nanoseconds since 1970.
    #[serde(with = "nanoseconds")]
    pub block_time_to: i64,
    /// Id of the segment before, `None` for the first.
    #[serde(with = "previous")]
    pub previous_history_segment_id: Option<Digest>,
    /// The CSV members in their order in the file.
    pub members: Vec<MemberMetadata>,
}

/// The description of a CSV member.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MemberMetadata {
    /// `history/<table>.csv` or `currentstate/<table>.csv`.
    pub name: String,
    /// The header record's names.
    pub columns: Vec<String>,
    /// Number of rows, without the header.
    pub rows: u64,
    /// Length of the plain text, header included.
    pub bytes: u64,
    /// SHA-256 of the plain text.
    pub sha256: Digest,
}

impl Metadata {
    /// Reads and checks the text of a `metadata.json`.
    ///
    /// # Errors
    ///
    /// Describes the mistake in it.
    pub fn read(text: &[u8]) -> Result<Metadata, String> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Version {
            format_version: u32,
        }
        let Version { format_version } =
            serde_json::from_slice(text).map_err(|error| format!("{NAME}: {error}"))?;
        if format_version != FORMAT {
            return Err(format!("{NAME}: format version {format_version} is not known"));
        }
        let metadata: Metadata = serde_json::from_slice(text).map_err(|error| format!("{NAME}: {error}"))?;
        metadata.check().map_err(|what| format!("{NAME}: {what}"))?;
        Ok(metadata)
    }

    pub(crate) fn check(&self) -> Result<(), String> {
        if self.chain_id.is_empty() || self.chain_id.len() > MAX_CHAIN_ID_BYTES {
            return Err(format!("a chain id has 1 to {MAX_CHAIN_ID_BYTES} bytes"));
        }
        if self.height_from > self.height_to || i64::try_from(self.height_to).is_err() {
            return Err(format!("heights {} to {} are no span", self.height_from, self.height_to));
        }
        if self.block_time_from > self.block_time_to {
            return Err("the last block is older than the first".to_owned());
        }
        if self.members.len() > MAX_MEMBERS {
            return Err(format!("more than {MAX_MEMBERS} members"));
        }
        let mut before = None;
        for member in &self.members {
            let order = member_order(&member.name)
                .ok_or_else(|| format!("{:?} is not the name of a member", member.name))?;
            if before.replace(order) >= Some(order) {
                return Err(format!("{} is out of order", member.name));
            }
            if member.columns.is_empty() || member.columns.iter().any(String::is_empty) {
                return Err(format!("{} has a column without a name", member.name));
            }
            if member.bytes == 0 || member.rows >= member.bytes {
                return Err(format!("{} has more rows than bytes", member.name));
            }
        }
        Ok(())
    }
}

/// The sort key of members in a file (H2): history first, then current state, each by table name.
pub(crate) fn member_order(name: &str) -> Option<(bool, &str)> {
    let (current, table) = match name.strip_prefix("history/") {
        Some(table) => (false, table),
        None => (true, name.strip_prefix("currentstate/")?),
    };
    let table = table.strip_suffix(".csv")?;
    let plain = table.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_');
    (plain && !table.is_empty() && table.len() <= 64).then_some((current, table))
}

mod nanoseconds {
    use serde::{Deserialize, Deserializer, Serializer, de::Error};

    pub(super) fn serialize<S: Serializer>(time: &i64, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(time)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<i64, D::Error> {
        let text = String::deserialize(deserializer)?;
        let time = text.parse().ok().filter(|time: &i64| time.to_string() == text);
        time.ok_or_else(|| D::Error::custom(format_args!("{text:?} are no nanoseconds")))
    }
}

mod previous {
    use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error};

    use crate::digest::Digest;

    pub(super) fn serialize<S: Serializer>(id: &Option<Digest>, serializer: S) -> Result<S::Ok, S::Error> {
        id.map(|id| id.to_string()).unwrap_or_default().serialize(serializer)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Option<Digest>, D::Error> {
        let text = String::deserialize(deserializer)?;
        let id = || Digest::parse(&text).ok_or_else(|| D::Error::custom("no segment id"));
        if text.is_empty() { Ok(None) } else { id().map(Some) }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) fn metadata() -> Metadata {
        let member = |name: &str, rows, bytes| MemberMetadata {
            name: name.to_owned(),
            columns: vec!["id".to_owned(), "block_time".to_owned()],
            rows,
            bytes,
            sha256: Digest::of(name.as_bytes()),
        };
        Metadata {
            format_version: 1,
            chain_id: "mesh/é".to_owned(),
            database_version: 2,
            height_from: 1,
            height_to: 1000,
            block_time_from: 1_700_000_000_000_000_000,
            block_time_to: 1_700_000_999_000_000_000,
            previous_history_segment_id: None,
            members: vec![
                member("history/orders.csv", 3, 60),
                member("history/trades.csv", 0, 14),
                member("currentstate/accounts.csv", 1, 30),
            ],
        }
    }

    #[test]
    fn the_json_is_the_contracts() {
        let mut metadata = metadata();
        metadata.members.truncate(1);
        let text = serde_json::to_string(&metadata).unwrap();
        let sha256 = Digest::of(b"history/orders.csv");
        assert_eq!(
            text,
            format!(
                "{{\"formatVersion\":1,\"chainId\":\"mesh/é\",\"databaseVersion\":2,\"heightFrom\":1,\"heightTo\":1000,\
                 \"blockTimeFrom\":\"1700000000000000000\",\"blockTimeTo\":\"1700000999000000000\",\
                 \"previousHistorySegmentId\":\"\",\"members\":[{{\"name\":\"history/orders.csv\",\
                 \"columns\":[\"id\",\"block_time\"],\"rows\":3,\"bytes\":60,\"sha256\":\"{sha256}\"}}]}}"
            )
        );
        assert_eq!(Metadata::read(text.as_bytes()).unwrap(), metadata);
    }

    #[test]
    fn a_wrong_one_is_an_error() {
        type Change = fn(&mut Metadata);
        let wrong: [(&str, Change); 9] = [
            ("format version 2", |m| m.format_version = 2),
            ("chain id", |m| m.chain_id.clear()),
            ("no span", |m| m.height_from = 1001),
            ("older", |m| m.block_time_from = m.block_time_to + 1),
            ("out of order", |m| m.members.swap(0, 1)),
            ("out of order", |m| m.members.rotate_right(1)),
            ("not the name of a member", |m| m.members[0].name = "history/../x.csv".to_owned()),
            ("without a name", |m| m.members[0].columns.clear()),
            ("more rows than bytes", |m| m.members[0].rows = 60),
        ];
        for (what, change) in wrong {
            let mut metadata = metadata();
            change(&mut metadata);
            let error = Metadata::read(&serde_json::to_vec(&metadata).unwrap()).unwrap_err();
            assert!(error.contains(what), "{error}");
        }
        let text = serde_json::to_string(&metadata()).unwrap();
        for (from, to) in [
            ("\"heightTo\":1000", "\"heightTo\":-1"),
            ("\"1700000000000000000\"", "1700000000000000000"),
            ("SegmentId\":\"\"", "SegmentId\":\"AB\""),
            ("\"rows\":3", "\"rows\":3,\"rows\":3"),
            ("\"rows\":3", "\"rows\":3,\"more\":3"),
        ] {
            assert!(text.contains(from));
            assert!(Metadata::read(text.replacen(from, to, 1).as_bytes()).is_err(), "{to}");
        }
    }
}
