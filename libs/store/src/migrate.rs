//! Brings a database to the newest schema.
