//! Syntax of lines: signatures as they were read, part by part.

pub(crate) mod body;
pub(crate) mod class;
pub(crate) mod compare;
pub(crate) mod expression;
pub(crate) mod line;
pub(crate) mod location;
pub(crate) mod logical;
pub(crate) mod pcre;
pub(crate) mod picture;
pub(crate) mod signature;
pub(crate) mod style;
