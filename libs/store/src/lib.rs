//! PostgreSQL for the services: `.sql` files and paged lists for readers, appending of blocks for `ingest`, snapshots and
//! COPY for sealing. `mesh-loader` migrates a database and fills it in bulk.
//!
//! The services use the database through this crate alone. Tables appear only in `migrations/`; the services say which
//! they read, and interpret the rows.

mod address;
pub mod append;
pub mod blocks;
pub mod dictionary;
pub mod error;
mod list;
mod read;
pub mod schema;
mod seal;
mod session;
mod time;

pub use address::{AddressError, check_address};
pub use list::{
    Filter, KeyColumn, KeyKind, List, ListPage, PageEdge, PageRequest, PageRows, PageSizes, PastSource,
    Statement, Value, Window,
};
pub use read::{
    LIST_SETTINGS, Parameter, Past, ReadError, RowReader, Store, StoreConfig, StoreState, Unreadable,
    block_of, head_of,
};
pub use seal::{Copy, SEAL_SETTINGS, SealSession, Snapshot, within};
pub use session::{NO_TIMEOUTS, check_triggers, connect, connect_with};
pub use time::{TimeRange, TimeUs};
pub use tokio_postgres::Row;
