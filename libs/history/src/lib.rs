//! The sealed history: segment files, their store, and exports laid out from their indexes.
//!
//! A segment is an ordinary ZIP of one span of blocks (DATA_MODEL 7). Its CSV members are deflated in parts
//! that can be laid end to end, so an export of any range is arithmetic: header once, rows parts spliced,
//! every length and checksum known before the first byte. Input: CSV text while sealing, names and byte
//! ranges while exporting. Output: segment files and checked bytes. Uses no bus, no SQL, no HTTP.
//!
//! - Sealing: [`StagedMember`] takes a table's CSV, [`assemble`] makes the file, [`verify_file`] inflates all
//!   of it, [`SegmentStore::publish`] stores it.
//! - Exporting: [`SegmentStore::list`] lists the segments, [`Layout::of`] lays an export out,
//!   [`SegmentStore::read`] returns its bytes from any offset; [`SegmentList::totals`] adds up each table.
//! - Checking and importing: [`SegmentStore::verify_all`] reads everything, [`SegmentList::chain_faults`]
//!   checks the hash chain alone, [`SegmentStore::text`] returns a member's plain text.

mod assemble;
mod block_rows;
mod chain;
mod crc;
mod csv;
mod csv_validator;
mod digest;
mod error;
mod index;
mod layout;
mod member;
mod member_text;
mod metadata;
mod name;
mod opener;
mod publish;
mod read;
mod segment;
mod store;
mod totals;
mod verify;
mod verify_all;
mod zip;
mod zip_read;

pub use assemble::{ReadyMember, Span, StagedMember, assemble};
pub use chain::Fault;
pub use csv::{CsvError, Fields, RecordSplitter, fields};
pub use digest::Digest;
pub use error::HistoryError;
pub use index::{BLOCK_BYTES, MemberIndex, PartIndex, SegmentIndex};
pub use layout::{Layout, LayoutError, Piece};
pub use member::{DEFAULT_LEVEL, Encoded, MemberEncoder};
pub use member_text::MemberText;
pub use metadata::{MemberMetadata, Metadata};
pub use name::{SegmentName, csv_name, zip_name};
pub use read::MAX_READ_BYTES;
pub use segment::{Member, Segment, SegmentList, Unreadable};
pub use store::SegmentStore;
pub use totals::TableTotals;
pub use verify::{Verifier, verify_file};
pub use verify_all::Verification;
