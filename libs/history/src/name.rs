//! Names: of segment objects (H1), of export files and their members (X5).

use std::fmt;

/// The longest chain id, bytes, so that names stay within the limits of file systems.
pub(crate) const MAX_CHAIN_ID_BYTES: usize = 128;

/// The name of an export: `<chain id>-<table>-<from>-<to>.zip`.
pub fn zip_name(chain_id: &str, table: &str, from: u64, to: u64) -> String {
    format!("{}-{table}-{from}-{to}.zip", plain(chain_id))
}

/// The name of an export's member: `<chain id>-<table>-<schema version>-<from>-<to>.csv`.
pub fn csv_name(chain_id: &str, table: &str, version: u32, from: u64, to: u64) -> String {
    format!("{}-{table}-{version}-{from}-{to}.csv", plain(chain_id))
}

/// The chain id in names: characters that are special in paths, headers or shells are replaced by `_`.
fn plain(chain_id: &str) -> String {
    let keep = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
    chain_id.chars().map(|c| if keep(c) { c } else { '_' }).collect()
}

/// The name of a segment's object. Special characters of its chain id are replaced; the metadata has the real
/// one.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SegmentName {
    /// First height of the span.
    pub height_from: u64,
    /// Last height of the span.
    pub height_to: u64,
    /// Schema version.
    pub version: u32,
    chain: String,
}

impl SegmentName {
    /// The name of a segment.
    pub fn new(chain_id: &str, version: u32, height_from: u64, height_to: u64) -> SegmentName {
        SegmentName { height_from, height_to, version, chain: plain(chain_id) }
    }

    /// Whether it names a segment of this chain.
    pub fn is_of(&self, chain_id: &str) -> bool {
        self.chain == plain(chain_id)
    }

    /// Reads an object's file name; `None` when it is no segment's.
    pub fn parse(name: &str) -> Option<SegmentName> {
        let mut words = name.strip_suffix(".zip")?.rsplitn(4, '-');
        let (to, from) = (decimal(words.next()?)?, decimal(words.next()?)?);
        let version = u32::try_from(decimal(words.next()?)?).ok()?;
        let chain = words.next()?;
        let is_plain =
            from <= to && !chain.is_empty() && chain.len() <= MAX_CHAIN_ID_BYTES && plain(chain) == chain;
        is_plain.then(|| SegmentName { height_from: from, height_to: to, version, chain: chain.to_owned() })
    }
}

impl fmt::Display for SegmentName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}-{}-{}.zip", self.chain, self.version, self.height_from, self.height_to)
    }
}

/// Reads a decimal without sign or padding, at most `i64::MAX`: heights are signed in the database.
fn decimal(text: &str) -> Option<u64> {
    let plain = text.bytes().all(|b| b.is_ascii_digit()) && (text == "0" || !text.starts_with('0'));
    let value: u64 = if plain { text.parse().ok()? } else { return None };
    i64::try_from(value).is_ok().then_some(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_segment_name_reads_back() {
        for chain_id in ["mesh", "a-b-1-2", "x y/../é\n", "..", "-", "7"] {
            let name = SegmentName::new(chain_id, 12, 1, 1000);
            let text = name.to_string();
            assert!(text.bytes().all(|b| b.is_ascii_alphanumeric() || b"._-".contains(&b)), "{text}");
            assert_eq!(SegmentName::parse(&text), Some(name));
        }
        assert_eq!(SegmentName::new("x y/é", 1, 1, 9).to_string(), "x_y__-1-1-9.zip");
    }

    #[test]
    fn other_names_are_none() {
        for name in [
            "", ".zip", "mesh-1-1-1000", "mesh-1-1-1000.zip#1", "mesh-1-01-1000.zip", "mesh-1-+1-1000.zip",
            "mesh-1-1000-1.zip", "1-1-1000.zip", "-1-1-1000.zip", "mesh-4294967296-1-1000.zip",
            "mesh-1-1-9223372036854775808.zip", "me sh-1-1-1000.zip",
        ] {
            assert_eq!(SegmentName::parse(name), None, "{name}");
        }
    }

    #[test]
    fn export_names_follow_the_contract() {
        assert_eq!(zip_name("a-b", "market_data", 1, 3000), "a-b-market_data-1-3000.zip");
        assert_eq!(csv_name("a/b", "market_data", 7, 1, 3000), "a_b-market_data-7-1-3000.csv");
    }
}
