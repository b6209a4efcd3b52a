//! Numbers of what a rule is made of.

/// The place of a node.
pub(crate) type NodeId = u32;

/// The place of a text in a condition.
pub(crate) type TextId = u32;

/// The number of a string, among those of all rules.
pub(crate) type StringId = u32;
