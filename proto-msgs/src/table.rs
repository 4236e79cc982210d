//! The tables that can be exported, as the contract lists them.

use crate::v2::Table;

impl Table {
    /// Every table that is sealed and can be exported, by [`Table::relation`].
    pub fn exportable() -> Vec<Self> {
        let mut tables: Vec<Self> = (1..).map_while(|number| Self::try_from(number).ok()).collect();
        tables.sort_by_cached_key(|table| table.relation());
        tables
    }

    /// Its name in the database, in segments (`history/<name>.csv`, H2) and in file names: `trades` for
    /// `TABLE_TRADES`.
    pub fn relation(self) -> String {
        self.as_str_name().trim_start_matches("TABLE_").to_ascii_lowercase()
    }
}
