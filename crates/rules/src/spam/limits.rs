//! Bounds of a configuration.

/// Bounds of a configuration. Reaching one is a [`Problem`](super::Problem), and what is beyond it is not read.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Bytes of one file. The largest of the stock set has 420 kB.
    pub file_bytes_max: usize,
    /// Files, those that are included among them.
    pub files_max: usize,
    /// Bytes of all files together.
    pub bytes_max: usize,
    /// How deep files include each other.
    pub include_depth_max: usize,
    /// How deep conditions stand in each other, and parentheses in a condition or a meta.
    pub nesting_max: usize,
    /// Names of rules. The stock set has about 3,000.
    pub rules_max: usize,
    /// Lines of settings that are kept. The stock set has about 3,500.
    pub settings_max: usize,
    /// Problems that are kept; of the others only the number.
    pub problems_max: usize,
    /// Bytes of one expression when its tags are replaced; the largest of the stock set comes to 224 kB.
    pub expression_bytes_max: usize,
    /// Bytes of all expressions whose tags are replaced.
    pub replaced_bytes_max: usize,
    /// Steps of one meta when its globs are expanded.
    pub meta_steps_max: usize,
    /// Steps of all metas.
    pub metas_steps_max: usize,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            file_bytes_max: 16 << 20,
            files_max: 4096,
            bytes_max: 64 << 20,
            include_depth_max: 8,
            nesting_max: 64,
            rules_max: 100_000,
            settings_max: 200_000,
            problems_max: 10_000,
            expression_bytes_max: 1 << 20,
            replaced_bytes_max: 64 << 20,
            meta_steps_max: 16_384,
            metas_steps_max: 4_000_000,
        }
    }
}
