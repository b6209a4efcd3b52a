//! Maps whose keys come from mails: hashed with a secret, and quickly, since they are many and short.

use foldhash::fast::RandomState;

/// A map in no order.
pub type HashMap<K, V> = std::collections::HashMap<K, V, RandomState>;
/// A set in no order.
pub type HashSet<K> = std::collections::HashSet<K, RandomState>;
