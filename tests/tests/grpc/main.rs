//! gRPC, seen from outside: the same operations and the same answers as over HTTP, by the same names.

mod answers;
