//! Subjects: capitals, and names of recipients.

use super::{behind, is_word, text};
use crate::spam::eval::{Arguments, Context, truth};

pub(super) fn all_caps(context: &Context<'_>, _: &Arguments<'_>) -> f64 {
    const ANSWERS: [&str; 10] = ["re", "fwd", "fw", "aw", "antwort", "wg", "sv", "vb", "vs", "vl"];
    let subject = text(context, "Subject");
    let mut subject = subject.trim_matches(|letter: char| letter.is_ascii_whitespace());
    while let Some((word, rest)) = subject.split_once(':') {
        if !ANSWERS.contains(&&*word.to_ascii_lowercase()) {
            break;
        }
        subject = rest.trim_start_matches(|letter: char| letter.is_ascii_whitespace());
    }
    if !subject.contains(|letter: char| letter.is_ascii_whitespace()) || subject.len() < 10 {
        return 0.0;
    }
    const FAR: [&str; 13] = [
        "koi",
        "jp",
        "jis",
        "euc",
        "gb",
        "big5",
        "isoir",
        "cp1251",
        "windows-1251",
        "georgianps",
        "pt154",
        "tis",
        "sjis",
    ];
    let raw = text(context, "Subject:raw").to_ascii_lowercase();
    let is_far = behind(&raw, "=?").any(|rest| {
        let charset = rest.split('?').next().unwrap_or_default();
        let fits = charset.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte));
        fits && rest.len() > charset.len() && FAR.iter().any(|name| charset.contains(name))
    });
    let mut letters = subject.bytes().filter(u8::is_ascii_alphabetic).peekable();
    truth(!is_far && letters.peek().is_some() && letters.all(|byte| byte.is_ascii_uppercase()))
}

pub(super) fn to_in_subject(context: &Context<'_>, arguments: &Arguments<'_>) -> f64 {
    let to = text(context, "To:addr");
    if to.is_empty() {
        return 0.0;
    }
    let subject = text(context, "Subject");
    match arguments.text(0) {
        "address" => truth(has_word(&subject.to_ascii_lowercase(), &to.to_ascii_lowercase())),
        "user" => truth(names_user(&subject, to.split('@').next().unwrap_or_default())),
        _ => 0.0,
    }
}

/// Whether a word stands in a text, its ends at borders of words.
fn has_word(text: &str, word: &str) -> bool {
    let border =
        |before: Option<char>, behind: Option<char>| before.is_some_and(is_word) != behind.is_some_and(is_word);
    text.match_indices(word).any(|(at, _)| {
        let (before, behind) = (&text[..at], &text[at + word.len()..]);
        border(before.chars().next_back(), word.chars().next())
            && border(word.chars().next_back(), behind.chars().next())
    })
}

/// Whether a subject is to a user by name: alone, at its start before a mark, or behind a comma at its end.
fn names_user(subject: &str, user: &str) -> bool {
    let subject = subject.strip_suffix('\n').unwrap_or(subject);
    let (lower, small) = (subject.to_ascii_lowercase(), user.to_ascii_lowercase());
    let marks = [',', ':', ';', '!', '?', '-'];
    if lower == small {
        return true;
    }
    if let Some(rest) = subject.strip_prefix(user) {
        let mut rest = rest.chars();
        let is_marked = rest.next().is_some_and(|mark| marks.contains(&mark));
        if is_marked && rest.next().is_none_or(|letter| letter.is_ascii_whitespace()) {
            return true;
        }
    }
    let answer = ["re:", "fw:"].iter().find_map(|start| lower.strip_prefix(start)).map(str::trim_start);
    let is_answer = answer.is_some_and(|rest| {
        let words = rest.trim_start_matches(is_word);
        let second = (words.len() < rest.len() && words.starts_with(|letter: char| letter.is_ascii_whitespace()))
            .then(|| words.trim_start());
        rest == small || second == Some(&*small)
    });
    let called = lower.strip_prefix(',').map(str::trim_start).and_then(|rest| rest.strip_prefix(&*small));
    is_answer || called.is_some_and(|rest| rest.len() == 1 && rest.starts_with(marks))
}

pub(super) fn subject_in(context: &Context<'_>, list: &str) -> f64 {
    let subject = context.fields.get("Subject");
    truth(!subject.is_empty() && context.settings.has(list, &subject))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn users_are_named_in_subjects() {
        for (subject, named) in [
            ("joe", true),
            ("joe, look at this\n", true),
            ("Joe, look", false),
            ("Re: joe", true),
            ("re: about joe", true),
            ("hello joe", false),
            (", joe!", true),
        ] {
            assert_eq!(names_user(subject, "joe"), named, "{subject}");
        }
        assert!(has_word("for joe@x.com now", "joe@x.com") && !has_word("ajoe@x.com", "joe@x.com"));
    }
}
