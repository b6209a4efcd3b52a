//! Placeholder replaced by the first real code.
