//! Functions about the names of the site itself: domains that look like its own, and people of it who write from elsewhere.
//!
//! They are ours and not SpamAssassin's (`ifplugin Mail::SpamAssassin::Plugin::SiteNames`). The site names itself by
//! `site_domain example.org ...`, its people by `site_person Jane Doe`, one a line, and where they may write from besides by
//! `site_person_address`.
//!
//! Names look alike where their skeletons (UTS 39) are the same, where one letter is another, is missing, is one too many or
//! has changed places with the next, or where the site's name stands between hyphens. Names of fewer than five letters are
//! compared by skeleton alone.

use unicode_security::confusable_detection::skeleton;

use super::from_name::domain_of;
use super::{Arguments, Context, Function, look, truth};
use crate::spam::message::shown;

/// The functions.
pub(super) const FUNCTIONS: &[Function] = &[
    look("check_site_lookalike", lookalike),
    look("check_site_domain_in_name", domain_in_name),
    look("check_site_person", person),
];

/// How many letters a name has at least that is compared letter by letter.
const LETTERS_MIN: usize = 5;

/// The longest name that is compared: a label of the DNS, as it is shown.
const LETTERS_MAX: usize = 63;

/// Whether the domain of a field (`From` without an argument) looks like one of the site's and is none.
fn lookalike(context: &Context<'_>, arguments: &Arguments<'_>) -> f64 {
    let field = if arguments.is_empty() { "From" } else { arguments.text(0) };
    let address = context.fields.get(&format!("{field}:addr")).to_ascii_lowercase();
    let Some(domain) = domain_of(context, &address).filter(|domain| !is_own(context, domain)) else { return 0.0 };
    let name = label(&domain);
    truth(site_domains(context).any(|site| looks_like(&name, &label(site))))
}

/// Whether the display name has a domain of the site while the address is of another.
fn domain_in_name(context: &Context<'_>, _: &Arguments<'_>) -> f64 {
    if is_from_site(context) {
        return 0.0;
    }
    let name = context.fields.get("From:name").to_ascii_lowercase();
    let is_end = |byte: Option<&u8>| !byte.is_some_and(|byte| byte.is_ascii_alphanumeric() || b"-.".contains(byte));
    let stands_in = |site: &[u8]| {
        let mut places = name.windows(site.len().max(1)).enumerate().filter(|(_, window)| *window == site);
        places.any(|(at, _)| {
            let before = at.checked_sub(1).and_then(|before| name.get(before));
            is_end(before.filter(|byte| **byte != b'.')) && is_end(name.get(at.saturating_add(site.len())))
        })
    };
    truth(site_domains(context).any(stands_in))
}

/// Whether the display name is that of one of the site's people while the address is not theirs.
fn person(context: &Context<'_>, _: &Arguments<'_>) -> f64 {
    let address = context.fields.get("From:addr");
    if is_from_site(context) || context.settings.has("site_person_address", &address) {
        return 0.0;
    }
    let name = person_key(&context.fields.get("From:name"));
    let people = context.settings.all_words("site_person");
    truth(!name.is_empty() && people.iter().any(|person| person_key(person) == name))
}

/// A name as it looks: letters alone, sorted by word, so that `Doe, Jane` is `Jane Doe`.
fn person_key(name: &[u8]) -> Vec<String> {
    let text = look_of(String::from_utf8_lossy(name).chars().take(256));
    let words = text.split(|letter: char| !letter.is_alphanumeric()).filter(|word| !word.is_empty());
    let mut words: Vec<String> = words.map(str::to_owned).collect();
    words.sort_unstable();
    words
}

fn is_from_site(context: &Context<'_>) -> bool {
    let address = context.fields.get("From:addr").to_ascii_lowercase();
    domain_of(context, &address).is_some_and(|domain| is_own(context, &domain))
}

fn is_own(context: &Context<'_>, domain: &[u8]) -> bool {
    let is_below = |site: &[u8]| domain.strip_suffix(site).is_some_and(|rest| rest.is_empty() || rest.ends_with(b"."));
    site_domains(context).any(|site| is_below(site) || site.ends_with(domain))
}

fn site_domains<'m>(context: &Context<'m>) -> impl Iterator<Item = &'m [u8]> {
    context.settings.all_words("site_domain").iter().map(|site| &**site)
}

/// The first label of a domain, as it looks.
fn label(domain: &[u8]) -> String {
    let first = domain.split(|&byte| byte == b'.').next().unwrap_or_default().to_ascii_lowercase();
    look_of(shown(&String::from_utf8_lossy(&first)).chars().take(LETTERS_MAX))
}

/// Skeleton of a text: similar characters become one letter.
fn look_of(text: impl Iterator<Item = char>) -> String {
    let text: String = text.flat_map(char::to_lowercase).collect();
    skeleton(&text).flat_map(char::to_lowercase).collect()
}

fn looks_like(name: &str, site: &str) -> bool {
    if name == site {
        return true;
    }
    let long_enough = site.chars().count() >= LETTERS_MIN;
    long_enough && (name.split('-').any(|part| part == site) || is_one_change(name, site))
}

/// Whether one becomes the other by a letter that is put in, taken out, replaced, or swapped with the next.
fn is_one_change(one: &str, other: &str) -> bool {
    let (one, other): (Vec<char>, Vec<char>) = (one.chars().collect(), other.chars().collect());
    let same = one.iter().zip(&other).take_while(|(a, b)| a == b).count();
    let (one, other) = (&one[same..], &other[same..]);
    match (one, other) {
        ([_, one_rest @ ..], [_, other_rest @ ..]) if one_rest == other_rest => true,
        ([a, b, one_rest @ ..], [c, d, other_rest @ ..]) if (a, b) == (d, c) && one_rest == other_rest => true,
        ([_, rest @ ..], other) if rest == other => true,
        (one, [_, rest @ ..]) => one == rest,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(name: &str) -> String {
        label(name.as_bytes())
    }

    #[test]
    fn names_look_alike_or_do_not() {
        for name in [
            "examp1e.org",
            "exarnple.org",
            "exampel.org",
            "exmple.org",
            "exxample.org",
            "example.co",
            "example-login.com",
            "my-example.com",
            "xn--exmple-4nf.org",
            "xn--xample-2of.org",
            "exanple.org",
        ] {
            assert!(looks_like(&of(name), &of("example.org")), "{name}");
        }
        for name in ["sample.org", "examples-and-more.org", "other.org", "ex.org", "exam.org", "xn--bcher-kva.org"] {
            assert!(!looks_like(&of(name), &of("example.org")), "{name}");
        }
        // Too short to be compared letter by letter.
        assert!(!looks_like(&of("abd.org"), &of("abc.org")) && looks_like(&of("abc.com"), &of("abc.org")));
    }

    #[test]
    fn people_are_known_by_how_their_names_look() {
        let same = |one: &str, other: &str| person_key(one.as_bytes()) == person_key(other.as_bytes());
        assert!(same("Jane Doe", "DOE, Jane") && same("Jane Doe", "Jаne  Dое"));
        assert!(!same("Jane Doe", "Jane Dee") && !same("Jane Doe", "Jane"));
    }
}
