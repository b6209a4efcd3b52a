//! Throughput of the readers.
fn main() {}
