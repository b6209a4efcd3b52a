//! An address as tables are asked for it.
//!
//! Local parts and domains count in any case, as with Postfix; what RFC 5321 lets a local part have in quotes counts
//! without them. A domain is compared as it is written: `xn--` and the letters that it stands for are two.

use std::borrow::Cow;

/// A recipient: its local part without quotes, its domain, both in small letters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Address {
    local: String,
    domain: Option<String>,
    /// Where in the local part the user's name ends, if an extension follows.
    user_end: Option<usize>,
}

/// Where mail about mail goes; who has a domain has it (RFC 5321, section 4.5.1).
const POSTMASTER: &str = "postmaster";

/// Names that are those of programs and have no extension, whatever stands in them.
const WHOLE: [&str; 3] = [POSTMASTER, "mailer-daemon", "double-bounce"];

impl Address {
    /// Reads a mailbox without angle brackets; one of these characters ends the user's name.
    pub fn new(mailbox: &str, delimiters: &str) -> Address {
        let (local, domain) = match split(mailbox) {
            (local, Some(domain)) => (local, Some(domain.to_lowercase())),
            (local, None) => (local, None),
        };
        let local = unquoted(local).to_lowercase();
        let user_end = user_end(&local, delimiters);
        Address { local, domain, user_end }
    }

    /// The local part.
    pub fn local(&self) -> &str {
        &self.local
    }

    /// The domain, if there is one.
    pub fn domain(&self) -> Option<&str> {
        self.domain.as_deref()
    }

    /// Whether it is where mail about mail goes.
    pub fn is_postmaster(&self) -> bool {
        self.users().last() == Some(POSTMASTER)
    }

    /// The local part, and then the user's name alone if an extension follows it.
    pub fn users(&self) -> impl Iterator<Item = &str> {
        let user = self.user_end.and_then(|end| self.local.get(..end));
        std::iter::once(self.local.as_str()).chain(user)
    }

    /// Keys to look up, in this order: `user+extension@domain`, `user@domain`, `user+extension`, `user`,
    /// `@domain`.
    pub fn keys(&self) -> impl Iterator<Item = Cow<'_, str>> {
        let domain = self.domain();
        let whole = self.users().filter_map(move |user| Some(Cow::Owned(format!("{user}@{}", domain?))));
        let bare = self.users().map(Cow::Borrowed);
        let all = domain.map(|domain| Cow::Owned(format!("@{domain}")));
        whole.chain(bare).chain(all)
    }
}

impl std::fmt::Display for Address {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.domain {
            Some(domain) => write!(f, "{}@{domain}", self.local),
            None => f.write_str(&self.local),
        }
    }
}

/// An entry of a table in the form in which it is asked for.
pub fn normal(entry: &str) -> String {
    match split(entry) {
        ("" | "*", Some(domain)) => format!("@{}", domain.to_lowercase()),
        (local, Some(domain)) => format!("{}@{}", unquoted(local).to_lowercase(), domain.to_lowercase()),
        (local, None) => unquoted(local).to_lowercase(),
    }
}

/// Local part and domain. What is in quotes may hold an `@`; without them the last one counts.
fn split(mailbox: &str) -> (&str, Option<&str>) {
    if mailbox.starts_with('"') {
        let Some(end) = quoted_end(mailbox) else { return (mailbox, None) };
        let (local, rest) = mailbox.split_at(end);
        return (local, rest.strip_prefix('@'));
    }
    mailbox.rsplit_once('@').map_or((mailbox, None), |(local, domain)| (local, Some(domain)))
}

/// Where a quoted string ends that `text` begins with: behind its second quote.
pub fn quoted_end(text: &str) -> Option<usize> {
    let mut is_escaped = false;
    let inner = text.get(1..)?;
    let close = inner.bytes().position(|byte| {
        let closes = byte == b'"' && !is_escaped;
        is_escaped = byte == b'\\' && !is_escaped;
        closes
    })?;
    Some(close + 2)
}

/// A local part without its quotes and what they made necessary.
fn unquoted(local: &str) -> Cow<'_, str> {
    let Some(inner) = local.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')) else {
        return Cow::Borrowed(local);
    };
    let mut text = String::with_capacity(inner.len());
    let mut characters = inner.chars();
    while let Some(c) = characters.next() {
        text.extend(if c == '\\' { characters.next() } else { Some(c) });
    }
    Cow::Owned(text)
}

/// Where the user's name ends, if an extension follows: before the first delimiter that is not the first character. With
/// a hyphen, `owner-LIST` and `LIST-request` are names.
fn user_end(local: &str, delimiters: &str) -> Option<usize> {
    if delimiters.is_empty() || WHOLE.contains(&local) {
        return None;
    }
    if delimiters.contains('-') && (local.starts_with("owner-") || local.ends_with("-request")) {
        return None;
    }
    local.char_indices().skip(1).find(|(_, c)| delimiters.contains(*c)).map(|(at, _)| at)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys(mailbox: &str, delimiters: &str) -> Vec<String> {
        Address::new(mailbox, delimiters).keys().map(Cow::into_owned).collect()
    }

    #[test]
    fn an_address_is_asked_for_from_the_most_particular_to_the_most_general() {
        assert_eq!(
            keys("Tim+News@Example.ORG", "+"),
            ["tim+news@example.org", "tim@example.org", "tim+news", "tim", "@example.org"]
        );
        assert_eq!(keys("tim@a", "+"), ["tim@a", "tim", "@a"]);
        assert_eq!(keys("tim+x", ""), ["tim+x"]);
    }

    #[test]
    fn extensions_follow_a_name() {
        let user = |local: &str, delimiters: &str| Address::new(local, delimiters).users().last().unwrap().to_string();
        assert_eq!(user("a+b+c@d", "+"), "a");
        assert_eq!(user("a-b+c@d", "+-"), "a");
        assert_eq!(user("+a@d", "+"), "+a");
        assert_eq!(user("+a+b@d", "+"), "+a");
        assert_eq!(user("owner-list@d", "-"), "owner-list");
        assert_eq!(user("list-request@d", "-"), "list-request");
        assert_eq!(user("MAILER-DAEMON@d", "-"), "mailer-daemon");
        assert_eq!(user("é+x@d", "+"), "é");
    }

    #[test]
    fn quotes_do_not_count() {
        assert_eq!(keys("\"Tim\"@a", "+"), keys("tim@a", "+"));
        assert_eq!(keys("\"a \\\"b\\\\@c\"@d", "")[0], "a \"b\\@c@d");
        assert_eq!(normal("\"John Doe\"@A"), "john doe@a");
        assert_eq!(normal("*@A"), "@a");
    }

    #[test]
    fn the_postmaster_is_known_with_and_without_a_domain() {
        for mailbox in ["Postmaster", "POSTMASTER@example.org", "\"postmaster\"@a"] {
            assert!(Address::new(mailbox, "+").is_postmaster(), "{mailbox}");
        }
        assert!(!Address::new("postmasters@a", "+").is_postmaster());
    }
}
