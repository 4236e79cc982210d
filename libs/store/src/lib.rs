//! PostgreSQL for the mesh: migrations and bulk loading for those who write, `.sql` files and cursor pages
//! for those who read, snapshots and COPY for the one who seals, the way back for those who import.
//!
//! The only room that knows the database driver. It knows tables only in `migrations/`; what a row means is
//! the services' business.

mod address;
mod copy_in;
pub mod error;
pub mod import;
pub mod load;
pub mod migrate;
mod page;
mod read;
pub mod roles;
mod seal;
mod session;
mod staging;
mod tables;
mod time;

pub use address::AddressError;
pub use page::{ListKey, Page, PageRequest, PageSizes, Window};
pub use read::{LIST_SETTINGS, Parameter, ReadError, Store, StoreConfig, StoreState, head_of};
pub use seal::{Copy, SealSession, Snapshot};
pub use session::reach;
pub use time::TimeUs;
pub use tokio_postgres::Row;
