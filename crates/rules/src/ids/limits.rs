//! Bounds of what is loaded and of what a flow holds.

/// Bounds of a rule set and of the flows that it inspects.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Bytes of one file of rules. The largest of public sets have 30 MB.
    pub file_bytes_max: usize,
    /// Bytes of one rule, its continued lines joined.
    pub rule_bytes_max: usize,
    /// Rules of all files.
    pub rules_max: usize,
    /// Tests of one rule; they are recursed over, so they cost stack.
    pub tests_max: usize,
    /// Items of one list of addresses or ports, variables expanded.
    pub items_max: usize,
    /// Problems that are kept; of the others only the number.
    pub problems_max: usize,
    /// Entries of one data set.
    pub set_entries_max: usize,
    /// Bytes of one buffer that are looked at together. A longer body is inspected in windows of this size that overlap by half.
    pub window_bytes: usize,
    /// Buffers of one transaction; more are not inspected, and counted.
    pub buffers_max: usize,
    /// Places tried for one rule in one buffer, after which it counts as not matched.
    pub tries_max: u32,
    /// Steps of one expression in one buffer.
    pub expression_steps_max: u64,
    /// Bytes that tests of all rules may look at in one flow, whatever comes; a step of an expression counts as eight. Beyond it no
    /// rule matches, which [`Flow::is_spent`](super::Flow::is_spent) tells.
    pub work_max: u64,
    /// The same for each byte of content besides. Rules that no text selects look at all of it.
    pub work_a_byte: u64,
    /// Flow bits of one flow, entries of all xbits, and of all thresholds.
    pub bits_max: usize,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            file_bytes_max: 128 << 20,
            rule_bytes_max: 64 << 10,
            rules_max: 200_000,
            tests_max: 256,
            items_max: 65_536,
            problems_max: 100_000,
            set_entries_max: 4_000_000,
            window_bytes: 256 << 10,
            buffers_max: 4096,
            tries_max: 20_000,
            expression_steps_max: 1_000_000,
            work_max: 256 << 20,
            work_a_byte: 256,
            bits_max: 100_000,
        }
    }
}
