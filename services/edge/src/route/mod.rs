//! Which operation or page a request is for, and the warp service in front of that.

mod console;
mod guide;
pub(crate) mod limits;
pub(crate) mod page;
pub(crate) mod pages;
pub(crate) mod routes;
pub(crate) mod status;
