//! Every error of contract section 2 that the operations can give, provoked from outside: status, RPC code,
//! application number, form. The figures are those of the contract, written out.

mod failures;
mod head;
mod unreadable;
