//! Loads a folder of CSV files.
