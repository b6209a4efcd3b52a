//! The functions that rules call by `eval:NAME(...)`.
//!
//! Each group is a module with a table of [`Function`]s; [`find`] looks in all of them. A function that is in no table
//! makes its rules disabled, and `sluice rules lint` lists them.
//!
//! To add one: write `fn name(context: &Context<'_>, arguments: &Arguments<'_>) -> f64` in its group, where 0 is no hit and
//! everything else how often the rule counts, and put it into the group's table.

mod authentic;
mod authres;
mod freemail;
mod from_name;
mod fuzzy;
mod header;
mod learned;
mod locale;
mod network;
mod page;
mod pdf;
mod relay;
mod short;
mod site;
mod times;
mod welcome;

pub use times::received_at;

use core::cell::OnceCell;

use flow::Alike;
use pattern::expression::Flags;

use super::authentic::Known;
use super::header::{Fields, Path};
use super::message::{self, Message};
use super::recalled::Recalled;
use super::rule::View;
use super::search::{Budget, Pooled};
use super::settings::Settings;
use super::syntax::call::Call;
use super::syntax::expression::Expression;
use crate::spam::map::HashSet;

/// A function that rules call.
#[derive(Clone, Copy)]
pub struct Function {
    /// Its name.
    pub name: &'static str,
    /// Implementation.
    pub does: Does,
}

/// Implementation of a function.
#[derive(Clone, Copy)]
pub enum Does {
    /// It looks at the mail: 0 is no hit, all else how often the rule counts.
    Look(fn(&Context<'_>, &Arguments<'_>) -> f64),
    /// It looks at the views of the mail alone ([`super::message::eval`]).
    View(message::eval::View),
    /// Looks at the reputation of the sender; not called if that is unknown.
    Know(fn(&Context<'_>, &Arguments<'_>, &Known<'_>) -> f64),
    /// It asks lists in the DNS: its rules are decided by [`network`](crate::spam::network).
    List,
    /// It would ask services in the network; it never matches.
    Ask,
    /// It asks what was learned: it is not called where too little was.
    Recall(fn(&Context<'_>, &Arguments<'_>, &Recalled) -> f64),
    /// It asks what the sender is known for: its rule is decided when all others are.
    Reputation,
}

impl std::fmt::Debug for Function {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(to, "Function({})", self.name)
    }
}

/// A function that looks at the mail.
pub(crate) const fn look(name: &'static str, does: fn(&Context<'_>, &Arguments<'_>) -> f64) -> Function {
    Function { name, does: Does::Look(does) }
}

/// A function that looks at who has sent the mail.
pub(crate) const fn know(name: &'static str, does: fn(&Context<'_>, &Arguments<'_>, &Known<'_>) -> f64) -> Function {
    Function { name, does: Does::Know(does) }
}

/// A function that asks lists in the DNS.
pub(crate) const fn list(name: &'static str) -> Function {
    Function { name, does: Does::List }
}

/// A function that asks others.
pub(crate) const fn ask(name: &'static str) -> Function {
    Function { name, does: Does::Ask }
}

/// All groups.
const GROUPS: [&[Function]; 15] = [
    authentic::FUNCTIONS,
    authres::FUNCTIONS,
    freemail::FUNCTIONS,
    from_name::FUNCTIONS,
    fuzzy::FUNCTIONS,
    header::FUNCTIONS,
    learned::FUNCTIONS,
    locale::FUNCTIONS,
    network::FUNCTIONS,
    page::FUNCTIONS,
    pdf::FUNCTIONS,
    relay::FUNCTIONS,
    short::FUNCTIONS,
    site::FUNCTIONS,
    welcome::FUNCTIONS,
];

/// The function of a name, for rules over that view.
pub fn find(name: &str, over: View) -> Option<Function> {
    let known = GROUPS.into_iter().flatten().copied().find(|function| function.name == name);
    known.or_else(|| message::eval::find(name, over).map(|(name, does)| Function { name, does: Does::View(does) }))
}

/// All functions.
pub fn all() -> impl Iterator<Item = Function> {
    let views = message::eval::all().map(|(name, does)| Function { name, does: Does::View(does) });
    GROUPS.into_iter().flatten().copied().chain(views)
}

impl Does {
    /// Calls the function; none if its answer has to come from outside.
    pub fn call(self, context: &Context<'_>, arguments: &Arguments<'_>) -> Option<f64> {
        match self {
            Does::Look(function) => Some(function(context, arguments)),
            Does::View(function) => Some(function(context.mail, arguments.values)),
            Does::Know(function) => context.known.map(|known| function(context, arguments, &known)),
            Does::Recall(function) => context.recalled.map(|recalled| function(context, arguments, &recalled)),
            Does::List | Does::Ask | Does::Reputation => None,
        }
    }
}

/// Arguments of a call.
#[derive(Debug)]
pub struct Arguments<'a> {
    /// The rule's name.
    pub rule: &'a str,
    values: &'a [Box<[u8]>],
    /// The first argument as an expression, where it was made one before.
    expressions: &'a [Option<Pooled>],
}

impl<'a> Arguments<'a> {
    /// Arguments of a call, with the expressions that [`compiled`] made of them.
    pub(crate) fn new(rule: &'a str, call: &'a Call, expressions: &'a [Option<Pooled>]) -> Arguments<'a> {
        Arguments { rule, values: &call.arguments, expressions }
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.values.len()
    }

    /// Whether there is no argument.
    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    /// An argument, by its place.
    pub fn get(&self, place: usize) -> Option<&'a [u8]> {
        self.values.get(place).map(|value| &**value)
    }

    /// An argument as text; empty where it is none.
    pub fn text(&self, place: usize) -> &'a str {
        self.get(place).and_then(|value| core::str::from_utf8(value).ok()).unwrap_or_default()
    }

    /// An argument as a number, as Perl reads one: what begins as one is one, all else is 0.
    pub fn number(&self, place: usize) -> f64 {
        let text = self.text(place).trim_start();
        let end = text
            .bytes()
            .enumerate()
            .take_while(|&(at, byte)| byte.is_ascii_digit() || byte == b'.' || (at == 0 && b"+-".contains(&byte)));
        text.get(..end.count()).and_then(|digits| digits.parse().ok()).unwrap_or(0.0)
    }

    /// A bound: `None` where it is `undef`.
    pub fn bound(&self, place: usize) -> Option<f64> {
        (self.text(place) != "undef").then(|| self.number(place))
    }

    /// An argument as an expression; `None` where it is none.
    pub(crate) fn expression(&self, place: usize) -> Option<&'a Pooled> {
        self.expressions.get(place).and_then(Option::as_ref)
    }
}

/// Arguments as expressions: those of functions that take one.
pub(crate) fn compiled(call: &Call) -> Vec<Option<Pooled>> {
    let name = &*call.function;
    let takes = freemail::TAKES_EXPRESSION.contains(&name) || page::TAKES_EXPRESSION.contains(&name);
    if pdf::TAKES_EXPRESSION.contains(&name) {
        return call.arguments.iter().map(|argument| delimited(argument)).collect();
    }
    if !takes {
        return Vec::new();
    }
    call.arguments.iter().map(|argument| Pooled::new(argument, Flags::NONE).ok()).collect()
}

/// An expression in delimiters, with its flags.
fn delimited(argument: &[u8]) -> Option<Pooled> {
    let expression = Expression::read(argument).ok()?;
    Pooled::new(&expression.source, Flags::of(&expression.flags).ok()?).ok()
}

/// Context of a function: the mail, its header and path, and the settings.
pub struct Context<'m> {
    /// The mail.
    pub mail: &'m Message,
    /// Its header.
    pub fields: &'m Fields<'m>,
    /// Its path.
    pub path: &'m Path,
    /// The settings.
    pub settings: &'m Settings,
    /// Now, in seconds since 1970.
    pub now: i64,
    /// Authentication results, if the mail was checked.
    pub known: Option<Known<'m>>,
    /// Bayes result; none where too little is learned.
    pub recalled: Option<Recalled>,
    /// Similarity to reported mails; `None` if they were not compared.
    pub alike: Option<Alike>,
    /// Remaining budget of searches by functions.
    pub(crate) budget: &'m core::cell::RefCell<Budget>,
    pub(super) senders: OnceCell<Vec<Box<[u8]>>>,
    pub(super) addressed: OnceCell<Vec<Box<[u8]>>>,
    pub(super) spf: OnceCell<authentic::Told>,
    pub(super) written: OnceCell<authres::Results>,
    pub(super) pdf: OnceCell<pdf::Facts>,
    pub(super) dates: OnceCell<times::Dates>,
    pub(super) recipients: OnceCell<header::Recipients>,
    pub(super) hotmail: OnceCell<header::Hotmail>,
    pub(super) forged: OnceCell<relay::Forged>,
    pub(super) body_freemail: OnceCell<Option<Vec<Box<[u8]>>>>,
    pub(super) from_name: OnceCell<from_name::FromName>,
    pub(super) notes: core::cell::RefCell<Vec<Box<[u8]>>>,
}

impl<'m> Context<'m> {
    /// Context for a mail.
    pub(crate) fn new(
        mail: &'m Message,
        fields: &'m Fields<'m>,
        path: &'m Path,
        settings: &'m Settings,
        now: i64,
        budget: &'m core::cell::RefCell<Budget>,
    ) -> Context<'m> {
        Context {
            mail,
            fields,
            path,
            settings,
            now,
            known: None,
            recalled: None,
            alike: None,
            budget,
            senders: OnceCell::new(),
            addressed: OnceCell::new(),
            spf: OnceCell::new(),
            written: OnceCell::new(),
            pdf: OnceCell::new(),
            dates: OnceCell::new(),
            recipients: OnceCell::new(),
            hotmail: OnceCell::new(),
            forged: OnceCell::new(),
            body_freemail: OnceCell::new(),
            from_name: OnceCell::new(),
            notes: core::cell::RefCell::default(),
        }
    }

    /// Whether an expression matches; not, where the search costs too much.
    pub(crate) fn matches(&self, expression: &Pooled, text: &[u8]) -> bool {
        let mut budget = self.budget.borrow_mut();
        expression.with_search(|search| budget.find(search, text, 0).is_ok_and(|found| found.is_some()))
    }

    /// Adds a note to the rule that is being run: what is shown below it in a report.
    pub(crate) fn note(&self, text: &[u8]) {
        self.notes.borrow_mut().push(text.into());
    }

    /// The addresses that the mail says it is from, each once.
    pub(crate) fn senders(&self) -> &[Box<[u8]>] {
        self.senders.get_or_init(|| self.find_senders())
    }

    fn find_senders(&self) -> Vec<Box<[u8]>> {
        let resent = self.fields.values("Resent-From:first:addr");
        let mut found: Vec<Box<[u8]>> = Vec::new();
        if !resent.is_empty() {
            found.extend(resent.iter().cloned());
        } else {
            for name in
                ["From:addr", "Envelope-Sender:addr", "Resent-Sender:addr", "X-Envelope-From:addr", "EnvelopeFrom:addr"]
            {
                let all = self.fields.values(name);
                found.extend(all.iter().filter(|address| !address.is_empty()).map(|address| single_dots(address)));
            }
        }
        distinct(found)
    }

    /// The addresses that it is to.
    pub(crate) fn recipients_of(&self) -> &[Box<[u8]>] {
        self.addressed.get_or_init(|| self.find_recipients())
    }

    fn find_recipients(&self) -> Vec<Box<[u8]>> {
        let values = |name: &str| self.fields.values(name).to_vec();
        let resent = [values("Resent-To:first:addr"), values("Resent-Cc:first:addr")].concat();
        if !resent.is_empty() {
            return distinct(resent);
        }
        const NAMES: [&str; 12] = [
            "To:addr",
            "Apparently-To:addr",
            "Delivered-To:addr",
            "Envelope-Recipients:addr",
            "Apparently-Resent-To:addr",
            "X-Envelope-To:addr",
            "Envelope-To:addr",
            "X-Delivered-To:addr",
            "X-Original-To:addr",
            "X-Rcpt-To:addr",
            "X-Real-To:addr",
            "Cc:addr",
        ];
        let received = self.fields.values("Received");
        let mut found: Vec<Box<[u8]>> = received.iter().take(3).filter_map(|field| received_for(field)).collect();
        found.extend(NAMES.into_iter().flat_map(values));
        distinct(found)
    }
}

/// ` for <ADDRESS>;` in a field of the path.
fn received_for(field: &[u8]) -> Option<Box<[u8]>> {
    const MARK: &[u8] = b" for ";
    let places = field.windows(MARK.len()).enumerate().filter(|(_, window)| *window == MARK);
    places.map(|(at, _)| &field[at + MARK.len()..]).find_map(|rest| {
        let rest = rest.strip_prefix(b"<").unwrap_or(rest);
        let word = rest.split(u8::is_ascii_whitespace).next()?;
        let address = word.get(..word.iter().position(|&byte| byte == b';')?)?;
        let address = address.strip_suffix(b">").unwrap_or(address);
        let host = address.rsplit(|&byte| byte == b'@').next()?;
        let is_address = host.len() + 1 < address.len() && super::message::is_host(&super::message::ascii(host));
        is_address.then(|| address.into())
    })
}

fn single_dots(address: &[u8]) -> Box<[u8]> {
    let mut out: Vec<u8> = Vec::with_capacity(address.len());
    for &byte in address {
        if !(byte == b'.' && out.last() == Some(&b'.')) {
            out.push(byte);
        }
    }
    out.into()
}

fn distinct(mut all: Vec<Box<[u8]>>) -> Vec<Box<[u8]>> {
    let mut seen = HashSet::default();
    all.retain(|address| seen.insert(address.clone()));
    all
}

/// 1 where it holds.
pub(crate) fn truth(holds: bool) -> f64 {
    f64::from(u8::from(holds))
}

#[cfg(test)]
mod tests {
    #[test]
    fn each_function_is_in_one_table() {
        let mut names: Vec<_> = super::all().map(|function| function.name).collect();
        let count = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), count);
    }
}
