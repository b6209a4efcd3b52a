//! Signatures of potentially unwanted applications: options and settings to select them.

use clap::Args;
use clap::builder::BoolishValueParser;
use serde::{Deserialize, Serialize};

/// Selection of signatures of potentially unwanted applications. A category is the second word of their names.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, Args)]
pub struct Pua {
    /// Also load signatures of potentially unwanted applications (PUA).
    #[arg(long, value_name = "YES|NO", num_args = 0..=1, require_equals = true, default_value = "no", default_missing_value = "yes", value_parser = BoolishValueParser::new(), action = clap::ArgAction::Set, hide_possible_values = true)]
    pub detect_pua: bool,
    /// Load only PUA signatures of this category, the second word of their names; repeatable.
    #[arg(long, value_name = "CATEGORY", conflicts_with = "exclude_pua")]
    pub include_pua: Vec<String>,
    /// Load no PUA signatures of this category; repeatable.
    #[arg(long, value_name = "CATEGORY")]
    pub exclude_pua: Vec<String>,
}
