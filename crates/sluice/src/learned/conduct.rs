//! How a mail counts for who has sent it, and as what it is compared: as an inspection says it, and as the ledger keeps it.

use flow::Conduct;
use flow::reputation::points;
use ledger::Counts;

/// A mail that counts, as it is kept.
pub fn noted(conduct: Conduct) -> ledger::Conduct {
    ledger::Conduct {
        mail: conduct.mail,
        sender: conduct.sender,
        recipients: conduct.recipients,
        welcome: points(conduct.welcome_micros),
        dilution: f64::from(conduct.dilution) / 1000.0,
    }
}

/// It counts by its score.
pub fn rated(conduct: &Conduct) -> Counts {
    Counts::Rated { score: points(conduct.micros), moved: points(conduct.moved_micros) }
}

/// It counts as spam, or ham, as somebody says.
pub fn taught(conduct: &Conduct, is_spam: bool) -> Counts {
    Counts::Taught(points(if is_spam { conduct.spam_micros } else { conduct.ham_micros }))
}

/// A mail that is compared, as it is kept.
pub fn compared(fuzzy: flow::Fuzzy) -> ledger::Fuzzy {
    ledger::Fuzzy { shingles: fuzzy.shingles, parts: fuzzy.parts }
}
