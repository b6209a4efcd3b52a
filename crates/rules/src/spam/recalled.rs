//! Results of learned data for a mail, and lessons, as plain values: the host looks them up and stores them.

/// An opinion. Where there is one, enough was learned, and scores are those of a site that learns; it may be none yet.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Recalled {
    /// How likely the mail is spam, from 0 to 1; none where no word of it says anything.
    pub probability: Option<f64>,
    /// Words of the mail.
    pub words: u32,
    /// Words that are known.
    pub known: u32,
    /// Words that count and speak for spam.
    pub spam: u32,
    /// Words that count and speak for ham.
    pub ham: u32,
}

impl Recalled {
    /// A tag of a template, by its name; `None` for any other name.
    pub(super) fn tag(recalled: Option<&Recalled>, name: &str) -> Option<String> {
        let of = |count: fn(&Recalled) -> u32| recalled.map(count).unwrap_or_default().to_string();
        Some(match name {
            "BAYES" => match recalled.and_then(|recalled| recalled.probability) {
                Some(probability) => format!("{probability:.4}"),
                None => "0.5".into(),
            },
            "BAYESTC" => of(|recalled| recalled.words),
            "BAYESTCLEARNED" => of(|recalled| recalled.known),
            "BAYESTCSPAMMY" => of(|recalled| recalled.spam),
            "BAYESTCHAMMY" => of(|recalled| recalled.ham),
            "TOKENSUMMARY" => recalled.map_or("Bayes not run.".into(), Recalled::summary),
            _ => return None,
        })
    }

    fn summary(&self) -> String {
        let new = self.words.saturating_sub(self.known);
        let neutral = self.known.saturating_sub(self.spam).saturating_sub(self.ham);
        format!("Tokens: new, {new}; hammy, {}; neutral, {neutral}; spammy, {}.", self.ham, self.spam)
    }
}

/// Lesson to take about a mail.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Autolearn {
    /// Whether it is learned as spam, as ham, or not at all.
    pub is_spam: Option<bool>,
    /// Whether a rule asks for it (`tflags autolearn_force`): points of header and body do not count then.
    pub is_forced: bool,
    /// Whether there is no place where it could be learned.
    pub is_unavailable: bool,
}

impl std::fmt::Display for Autolearn {
    /// As `_AUTOLEARN_` has it.
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let learned = match self.is_spam {
            Some(_) if self.is_unavailable => "unavailable",
            Some(true) => "spam",
            Some(false) => "ham",
            None => "no",
        };
        write!(to, "{learned} autolearn_force={}", if self.is_forced { "yes" } else { "no" })
    }
}
