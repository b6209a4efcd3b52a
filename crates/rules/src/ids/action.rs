//! Actions of rules.

/// An action, in the order in which rules are tried.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Action {
    /// Let the flow by without looking further.
    Pass,
    /// Block silently.
    Drop,
    /// Block, and tell the peers.
    Reject,
    /// Tell, and go on.
    Alert,
}

impl Action {
    /// The action of a name in Suricata or Snort.
    pub fn named(name: &str) -> Option<Action> {
        Some(match name.to_ascii_lowercase().as_str() {
            "pass" => Action::Pass,
            "drop" | "sdrop" | "block" => Action::Drop,
            "reject" | "rejectsrc" | "rejectdst" | "rejectboth" | "react" => Action::Reject,
            "alert" | "log" | "rewrite" | "activate" | "dynamic" => Action::Alert,
            _ => return None,
        })
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Action::Pass => "pass",
            Action::Drop => "drop",
            Action::Reject => "reject",
            Action::Alert => "alert",
        }
    }

    /// Whether it blocks.
    pub fn blocks(self) -> bool {
        matches!(self, Action::Drop | Action::Reject)
    }
}
