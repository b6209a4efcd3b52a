//! The envelope of a mail that waits, with what became of its recipients so far: a note of the store beside the one copy of the
//! content, lines of text. It is decoded when it is indexed and when it is tried.

use proto::smtp::{MailFrom, RcptTo, Return};

use crate::relay::{Fate, Patience};

/// A mail that waits.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Entry {
    /// Since when it waits, seconds since 1970.
    pub since: i64,
    /// The sender of the envelope, empty for the null sender.
    pub from: String,
    /// The account whose script redirected it, or that has written it; empty for what is made or relayed here.
    pub account: String,
    /// The address that it came for.
    pub address: String,
    /// Fields that are put in front of it.
    pub trace: String,
    /// Bytes at its beginning that are not sent.
    pub skipped: u64,
    /// How much comes back with a notification: `RET=`.
    pub ret: Option<Return>,
    /// `ENVID=`, in xtext; empty if there is none.
    pub envid: String,
    /// `SMTPUTF8` was asked for.
    pub smtputf8: bool,
    /// `REQUIRETLS` was asked for.
    pub require_tls: bool,
    /// It was made here: an answer, or a notice.
    pub is_answer: bool,
    /// The account has it as well.
    pub is_stored: bool,
    /// It was taken for spam.
    pub is_spam: bool,
    /// The account has written it: it is told what does not go out.
    pub is_written: bool,
    /// It is not tried until it is released.
    pub is_held: bool,
    /// A door of the gateway has inspected it.
    pub is_inspected: bool,
    /// A command on this machine has written it, or a client inside, whose mail is relayed.
    pub is_local: bool,
    /// Its sender wants it to be sent later: it waits since then.
    pub is_scheduled: bool,
    /// The sender has been told that it waits.
    pub is_warned: bool,
    /// Recipients that wait.
    pub recipients: Vec<Recipient>,
}

/// A recipient that waits.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Recipient {
    /// The address.
    pub to: String,
    /// When it is tried next.
    pub due: i64,
    /// How often it was tried.
    pub tries: u32,
    /// Why it was not taken the last time.
    pub why: String,
    /// The host that has said so; empty if none has.
    pub host: String,
    /// `NOTIFY=`; empty if nothing was asked for.
    pub notify: String,
    /// `ORCPT=`, as it came; empty if there is none.
    pub orcpt: String,
    /// An operator gives it up, if the attempt that was under way then has not sent it.
    pub is_given_up: bool,
}

/// The time of a recipient that an operator gives up: due at once, for earlier versions as well.
const GIVEN_UP: i64 = -2;

/// Bytes of a reason that are noted.
const WHY_BYTES_MAX: usize = 300;

/// The first line of an entry.
const VERSION: &str = "2";

impl Entry {
    /// A mail of ours from the null sender.
    pub(crate) fn answer(to: String, now: i64) -> Entry {
        Entry { since: now, is_answer: true, recipients: vec![Recipient::new(to, now)], ..Entry::default() }
    }

    /// The destinations of its recipients, each once.
    pub fn destinations(&self) -> Vec<&str> {
        let mut all: Vec<&str> = self.recipients.iter().map(Recipient::destination).collect();
        all.sort_unstable();
        all.dedup();
        all
    }

    /// When recipients of a destination are tried next. A wait that is longer than any was noted by a clock that was ahead: it is over.
    pub(crate) fn due(&self, destination: &str, patience: Patience, now: i64) -> Option<i64> {
        let due = self.recipients.iter().filter(|one| one.destination() == destination).map(|one| one.due).min()?;
        let is_ahead = !self.is_sent_later(now) && due.saturating_sub(now) > patience.longest.max(patience.first);
        Some(if is_ahead { now } else { due })
    }

    /// Whether its sender wants it to wait longer.
    pub(crate) const fn is_sent_later(&self, now: i64) -> bool {
        self.is_scheduled && self.since > now
    }

    /// When it is to be looked at, whatever its destinations do: the sender is warned, or it is given up.
    pub(crate) fn alarm(&self, patience: Patience) -> i64 {
        let warns = patience.warning > 0 && !self.is_warned && self.has_sender();
        let wait = if warns { patience.warning.min(patience.whole) } else { patience.whole };
        self.since.saturating_add(wait)
    }

    /// Whether its sender may be told something: not nobody, and not of a script's redirect, which has not been asked for.
    pub(crate) fn has_sender(&self) -> bool {
        !self.from.is_empty() && (self.is_written || self.account.is_empty() && !self.is_answer)
    }

    /// Whether it has been written here, and no door need have seen it.
    pub(crate) const fn is_ours(&self) -> bool {
        self.is_written || self.is_local
    }

    /// The sender as the next hop is told.
    pub(crate) fn mail(&self) -> Option<MailFrom> {
        let envid = (!self.envid.is_empty()).then(|| self.envid.clone());
        Some(MailFrom {
            path: with_domain_in_ascii(&self.from).parse().ok()?,
            ret: self.ret,
            envid,
            require_tls: self.require_tls,
            ..MailFrom::default()
        })
    }

    pub(crate) fn encode(&self) -> Vec<u8> {
        let flags = [
            self.is_answer,
            self.is_stored,
            self.is_spam,
            self.is_written,
            self.is_held,
            self.is_warned,
            self.smtputf8,
            self.ret == Some(Return::Full),
            self.ret == Some(Return::Headers),
            self.is_inspected,
            self.is_local,
            self.require_tls,
            self.is_scheduled,
        ];
        let flags = String::from_iter(flags.map(|flag| if flag { '1' } else { '0' }));
        let Entry { since, skipped, from, account, address, envid, .. } = self;
        let count = self.recipients.len();
        let mut text = format!("{VERSION}\n{since}\n{skipped}\n{flags}\n{count}\n");
        let mut line = |line: &str| {
            text.extend(line.chars().map(|character| if character.is_control() { ' ' } else { character }));
            text.push('\n');
        };
        [from, account, address, envid].into_iter().for_each(|text| line(text));
        for Recipient { to, due, tries, why, host, notify, orcpt, is_given_up } in &self.recipients {
            let due = if *is_given_up { &GIVEN_UP } else { due };
            line(&format!("{due} {tries} {host}"));
            [to, notify, orcpt, why].into_iter().for_each(|text| line(text));
        }
        text.push_str(&self.trace);
        text.into_bytes()
    }

    pub(crate) fn decode(bytes: &[u8]) -> Option<Entry> {
        let mut rest = std::str::from_utf8(bytes).ok()?;
        let mut line = || {
            let (line, behind) = rest.split_once('\n')?;
            rest = behind;
            Some(line)
        };
        line().filter(|&version| version == VERSION)?;
        let mut entry = Entry { since: line()?.parse().ok()?, skipped: line()?.parse().ok()?, ..Entry::default() };
        let flags = line()?.as_bytes();
        let is_set = |at: usize| flags.get(at) == Some(&b'1');
        [entry.is_answer, entry.is_stored, entry.is_spam, entry.is_written] = [0, 1, 2, 3].map(is_set);
        [entry.is_held, entry.is_warned, entry.smtputf8, entry.is_inspected] = [4, 5, 6, 9].map(is_set);
        [entry.is_local, entry.require_tls, entry.is_scheduled] = [10, 11, 12].map(is_set);
        entry.ret = is_set(7).then_some(Return::Full).or(is_set(8).then_some(Return::Headers));
        let count: usize = line()?.parse().ok()?;
        let mut text = || line().map(str::to_owned);
        (entry.from, entry.account, entry.address, entry.envid) = (text()?, text()?, text()?, text()?);
        for _ in 0..count {
            let times = text()?;
            let mut times = times.splitn(3, ' ');
            let (due, tries) = (times.next()?.parse().ok()?, times.next()?.parse().ok()?);
            let host = times.next().unwrap_or_default().to_owned();
            let (to, notify, orcpt, why) = (text()?, text()?, text()?, text()?);
            let is_given_up = due == GIVEN_UP;
            entry.recipients.push(Recipient { to, due, tries, why, host, notify, orcpt, is_given_up });
        }
        entry.trace = rest.to_owned();
        Some(entry)
    }
}

impl Recipient {
    /// A recipient that is due. Its domain becomes lower case, in ASCII.
    pub fn new(to: String, due: i64) -> Recipient {
        Recipient { to: with_domain_in_ascii(&to), due, ..Recipient::default() }
    }

    /// Its domain as the index has it; an address literal and an address without a domain are their own.
    pub fn destination(&self) -> &str {
        self.to.rsplit_once('@').map_or(&*self.to, |(_, domain)| domain)
    }

    /// As the next hop is told.
    pub(crate) fn rcpt(&self) -> Option<RcptTo> {
        let given = |text: &String| (!text.is_empty()).then(|| text.clone());
        Some(RcptTo { path: self.to.parse().ok()?, notify: given(&self.notify), orcpt: given(&self.orcpt) })
    }

    /// Whether the sender is told of this: `SUCCESS`, `FAILURE` or `DELAY`. Without a word of it, of failures and delays.
    pub(crate) fn notifies(&self, of: &str) -> bool {
        let asked = self.notify.split(',').any(|word| word.eq_ignore_ascii_case(of));
        asked || self.notify.is_empty() && of != "SUCCESS"
    }

    /// As it waits on when it was not taken.
    pub(crate) fn after(&mut self, fate: &Fate, patience: Patience, now: i64) {
        if self.is_given_up {
            return;
        }
        let doublings = self.tries.min(30);
        let wait = patience.first.saturating_mul(1i64 << doublings).min(patience.longest);
        self.tries = self.tries.saturating_add(1);
        self.due = now.saturating_add(wait);
        self.host = fate.host.clone().unwrap_or_default();
        self.why = words_of(fate);
        while self.why.len() > WHY_BYTES_MAX {
            self.why.pop();
        }
    }
}

/// Why something waits: the words of a host, which begin with its numbers, or ours with the status.
pub(crate) fn words_of(Fate { host, status: (class, subject, detail), why, .. }: &Fate) -> String {
    match host {
        Some(_) => why.clone(),
        None => format!("{class}.{subject}.{detail} {why}"),
    }
}

/// An address with its domain in lower case, and in ASCII (RFC 5890): so it is looked up, and servers without SMTPUTF8 can be told of it.
fn with_domain_in_ascii(address: &str) -> String {
    let Some((local, domain)) = address.rsplit_once('@') else { return address.to_owned() };
    let mapped = if domain.is_ascii() { None } else { text::host::mapped(domain) };
    format!("{local}@{}", mapped.unwrap_or_else(|| domain.to_ascii_lowercase()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_noted_comes_back() {
        let recipient = |to: &str| Recipient {
            notify: "FAILURE,DELAY".into(),
            host: "mx.test".into(),
            ..Recipient::new(to.into(), -5)
        };
        let entry = Entry {
            from: "eve@example.org".into(),
            envid: "a+2Bb".into(),
            ret: Some(Return::Headers),
            trace: "X: a\r\nY: b\r\n".into(),
            is_spam: true,
            is_written: true,
            is_held: true,
            is_inspected: true,
            is_local: true,
            require_tls: true,
            is_scheduled: true,
            skipped: 7,
            recipients: vec![recipient("a@b"), Recipient { due: GIVEN_UP, is_given_up: true, ..recipient("c@d") }],
            ..Entry::answer("carl@example.net".into(), -5)
        };
        assert_eq!(Entry::decode(&entry.encode()), Some(entry.clone()));
        let encoded = entry.encode();
        assert!((0..encoded.len() - 12).all(|length| Entry::decode(&encoded[..length]) != Some(entry.clone())));
        let torn = Entry { envid: "a\nb".into(), trace: String::new(), ..entry };
        assert_eq!(Entry::decode(&torn.encode()).unwrap().envid, "a b", "a value cannot add a line");
        assert_eq!(Entry::decode(b"1\n2\n3"), None);
    }

    #[test]
    fn a_wait_of_a_clock_that_was_ahead_is_over() {
        let patience = Patience { first: 60, longest: 3_600, ..Patience::default() };
        let (now, day) = (1_000_000, 86_400);
        let entry = |due| Entry { recipients: vec![Recipient::new("a@b.test".into(), due)], ..Entry::default() };
        for (due, wanted) in [(now + 3_600, now + 3_600), (now + 3 * day, now), (now - 5, now - 5)] {
            assert_eq!(entry(due).due("b.test", patience, now), Some(wanted));
        }
        let later = Entry { is_scheduled: true, since: now + 3 * day, ..entry(now + 3 * day) };
        assert_eq!(later.due("b.test", patience, now), Some(now + 3 * day), "its sender wants that");
    }

    #[test]
    fn domains_beyond_ascii_are_told_in_ascii() {
        assert_eq!(Recipient::new("J\u{f6}rg@B\u{dc}CHER.Example".into(), 0).to, "J\u{f6}rg@xn--bcher-kva.example");
        let entry = Entry { from: "ann@b\u{fc}cher.example".into(), ..Entry::default() };
        assert_eq!(entry.mail().unwrap().path.as_str(), "ann@xn--bcher-kva.example");
    }

    #[test]
    fn each_wait_is_twice_the_one_before() {
        let patience = Patience { first: 60, longest: 200, ..Patience::default() };
        let mut recipient = Recipient::new("carl@example.net".into(), 0);
        for wait in [60, 120, 200, 200] {
            let fate = Fate { host: Some("mx.test".into()), ..Fate::later((4, 0, 0), "x".repeat(1_000)) };
            recipient.after(&fate, patience, 1_000);
            assert_eq!(recipient.host, "mx.test");
            assert_eq!((recipient.due - 1_000, recipient.why.len()), (wait, WHY_BYTES_MAX));
        }
        assert_eq!(recipient.tries, 4);
    }

    #[test]
    fn of_what_nothing_is_said_failures_and_delays_are_told() {
        let told = |notify: &str| {
            let recipient = Recipient { notify: notify.into(), ..Recipient::default() };
            ["SUCCESS", "FAILURE", "DELAY"].map(|of| recipient.notifies(of))
        };
        assert_eq!(told(""), [false, true, true]);
        assert_eq!(told("NEVER"), [false; 3]);
        assert_eq!(told("success,DELAY"), [true, false, true]);
    }
}
