//! Command-line options of `mesh export`.

use std::{convert::Infallible, path::PathBuf, str::FromStr, sync::LazyLock};

use clap::{
    Args,
    builder::{PossibleValue, PossibleValuesParser, TypedValueParser},
};
use proto_msgs::v2::Table;

use crate::gateway::GatewayArgs;

#[derive(Clone, Debug, Args)]
#[command(after_help = "Examples:
  mesh export trades --from-block first --to-block last
  mesh export balances --from-block 1 --to-block 5000 --snap -o balances.zip
  mesh export trades --from-block first --to-block last --csv --columns block_time,market_id,price
Run it again to resume an interrupted download.")]
pub(crate) struct ExportArgs {
    /// The table, e.g. trades or TABLE_TRADES, in upper or lower case
    #[arg(value_name = "TABLE", value_parser = table_parser(), ignore_case = true)]
    pub(crate) table: Table,
    /// First block, which must be the start of a segment; `first` = that of the history
    #[arg(long, value_name = "A", allow_negative_numbers = true)]
    pub(crate) from_block: Height,
    /// Last block, which must be the end of a segment; `last` = that of the history
    #[arg(long, value_name = "B", allow_negative_numbers = true)]
    pub(crate) to_block: Height,
    /// The file or its folder, `-` for standard output [default: the gateway's file name, in the current folder]
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) gateway: GatewayArgs,
    /// Extend the range to whole segments: from the start of the segment of A to the end of the segment of B
    #[arg(long)]
    pub(crate) snap: bool,
    /// Unpack the download into one CSV file, in which NULL and an empty text are the same
    #[arg(long)]
    pub(crate) csv: bool,
    /// Write only these columns, in this order
    #[arg(long, value_name = "A,B", value_delimiter = ',', value_parser = column, requires = "csv")]
    pub(crate) columns: Option<Vec<String>>,
    /// Replace an existing FILE
    #[arg(long)]
    pub(crate) force: bool,
    /// Number of consecutive retries without progress before the command fails
    #[arg(long, value_name = "N", default_value_t = 10)]
    pub(crate) retries: u32,
    /// Retry after this time without a byte
    #[arg(long, value_name = "SECONDS", default_value_t = 60, value_parser = clap::value_parser!(u32).range(1..=3600))]
    pub(crate) patience: u32,
    /// Print the outcome as a JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

/// A column's name, without the spaces around it.
fn column(text: &str) -> Result<String, Infallible> {
    Ok(text.trim().to_owned())
}

/// A height, or one of the two ends of the sealed history.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Height {
    At(u64),
    First,
    Last,
}

impl FromStr for Height {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "first" => Ok(Self::First),
            "last" => Ok(Self::Last),
            // Heights are signed on the wire.
            _ => match text.parse::<u64>() {
                Ok(height) if i64::try_from(height).is_ok() => Ok(Self::At(height)),
                _ => Err("a height is a number from 0, `first` or `last`".to_owned()),
            },
        }
    }
}

/// The tables and their short names, in alphabetical order.
static TABLES: LazyLock<Vec<(String, Table)>> =
    LazyLock::new(|| Table::exportable().into_iter().map(|table| (table.relation(), table)).collect());

fn table_parser() -> impl TypedValueParser<Value = Table> {
    let names =
        TABLES.iter().map(|(name, table)| PossibleValue::new(name.as_str()).alias(table.as_str_name()));
    PossibleValuesParser::new(names).try_map(|typed| {
        let lower = typed.to_ascii_lowercase();
        let short = lower.strip_prefix("table_").unwrap_or(&lower);
        let found = TABLES.iter().find(|(name, _)| name == short);
        found.map(|(_, table)| *table).ok_or("there is no such table")
    })
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Debug, Parser)]
    struct Typed {
        #[command(flatten)]
        args: ExportArgs,
    }

    fn typed(table: &str) -> Result<Table, clap::Error> {
        let typed = Typed::try_parse_from(["-", table, "--from-block", "1", "--to-block", "2"]);
        typed.map(|typed| typed.args.table)
    }

    #[test]
    fn every_table_of_the_contract_is_known_by_both_names_in_any_case() {
        assert!(TABLES.len() >= 15);
        for (name, table) in &*TABLES {
            let upper = name.to_ascii_uppercase();
            for spelling in [name, &upper, table.as_str_name(), &format!("Table_{name}")] {
                assert_eq!(typed(spelling).unwrap(), *table, "{spelling}");
            }
        }
        for wrong in ["", "table_", "TABLE_UNSPECIFIED", "unspecified", "trade", "14"] {
            typed(wrong).unwrap_err();
        }
    }
}
