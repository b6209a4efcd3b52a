//! The forms of `Received` fields that servers write, in the order in which they are tried.
//!
//! A form is written as its text, with names in braces for what is taken: `{helo}` is a word, `{helo?}` a word or nothing,
//! `{ip}` an address, `{_}` a word that is passed over, `{both}` a name that stands for both the greeting and the address,
//! `{inner}` text with `helo=` and `ident=` in it. What stands between backticks is an expression. A form begins where the
//! field does, unless it begins with `...`.

use std::sync::LazyLock;

use pattern::expression::Flags;

use super::Known;

/// An address of IP, of version 4 or 6.
pub(super) const IP: &str = concat!(
    r"(?:\b(?<!:)(?:25[0-5]|2[0-4]\d|1\d\d|[1-9]?\d)(?:\.(?:25[0-5]|2[0-4]\d|1\d\d|[1-9]?\d)){3}\b",
    r"|(?i:IPv6:|(?<![a-f0-9:]))(?i:(?:[a-f0-9]{1,4}:){6}|::(?:[a-f0-9]{1,4}:){0,5}|(?:[a-f0-9]{1,4}:){1,5}:(?:[a-f0-9]{1,4}:){0,4})",
    r"(?:25[0-5]|2[0-4]\d|1\d\d|[1-9]?\d)(?:\.(?:25[0-5]|2[0-4]\d|1\d\d|[1-9]?\d)){3}(?![a-f0-9:])",
    r"|(?i:IPv6:|(?<![a-f0-9:]))(?i:(?:[a-f0-9]{1,4}:){7}[a-f0-9]{1,4}|:(?::[a-f0-9]{1,4}){1,7}|",
    r"(?:[a-f0-9]{1,4}:){1,7}:|[a-f0-9]{1,4}(?::[a-f0-9]{1,4}){0,5}:(?::[a-f0-9]{1,4}){1,6})(?![a-f0-9:]))",
);
/// This host.
const LOCALHOST: &str = r"(?:localhost(?:\.localdomain)?\b(?!-)|\b(?<!:)127\.\d{1,3}\.\d{1,3}\.\d{1,3}\b|(?i:IPv6:|(?<![a-f0-9:]))::1(?![a-f0-9:]))";

/// Beginning of a form.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Start {
    /// `from `
    From,
    /// `FROM `
    Capitals,
    /// `(from `
    Parenthesis,
    /// Something else: no form fits.
    Other,
}

/// Result of a form.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Outcome {
    /// A host handed the mail over.
    Relay,
    /// As before, if it names the address and who received it.
    IfAddress,
    /// No host did.
    Local,
    /// No host did, and the sender in the envelope is that of the field behind.
    LocalFrom,
    /// A program fetched it.
    Fetched,
}

/// A form.
pub(super) struct Form {
    pub(super) start: Start,
    pub(super) outcome: Outcome,
    pub(super) known: Known,
    traits: &'static str,
}

impl Form {
    /// Whether it says so of what it takes.
    pub(super) fn has(&self, what: &str) -> bool {
        self.traits.split(", ").any(|one| one == what)
    }
}

/// A text that the field contains, its form, and a note: with `looked up` the receiver has looked up a name of the host.
type Row = (&'static str, &'static str, &'static str);

/// Forms of particular servers, then those that many have.
const RELAYS: &[Row] = &[
    ("Mail authenticated user ", "...{ip}`\\b(?![.-]).{10,80}`by {by} with HTTP", ""),
    ("with HTTP (WebMailUI)", "...{ip} by {by} (`IP`) with HTTP (WebMailUI)", ""),
    (" SMTPSVC", "{helo?} ([{ip}]`[^)]{0,40}`) by {by} with Microsoft SMTPSVC", ""),
    (
        " with ",
        "`(?=.* with (?:Microsoft SMTP Server|mapi id) (?:\\([^)]+\\) )?\\d+\\.\\d+\\.\\d+\\.\\d+(?: |$))`{helo} (`\\[?`{ip}`(?:%[A-Z0-9._~-]*)?\\]?`) by {by} ",
        "no id",
    ),
    ("[XMail ", "{helo} (`(?<ip>\\[?`IP`\\]?)`:`\\d+`) by {by}` (?:\\(\\S+\\) )?`with [XMail", ""),
    ("(ecelerity", "([{ip}:`\\d+`] helo={helo}) by {by} ", ""),
    ("(ecelerity", "{_} ([{ip}:`\\d+`]) by {by} ", ""),
    ("Exim", "[{ip}] (`(?<inner>.*?)`) by {by} ", ""),
    ("Exim", "{both} ([{ip}]`(?<inner>.*?)`) by {by} ", ""),
    ("Exim", "{both} [{ip}]`(?::\\d+)?` by {by} ", ""),
    (" (Postfix) with", "{helo} ({rdns} `?`[{ip}]) by {by} ", "looked up, unknown"),
    ("(Scalix SMTP Relay", "{helo} (` ?`{ip}) by {by}", ""),
    (" (Lotus Domino ", "{helo} ([{ip}]) by {by} (Lotus", ""),
    (" with HTTP", "{ip} ([`IP`]) by {by}`(?=.*\\bwith HTTP\\b)`", ""),
    ("[", "{helo} ({rdns} [{ip}]`.*`) by {by} (`(?!qmail-\\S+\\) with )`", "looked up, ident in rdns"),
    ("[", "{helo} ({rdns} [{ip}]) by {by} with {_} (", "looked up"),
    ("] helo=", "{rdns} ([{ip}] helo={helo}) by {by} with ", ""),
    ("(<unknown", "{helo} (<unknown{_?}>[{ip}]) by {by} ", ""),
    ("[", "{helo} (`(?<rdns>\\S+\\.\\S+)`[{ip}]) by {by} ", "looked up"),
    ("@[", "{helo} ({ident?}@[{ip}]`.*`) by {by} (", "looked up"),
    (".hotmail.msn.com ", "`(?:(?=(?<ip>`IP`) ))?.*?by (?<by>\\S+\\.hotmail\\.msn\\.com) `", ""),
    ("(qpsmtpd/", "{rdns} (`[HE][EH]LO` {helo?}) ({ip}) by {by} (qpsmtpd/{_}) with `E?SMTP`", ""),
    ("(LHLO ", "{rdns} (LHLO {helo?}) ({ip}) by {by} with LMTP", ""),
    ("LO ", "{rdns} (`[HE][EH]LO` {helo?}) [{ip}] by {by} (`[^)]+`) with `E?SMTP`", ""),
    (" via smtpd (for ", "{helo} ([{ip}]) by {by} via smtpd (for {_}) with SMTP(", ""),
    // qmail
    (
        "LO ",
        "{rdns} (`[HE][EH]LO` `(?<helo>[^ ()]*)`) ({ident?}@`\\[?`{ip}`\\]?`)`QMAIL`",
        "looked up, unknown, not if unknown",
    ),
    ("LO ", "{rdns} (`[HE][EH]LO` `(?<helo>[^ ()]*)`) (`\\[?`{ip}`\\]?`)`QMAIL`", "looked up, unknown, not if unknown"),
    ("@", "{both} ({ident?}@`\\[?`{ip}`\\]?`)`QMAIL`", "looked up, unknown, not if unknown"),
    ("(", "{both} (`\\[?`{ip}`\\]?`)`QMAIL`", "looked up, unknown, not if unknown"),
    (" via HTTP", "[{ip}] by {by} via HTTP`$`", ""),
    ("( [", "{_} ( [{ip}])`.*?` by {by} ", ""),
    ("(", "({helo} [{ip}]) by {by} ", ""),
    ("[", "[{ip}] by {by} ", ""),
    ("(", "(`\\[?`{ip}`\\]?`) by {by} ", ""),
    ("[", "{helo} [{ip}] by {by} [`IP`] with ", "looked up"),
    ("[(", "{helo} [({ip})] by {by} (`IP`) ", ""),
    ("[", "{helo} ([{ip}]) by {by} (", "looked up"),
    ("[", "{helo} ({rdns} [{ip}])`.*?` by `(?<by>\\S+)\\b`", "looked up, softdnserr"),
    ("[", "{helo} ([{ip}`(?:[.:]\\d+)?`])`.*?` by {by} ", "looked up"),
];
/// Programs that fetch mail.
const FETCHERS: &[Row] = &[("with ", "...with `(?:POP3|IMAP)`", "")];
/// Forms that are tried behind those of programs that fetch mail.
const MORE: &[Row] = &[
    ("LO ", "{rdns} (`[HE][EH]LO` `(?<helo>[^)]*)`) (`(?:(?<ident>\\S*)@)?\\[?`{ip}`\\]?`)`.*` by {by} ", "looked up"),
    ("(", "{both} (`(?:(?<ident>\\S*)@)?\\[?`{ip}`\\]?`)`.*` by {by} ", "looked up"),
    (" with http for ", "[{ip}] by {by} with http for ", ""),
    (" via smap ", "{rdns}({ip}) by {by} via smap ", "looked up"),
    (" via smap ", "{rdns}({ip}, `[HE][EH]LO` {helo?}) by {by} via smap ", "looked up"),
    ("", "{ip} by {by} (`(?:SMTPL|InterScan)\\b`", ""),
];
/// Between them: a handover that is none.
const BATCH: &[Row] = &[
    (" with BSMTP", "{_} by {_} with BSMTP", ""),
    (" (Content Technologies ", "{_} ({_}) by {_} (Content Technologies ", ""),
];
/// And the rest of the forms of hosts.
const LAST: &[Row] = &[
    ("[", "{helo} ({rdns} [{ip}]) by {by} with ", "looked up"),
    ("LO ", "{rdns} (`[HE][EH]LO` {helo?}) (`(?:(?<ident>\\S+)@)?`{ip}`.*?`) by {by} with ", "looked up"),
    ("LO ", "[{ip}] (`(?:account \\S+ )?[HE][EH]LO` {helo?}) by {by} (", ""),
    ("] verified)", "{both} ([{ip}] verified) by {by} (`(?=.*CommuniGate Pro|CommuniGate Pro)`", "looked up"),
    ("([", "([{ip}]) by {by} with ", ""),
    ("(", "`(?<helo>\\D\\S+)` ({ip}) by {by} ", ""),
    ("] [", "{helo} ([{ip}] [{_}]) by {by} with ", ""),
    (" by ", "{ip} by {by} with ", ""),
    ("[", "{helo} ({rdns}[{ip}]) by {by} ", "looked up"),
    ("LO ", "[{ip}]{_} (`[HE][EH]LO` {helo?}) by {by} ", ""),
    ("LO ", "{ip} (`[HE][EH]LO` {helo?}) by {by} ", ""),
    ("[", "{helo} [{ip}] by {by} ", ""),
    ("(", "{rdns}({ip}) by {by} ", ""),
    ("(unverified [", "{helo} (unverified [{ip}]) by {by} ", ""),
    ("(", "{ip} (`[A-Za-z][^)]+`) by {by} with ", ""),
    ("[", "[{ip}] (`(?<inner>[^)]+)`) by {by} ", ""),
    ("(", "{rdns} (`(?:\\S+@)?`{ip}) by {by} with ", ""),
    (" via ", "{rdns}({ip})`(?:, claiming to be \"(?<helo>\\S+)\")?` via {_} by {by},", "looked up, claims"),
    (" with login) by ", "{helo} ({_}@{ip} with login) by `(?<by>\\S+\\.yahoo\\.com)` with SMTP", ""),
    ("X-Originating-IP: ", "X-Originating-IP: {ip}`(?<by>)$`", ""),
];
/// Handovers within a host, and those that tell nothing of one.
const LOCAL: &[Row] = &[
    ("@", "{_} (`[^\\s@]+@`LOCALHOST`\\) by \\S+ \\(`", ""),
    (" with local-", "{_} {_} by {_} with local-`e?smtp `", ""),
    ("AVG SMTP", "127.0.0.1 (AVG SMTP {_} [{_}])", ""),
    ("@", "`\\S+@\\S+ by \\S+ `", ""),
    ("Unknown/Local", "Unknown/Local (", ""),
    ("(", "`LOCALHOST` (`(?:\\S+@)?`LOCALHOST`[)\\[]`", ""),
    ("(", "{_} (`(?:\\S+@)?`LOCALHOST`\\) `", ""),
    ("@", "{_} ({_}@{_} [`LOCALHOST`])", ""),
    ("(AUTH: ", "(AUTH: {_}) by {_} with ", ""),
    ("UNIX: localhost", "localhost (localhost [[UNIX: localhost]]) by ", ""),
    ("(peer crosscheck: ", "`\\S+\\.amazon\\.com by \\S+\\.amazon\\.com with ESMTP \\(peer crosscheck: `", ""),
    ("Novell_GroupWise", "`[^.]+ by \\S+ with Novell_GroupWise`", ""),
    ("no.name.available", "no.name.available by {_} via smtpd (for ", ""),
];
const SCANNERS: &[Row] = &[("qmail-scanner", "{_} by {_} (`.{0,100}`) with qmail-scanner", "")];
const LOCAL_LAST: &[Row] = &[
    (" with local", "{_} by {_} with local", ""),
    ("[unix socket]", "{_} ([unix socket]) by {_} (Cyrus v`[0-9]*?\\.[0-9]*?\\.[0-9]*?`) with LMTPA", ""),
    (" by ", "{_} by {_} `(?:with|via|for|\\()`", ""),
    (" by", "{_} `(?:(?:with|via|for) \\S+|\\(unverified\\)) by\\b`", ""),
    ("(unknown) by ", "{_} (unknown) by {_} (SG) with `\\b`", ""),
    ("(OpenSMTPD)", "{_} ({_} [local]) by {_} (OpenSMTPD) with `\\b`", ""),
    ("(LSMTP for", "...(LSMTP for", ""),
    ("with MailEnable ", "([`LOCALHOST`]) with MailEnable ", ""),
    ("with Thrift id ", "facebook.com (`[^)]+`) by facebook.com with Thrift id `\\S+$`", ""),
    ("gmailapi.google.com", "{_} named {_} by gmailapi.google.com with HTTPREST`$`", ""),
    (" id ", "`\\S+ id \\S+$`", ""),
    (" (Jetsend", "[<`.*?` (Jetsend", ""),
];
/// Before the rest of the forms.
const PICKUP: &[Row] = &[(" SMTPSVC", "mail pickup service by {_} with Microsoft SMTPSVC`$`", "")];
const EXIM_LOCAL: &[Row] = &[("Exim", "...`\\b`with local`(?:-\\S+)? `", "")];
/// Pattern for fields of Exim that have none of its forms.
const EXIM_PARTS: &[Row] = &[(
    "Exim",
    "`(?<rdns>\\S+) (?:(?=.*? \\((?<helo>\\S+)\\) ))?(?:(?=.*? \\[(?<ip>`IP`)(?:\\.\\d+)?\\] ))?(?=.*?by (?<by>\\S+) )`",
    "",
)];
const CAPITALS: &[Row] = &[(
    "",
    "{helo} ({rdns} [{ip}]) BY {by} `(?:\\([^)]+\\) WITH SMTP )?ID <?(?<id>\\S+?)>?(?: FOR <[^>]+>)?$`",
    "looked up, unverified",
)];
const PARENTHESIS: &[Row] = &[("", "{helo?} [{ip}]) by {by} (NAVGW `.*?`) with ", "")];
const PARENTHESIS_LOCAL: &[Row] =
    &[("", "`\\S+@localhost\\) by \\S+ `", ""), ("", "`[^\\s@]+@[^)]+\\) by \\S+\\(jqueuemail\\) id [^\\s;]+`", "")];
/// Text after the address in fields of qmail.
const QMAIL: &str = r"(?: \(envelope-sender <\S+>\))? by (?<by>\S+)(?: \(.+\))* with (?:.* )?(?:SMTP|QMQP)(?! id )";

/// All forms, in order.
pub(super) fn all() -> &'static [Form] {
    static FORMS: LazyLock<Vec<Form>> = LazyLock::new(|| {
        let lists: [(Start, Outcome, &[Row]); 15] = [
            (Start::From, Outcome::Local, PICKUP),
            (Start::From, Outcome::Local, EXIM_LOCAL),
            (Start::From, Outcome::Relay, &RELAYS[..EXIM_END]),
            (Start::From, Outcome::IfAddress, EXIM_PARTS),
            (Start::From, Outcome::Relay, &RELAYS[EXIM_END..]),
            (Start::From, Outcome::Fetched, FETCHERS),
            (Start::From, Outcome::Relay, MORE),
            (Start::From, Outcome::Local, BATCH),
            (Start::From, Outcome::Relay, LAST),
            (Start::From, Outcome::Local, LOCAL),
            (Start::From, Outcome::LocalFrom, SCANNERS),
            (Start::From, Outcome::Local, LOCAL_LAST),
            (Start::Capitals, Outcome::Relay, CAPITALS),
            (Start::Parenthesis, Outcome::Relay, PARENTHESIS),
            (Start::Parenthesis, Outcome::Local, PARENTHESIS_LOCAL),
        ];
        let form = |start, outcome, &(needed, text, traits): &Row| {
            let known = Known::new(needed, &translate(text), Flags::NONE);
            Form { start, outcome, known, traits }
        };
        let of = |(start, outcome, rows): (Start, Outcome, &'static [Row])| {
            rows.iter().map(move |row| form(start, outcome, row))
        };
        lists.into_iter().flat_map(of).collect()
    });
    &FORMS
}

/// The forms up to those of Exim.
const EXIM_END: usize = 10;

/// An address in brackets, anywhere.
pub(super) fn in_brackets() -> &'static Known {
    static EXPRESSION: LazyLock<Known> = LazyLock::new(|| Known::new("[", &format!(r"\[({IP})\]"), Flags::NONE));
    &EXPRESSION
}

/// A form as an expression.
fn translate(text: &str) -> String {
    let (mut out, text) = match text.strip_prefix("...") {
        Some(rest) => (String::new(), rest),
        None => (String::from("^"), text),
    };
    // What is between backticks, every second piece, is an expression already.
    for (place, piece) in text.split('`').enumerate() {
        match piece {
            "IP" => out.push_str(IP),
            "LOCALHOST" => out.push_str(LOCALHOST),
            "QMAIL" => out.push_str(QMAIL),
            piece if place % 2 == 1 => out.push_str(piece),
            piece => literal(piece, &mut out),
        }
    }
    out
}

fn literal(text: &str, out: &mut String) {
    let mut rest = text;
    while let Some(letter) = rest.chars().next() {
        if let Some((name, behind)) = rest.strip_prefix('{').and_then(|inner| inner.split_once('}')) {
            let (name, count) = name.strip_suffix('?').map_or((name, '+'), |name| (name, '*'));
            match name {
                "_" => out.push_str(&format!(r"\S{count}")),
                "ip" => out.push_str(&format!("(?<ip>{IP})")),
                name => out.push_str(&format!(r"(?<{name}>\S{count})")),
            }
            rest = behind;
            continue;
        }
        if !letter.is_ascii_alphanumeric() && letter != ' ' {
            out.push('\\');
        }
        out.push(letter);
        rest = &rest[letter.len_utf8()..];
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pattern::expression::Expression;

    #[test]
    fn each_form_is_an_expression() {
        let mut rows = [RELAYS, FETCHERS, MORE, BATCH, LAST, LOCAL, SCANNERS, LOCAL_LAST, PICKUP, EXIM_LOCAL].concat();
        rows.extend_from_slice(&[EXIM_PARTS, CAPITALS, PARENTHESIS, PARENTHESIS_LOCAL].concat());
        for (_, text, _) in rows {
            let expression = Expression::new(translate(text).as_bytes(), Flags::NONE);
            assert!(expression.is_ok(), "{text}: {expression:?}");
        }
        assert!(RELAYS[EXIM_END - 1].0 == "Exim" && RELAYS[EXIM_END].0 != "Exim");
    }
}
