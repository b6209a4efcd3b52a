//! Bounds of a configuration.

/// Bounds of what is loaded. Reaching one is a [`Problem`](super::Problem), and the rest is not read.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Bytes of one file. The largest lists of domains have 60 MB.
    pub file_bytes_max: usize,
    /// Bytes of all files together.
    pub bytes_max: usize,
    /// Files, those that are included among them.
    pub files_max: usize,
    /// How deep files include each other.
    pub include_depth_max: usize,
    /// Filter groups.
    pub groups_max: u32,
    /// Problems that are kept; of the others only the number.
    pub problems_max: usize,
    /// Phrases of one set, and combinations. Debian's lists have 19,894 lines.
    pub phrases_max: usize,
    /// Expressions of one list.
    pub expressions_max: usize,
    /// Rules of one Adblock list. The largest public ones have some 700,000, of about 150 bytes each in memory.
    pub network_rules_max: usize,
    /// Lines of all storyboards of a group.
    pub story_lines_max: usize,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            file_bytes_max: 128 << 20,
            bytes_max: 512 << 20,
            files_max: 16_384,
            include_depth_max: 16,
            groups_max: 1000,
            problems_max: 10_000,
            phrases_max: 1_000_000,
            expressions_max: 20_000,
            network_rules_max: 2_000_000,
            story_lines_max: 100_000,
        }
    }
}
