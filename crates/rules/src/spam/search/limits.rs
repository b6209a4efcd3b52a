//! Bounds of running rules over a mail.

/// Bounds of one check. What is beyond one is told with the hits, and everything else still runs.
#[derive(Debug, Clone, Copy)]
pub struct RunLimits {
    /// Steps of all searches of a mail. A step is about one byte of an automaton or one instruction of the matcher: some
    /// hundred million a second.
    pub steps_max: u64,
    /// Steps of one rule, over all that it looks at.
    pub rule_steps_max: u64,
    /// Hits that are counted of one rule that is `multiple`.
    pub hits_max: u32,
    /// Addresses that are read from one request for header fields.
    pub addresses_max: usize,
    /// `Received` fields that are read.
    pub received_max: usize,
    /// Bytes that a thread's searches keep from one mail to the next.
    pub scratch_bytes_max: usize,
}

impl Default for RunLimits {
    fn default() -> RunLimits {
        RunLimits {
            steps_max: 200_000_000,
            rule_steps_max: 20_000_000,
            hits_max: 10_000,
            addresses_max: 2000,
            received_max: 1000,
            scratch_bytes_max: 12 << 20,
        }
    }
}
