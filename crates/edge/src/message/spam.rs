//! Effects of a score on a mail: its header fields, its subject, and its log fields.
//!
//! An inspection says what the fields are; what is no field of ours, or would end the header, is not written.

use std::borrow::Cow;

use flow::{Mark, Score, Verdict};

use super::trace;
use crate::settings::Spam;

/// Prefix of our fields. Such fields in incoming mail are forged, and they are left out.
pub const PREFIX: &str = "X-Spam-";
/// The same as an inspection takes it.
pub const FORGED: &[Cow<'static, str>] = &[Cow::Borrowed("x-spam-")];
/// Fields that no mail brings along by SMTP or LMTP: of findings alone, and of scores, too.
const FORGED_STATUS: &[Cow<'static, str>] = &[Cow::Borrowed("x-sluice-status")];
const FORGED_BOTH: &[Cow<'static, str>] = &[Cow::Borrowed("x-sluice-status"), Cow::Borrowed("x-spam-")];

/// Fields that no mail brings along by SMTP or LMTP, whether mails are marked by their score or not.
pub const fn forged(marks: bool) -> Cow<'static, [Cow<'static, str>]> {
    Cow::Borrowed(if marks { FORGED_BOTH } else { FORGED_STATUS })
}

/// The longest field, in bytes.
const FIELD_BYTES_MAX: usize = 32 << 10;

/// The fields for a mail, each by its name and its value; folded lines end in `line_end`.
pub fn fields(spam: &Spam, score: &Score, line_end: &str) -> Vec<(String, String)> {
    if !spam.headers {
        return Vec::new();
    }
    let fields = score.fields.iter().take(Score::FIELDS_MAX).filter(|mark| is_name(&mark.name));
    fields.map(|mark| (format!("{PREFIX}{}", mark.name), value(mark, line_end))).collect()
}

/// The fields as they stand in a header.
pub fn header(spam: &Spam, score: &Score) -> String {
    fields(spam, score, "\r\n").into_iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect()
}

fn is_name(name: &str) -> bool {
    (1..=60).contains(&name.len())
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_')
}

/// A value that stays within its field: each line but the first begins with a tab, and none is empty.
fn value(mark: &Mark, line_end: &str) -> String {
    let mut value = String::new();
    for (index, line) in mark.value.split('\n').enumerate() {
        let line: String = line.chars().filter(|letter| *letter == '\t' || (' '..='~').contains(letter)).collect();
        let line = line.trim_end();
        if index > 0 && line.trim().is_empty() {
            continue;
        }
        if value.len() + line.len() > FIELD_BYTES_MAX {
            break;
        }
        if index > 0 {
            value += line_end;
            value += if line.starts_with(['\t', ' ']) { "" } else { "\t" };
        }
        value += line;
    }
    value
}

/// The tag for the subject, and where in the mail it goes; at the beginning, as a subject of its own, where there is none.
pub fn subject(spam: &Spam, score: &Score) -> Option<(u64, String)> {
    if spam.subject_tag.is_empty() || !score.is_spam() {
        return None;
    }
    Some(match score.subject {
        Some(at) => (at, format!("{} ", spam.subject_tag)),
        None => (0, format!("Subject: {}\r\n", spam.subject_tag)),
    })
}

/// Reason text for a score that decides.
pub fn reason(score: &Score) -> String {
    format!("spam (score {})", score.points)
}

/// The rules that hit, with their points, for the log: the weightiest first.
pub fn hits(verdict: &Verdict) -> Option<String> {
    const RULES_MAX: usize = 60;
    let score = verdict.score.as_ref()?;
    let mut hits: Vec<_> = score.hits.iter().collect();
    hits.sort_by_key(|hit| std::cmp::Reverse(hit.points.0.unsigned_abs()));
    let told: Vec<String> =
        hits.iter().take(RULES_MAX).map(|hit| format!("{}={:.2}", trace::printable(&hit.rule), hit.points)).collect();
    Some(told.join(","))
}

/// The score, for the log: as `X-Spam-Status` has it.
pub fn points(verdict: &Verdict) -> Option<f64> {
    verdict.score.as_ref().and_then(|score| score.shown().parse().ok())
}

#[cfg(test)]
mod tests {
    use flow::Points;

    use super::*;
    use crate::settings::SpamSettings;

    fn spam(settings: &str) -> Spam {
        toml::from_str::<SpamSettings>(settings).unwrap().under([None, None]).unwrap()
    }

    fn mark(name: &str, value: &str) -> Mark {
        Mark { name: name.into(), value: value.into() }
    }

    #[test]
    fn what_an_inspection_makes_up_stays_within_its_fields() {
        let fields = vec![
            mark("Status", "Yes,\n\ttests=A\nB\r\n\n \nC\u{0}\u{e9}D"),
            mark("Evil: x\r\nBcc", "a"),
            mark("", "b"),
            mark("Empty", ""),
        ];
        let score = Score { fields, ..Score::default() };
        assert_eq!(header(&spam(""), &score), "X-Spam-Status: Yes,\r\n\ttests=A\r\n\tB\r\n\tCD\r\nX-Spam-Empty: \r\n");
        assert_eq!(header(&spam("headers = false"), &score), "");
    }

    #[test]
    fn the_log_has_the_score_of_the_header() {
        for (points, wanted) in [(5_258, 5.3), (4_999, 4.9), (-1_500, -1.5), (0, 0.0)] {
            let score = Score { points: Points(points), required: Points(5_000), ..Score::default() };
            let verdict = Verdict { score: Some(score), ..Verdict::default() };
            assert_eq!(super::points(&verdict), Some(wanted), "{points}");
        }
    }

    #[test]
    fn the_subject_of_spam_is_tagged_and_made_where_it_is_missing() {
        let score =
            |subject, points| Score { subject, points: Points(points), required: Points(5_000), ..Score::default() };
        let tags = spam("subject_tag = '[SPAM]'");
        assert_eq!(subject(&tags, &score(Some(7), 5_000)), Some((7, "[SPAM] ".into())));
        assert_eq!(subject(&tags, &score(None, 5_000)), Some((0, "Subject: [SPAM]\r\n".into())));
        assert_eq!(subject(&tags, &score(Some(7), 4_999)), None);
        assert_eq!(subject(&spam(""), &score(Some(7), 5_000)), None);
    }
}
