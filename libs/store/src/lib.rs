//! PostgreSQL for the mesh: migrations, bulk loading and appending of blocks for writers, `.sql` files and paged lists for
//! readers, snapshots and COPY for sealing, and the import of segments.
//!
//! The services use the database through this crate alone. Tables appear only in `migrations/`; the services say which
//! they read, and interpret the rows.

mod address;
pub mod append;
mod blocks;
mod copy_in;
pub mod dictionary;
pub mod error;
pub mod import;
mod list;
pub mod load;
pub mod migrate;
mod read;
mod records;
pub mod roles;
mod seal;
mod session;
mod staging;
mod tables;
mod time;
mod write;

pub use address::{AddressError, check_address};
pub use list::{
    Filter, KeyColumn, KeyKind, List, ListPage, PageEdge, PageRequest, PageRows, PageSizes, PastSource,
    Statement, Value, Window,
};
pub use read::{
    LIST_SETTINGS, Parameter, Past, ReadError, RowReader, Store, StoreConfig, StoreState, Unreadable,
    block_of, head_of,
};
pub use seal::{Copy, SealSession, Snapshot};
pub use session::{connect, reach};
pub use time::{TimeRange, TimeUs};
pub use tokio_postgres::Row;
pub use write::BlockWriter;
