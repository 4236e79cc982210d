//! PostgreSQL for the mesh: migrations and bulk loading for those who write, `.sql` files and cursor pages
//! for those who read.
//!
//! The only room that knows the database driver. It knows tables only in `migrations/`; what a row means is
//! the services' business.

pub mod error;
pub mod load;
pub mod migrate;
mod session;
