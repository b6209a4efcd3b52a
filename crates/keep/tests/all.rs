//! Tests of the mail server without I/O.

mod own;
mod reading;
