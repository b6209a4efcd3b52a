//! Users: mailboxes and aliases become accounts, tables of databases and directories `[[lookup]]`.
//!
//! Accounts are commands in comments, since nobody knows their passwords here. Aliases are followed to their mailboxes ([`aliases`]). A user
//! of the machine has an account of the same name; where there are other domains, of its address, since a name alone is one in all domains.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::Path;

use serde_json::json;

use super::aliases::{Aliases, Target, targets};
use super::draft::Part;
use super::queries::lookup;
use super::tables::{Contents, Entry, shown};
use super::translation::Translation;
use super::ways::with_subdomains;

/// Accounts that are listed.
const ACCOUNTS_MAX: usize = 10_000;

/// Addresses on the ways of all aliases.
const STEPS_MAX: usize = 1_000_000;

/// Accounts by name, with their aliases.
type Accounts = BTreeMap<String, BTreeSet<String>>;

/// The users of a mail server, as the tables have them.
#[derive(Default)]
struct People {
    domains: BTreeSet<String>,
    mailboxes: Vec<Entry>,
    /// Entries of `virtual_alias_maps`.
    virtuals: Vec<Entry>,
    /// Entries of `alias_maps`.
    locals: Vec<Entry>,
    lookups: Vec<String>,
}

/// Accounts of a mail server.
pub fn accounts(work: &mut Translation<'_>) {
    let mut people = People::default();
    let here = domains(work, &mut people);
    users(work);
    for name in ["virtual_mailbox_maps", "local_recipient_maps", "virtual_alias_maps"] {
        read(work, name, &mut people);
    }
    match here.is_empty() || is_elsewhere(work) {
        true => work.done("alias_maps"),
        false => read(work, "alias_maps", &mut people),
    }
    declared(work, &mut people);
    let aliases = aliases(work, &people, here);
    delimiter(work, "+");
    if !people.lookups.is_empty() {
        work.draft.key(Part::Store, "lookups", &json!(people.lookups), None);
    }
    let accounts = resolved(work, &people, &aliases);
    list(work, &people.domains, &accounts);
}

/// Collects the domains with mail here; those of `mydestination` that are not of the loopback, or the host if all are.
fn domains(work: &mut Translation<'_>, people: &mut People) -> Vec<String> {
    let local: Vec<String> = work.names("mydestination").iter().map(|name| name.to_ascii_lowercase()).collect();
    people.domains.extend(local.iter().cloned());
    for name in ["virtual_mailbox_domains", "virtual_alias_domains"] {
        match work.parameters.is_set(name) && !is_query(work, name) {
            true => people.domains.extend(work.names(name).into_iter().map(|name| domain(&name))),
            false => work.done(name),
        }
    }
    let has_local = !local.is_empty();
    let mut here: Vec<String> = local.into_iter().filter(|name| !is_loopback(name)).collect();
    if here.is_empty() && has_local {
        here.push(work.parameters.value("myhostname").to_ascii_lowercase());
    }
    here
}

/// Notes that users of the machine have mail, and the domain of their mail.
fn users(work: &mut Translation<'_>) {
    let has_names = work.parameters.list("mydestination").iter().any(|name| !is_loopback(&name.to_ascii_lowercase()));
    if has_names && work.place("local_recipient_maps").is_none() {
        let (place, value) = (work.place("mydestination"), work.parameters.value("mydestination"));
        let why = "users of that machine have mail there (local_recipient_maps): each needs an account, or mail for it is refused";
        work.draft.note(place.as_ref(), format!("mydestination = {value}"), why);
    }
    let (origin, host) = (work.origin(), work.parameters.value("myhostname"));
    if !origin.eq_ignore_ascii_case(&host) {
        let why = format!(
            "mail from commands comes from NAME@{host}, the hostname, and not from NAME@{origin}: -f names another"
        );
        work.note("myorigin", why);
    }
}

/// Notes that the aliases of the machine are not at hand, if no line names them and the folder has come from another machine.
fn is_elsewhere(work: &mut Translation<'_>) -> bool {
    let is_elsewhere = work.place("alias_maps").is_none() && work.folder != Path::new("/etc/postfix");
    if is_elsewhere {
        let why = "the default of the machine whose folder this was: a copy of its file is named by a line alias_maps";
        work.draft.note(None, format!("alias_maps = {}", work.parameters.value("alias_maps")), why);
    }
    is_elsewhere
}

/// Reads the tables of a parameter.
fn read(work: &mut Translation<'_>, name: &str, people: &mut People) {
    work.done(name);
    // Of users and of aliases the recipients of the machine are those that it has anyway.
    let known = if name == "local_recipient_maps" { work.tables("alias_maps") } else { Vec::new() };
    for table in work.tables(name).into_iter().filter(|table| table.kind != "unix" && !known.contains(table)) {
        match table.read(work.folder) {
            Contents::Entries(entries) => match name {
                "virtual_alias_maps" => people.virtuals.extend(entries),
                "alias_maps" => people.locals.extend(entries),
                _ => people.mailboxes.extend(entries),
            },
            Contents::Query(query) => people.lookups.extend(lookup(work, name, &table, &query)),
            Contents::Patterns(entries) => entries.iter().for_each(|entry| {
                let setting = format!("{} {}", entry.key, entry.value);
                let why = "accounts and aliases are addresses, or @DOMAIN, and no patterns";
                work.draft.note(Some(&entry.place), setting, why);
            }),
            Contents::Unread(why) => work.note(name, why),
        }
    }
}

/// Takes the keys out that say that there are aliases in a domain.
fn declared(work: &Translation<'_>, people: &mut People) {
    let by_table = !work.parameters.is_set("virtual_alias_domains");
    let People { domains, virtuals, .. } = people;
    virtuals.retain(|Entry { key, value, .. }| {
        let key = key.to_ascii_lowercase();
        let is_domain =
            domains.contains(&key) || by_table && !key.contains('@') && key.contains('.') && !value.contains('@');
        if is_domain {
            domains.insert(key);
        }
        !is_domain
    });
    domains.extend(people.mailboxes.iter().filter(|entry| entry.key.contains('@')).map(|entry| domain(&entry.key)));
}

/// The aliases of the tables; notes targets that no account can be.
fn aliases(work: &mut Translation<'_>, people: &People, here: Vec<String>) -> Aliases {
    let origin = work.origin().to_ascii_lowercase();
    let home = here.iter().find(|name| **name == origin).or(here.first()).unwrap_or(&origin).clone();
    let bare = here.iter().cloned().chain([origin]).collect();
    let delimiters = work.parameters.value("recipient_delimiter");
    let mut aliases = Aliases { here, home, bare, delimiters, ..Aliases::default() };
    for (entries, is_virtual) in [(&people.virtuals, true), (&people.locals, false)] {
        for entry in entries {
            let targets = targets(&entry.value);
            targets.iter().for_each(|target| look(work, people, &aliases, entry, target));
            let table = if is_virtual { &mut aliases.virtuals } else { &mut aliases.locals };
            table.entry(entry.key.to_ascii_lowercase()).or_insert(targets);
        }
    }
    aliases
}

/// Notes a target that no account can be.
fn look(work: &mut Translation<'_>, people: &People, aliases: &Aliases, entry: &Entry, target: &Target) {
    let why = match target {
        Target::Program => "programs, files and lists are no targets of mail here",
        Target::Domain => "one domain is not turned into another: each account has an alias in both",
        Target::Address(name) | Target::Mailbox(name) if !is_here(people, aliases, &aliases.whole(name)) => {
            "a target elsewhere: an account with this alias, and a Sieve script with redirect"
        }
        Target::Address(_) | Target::Mailbox(_) => return,
    };
    work.draft.note(Some(&entry.place), format!("{} {}", entry.key, entry.value), why);
}

fn is_here(people: &People, aliases: &Aliases, address: &str) -> bool {
    people.domains.contains(&domain(address)) || aliases.user(address).is_some()
}

/// The accounts, each with the aliases that lead to it.
fn resolved(work: &mut Translation<'_>, people: &People, aliases: &Aliases) -> Accounts {
    let is_own = |name: &String| is_loopback(name) || aliases.here.contains(name);
    let is_alone =
        people.domains.iter().all(is_own) && people.lookups.is_empty() && !work.parameters.is_set("relay_domains");
    let (mut accounts, mut steps_left) = (Accounts::new(), STEPS_MAX);
    for Entry { place, key, value } in &people.mailboxes {
        let mailbox = aliases.whole(&key.to_ascii_lowercase());
        let ends = aliases.mailboxes(&mailbox, &mut steps_left);
        let why = match ends.contains(&mailbox) {
            _ if mailbox.starts_with('@') => {
                "a mailbox for all addresses of a domain is an account with the alias @DOMAIN"
            }
            false => "an alias of this name sends its mail elsewhere there: the mailbox has no account",
            true => {
                account(&mut accounts, aliases, is_alone, &mailbox);
                continue;
            }
        };
        work.draft.note(Some(place), format!("{key} {value}"), why);
    }
    let of_virtual = aliases.virtuals.keys().flat_map(|key| aliases.of_virtual(key));
    for address in of_virtual.chain(aliases.locals.keys().flat_map(|name| aliases.of_local(name))) {
        for mailbox in aliases.mailboxes(&address, &mut steps_left).iter().filter(|one| is_here(people, aliases, one)) {
            let is_one = is_alone && aliases.user(mailbox).is_some_and(|user| aliases.user(&address) == Some(user));
            let is_name = aliases.user(mailbox).map_or(*mailbox == address, |user| aliases.whole(user) == address);
            let own = account(&mut accounts, aliases, is_alone, mailbox);
            if !is_one && !is_name {
                own.insert(address.clone());
            }
        }
    }
    copies(work, people, &mut accounts);
    if steps_left == 0 {
        let why = format!("aliases lead over more than {STEPS_MAX} addresses: not all of them are listed");
        work.draft.note(None, "virtual_alias_maps, alias_maps", why);
    }
    accounts
}

/// Takes the names of accounts out of the aliases of others, and notes that copies went there.
fn copies(work: &mut Translation<'_>, people: &People, accounts: &mut Accounts) {
    let names: BTreeSet<String> = accounts.keys().cloned().collect();
    for (account, aliases) in accounts {
        let copied: Vec<String> = aliases.intersection(&names).cloned().collect();
        for alias in copied {
            aliases.remove(&alias);
            let entry = people.virtuals.iter().chain(&people.locals).find(|entry| {
                let key = entry.key.to_ascii_lowercase();
                key == *alias || alias.rsplit_once('@').is_some_and(|(name, _)| name == key)
            });
            let why = format!(
                "{alias} has an account, and what comes there goes to {account} as well: a Sieve script of {alias} with redirect :copy"
            );
            work.draft.note(entry.map(|entry| &entry.place), format!("{alias} {account}"), why);
        }
    }
}

/// The account of a mailbox, whose aliases are returned.
fn account<'a>(
    accounts: &'a mut Accounts,
    aliases: &Aliases,
    is_alone: bool,
    mailbox: &str,
) -> &'a mut BTreeSet<String> {
    match aliases.user(mailbox) {
        None => accounts.entry(mailbox.to_owned()).or_default(),
        Some(user) if is_alone => accounts.entry(user.to_owned()).or_default(),
        Some(user) => {
            let own = accounts.entry(aliases.whole(user)).or_default();
            let others = aliases.of_local(user).into_iter();
            own.extend(others.filter(|one| *one != aliases.whole(user) && !aliases.is_alias(one)));
            own
        }
    }
}

fn is_query(work: &Translation<'_>, name: &str) -> bool {
    work.tables(name).iter().all(|table| matches!(table.kind.as_str(), "mysql" | "pgsql" | "ldap" | "sqlite"))
}

fn is_loopback(name: &str) -> bool {
    name == "localhost" || name.starts_with("localhost.")
}

fn domain(address: &str) -> String {
    address.rsplit_once('@').map_or(address, |(_, domain)| domain).to_ascii_lowercase()
}

/// Notes which domains there are, and how accounts are made.
fn list(work: &mut Translation<'_>, domains: &BTreeSet<String>, accounts: &Accounts) {
    let mut text = String::from("# Domains here are those of the names and aliases of accounts:");
    domains
        .iter()
        .filter(|name| !name.is_empty())
        .take(ACCOUNTS_MAX)
        .for_each(|name| _ = write!(text, " {}", safe(name)));
    if !accounts.is_empty() {
        text.push_str("\n# Accounts, each with a password from standard input:");
    }
    for (account, aliases) in accounts.iter().take(ACCOUNTS_MAX) {
        text.push_str("\n#   sluice account add");
        aliases.iter().for_each(|alias| _ = write!(text, " --alias {}", safe(alias)));
        let _ = write!(text, " {}", safe(account));
    }
    work.draft.line(Part::Store, text);
}

/// A name in a command of a comment.
fn safe(name: &str) -> String {
    let is_plain = |letter: char| letter.is_alphanumeric() || "@.+-_=".contains(letter);
    match name.chars().all(is_plain) {
        true => name.to_owned(),
        false => {
            let plain: String = name.chars().map(|letter| if letter.is_control() { ' ' } else { letter }).collect();
            format!("'{}'", plain.replace('\'', "'\\''"))
        }
    }
}

/// Recipients of a gateway.
pub fn of_gateway(work: &mut Translation<'_>) {
    let domains = work.names("relay_domains");
    let domains = with_subdomains(work, domains);
    relayed(work, &domains, true);
    work.set(Part::Recipients, "delimiter", "recipient_delimiter", |value| Some(json!(value)));
    for name in ["mydestination", "local_recipient_maps", "alias_maps", "virtual_alias_maps", "local_transport"] {
        work.note(name, "a gateway has no mailboxes: mail to this machine goes to the next hop");
    }
}

/// A table of the recipients of domains that are relayed to. Without a source of them the next hop of a gateway is asked, and of a mail
/// server there is no table.
pub fn relayed(work: &mut Translation<'_>, domains: &[String], asks: bool) {
    let place = work.place("relay_domains");
    let (mut files, mut lookups) = (Vec::new(), Vec::new());
    work.done("relay_recipient_maps");
    for table in work.tables("relay_recipient_maps") {
        match table.read(work.folder) {
            Contents::Entries(_) if table.is_text() => files.push(shown(&table.path(work.folder))),
            Contents::Query(query) => lookups.extend(lookup(work, "relay_recipient_maps", &table, &query)),
            Contents::Unread(why) => work.note("relay_recipient_maps", why),
            _ => work.note(
                "relay_recipient_maps",
                format!("{}: recipients are lists, and tables of [[lookup]]", table.whole),
            ),
        }
    }
    let has_source = !files.is_empty() || !lookups.is_empty();
    if !has_source && !asks {
        return;
    }
    work.has_recipients = true;
    // Here those below a domain are `*.example.org`.
    let written = |name: &String| if name.starts_with('.') { format!("*{name}") } else { name.clone() };
    let domains: Vec<String> = domains.iter().map(written).collect();
    work.draft.line(Part::Recipients, "[[recipients]]\nname = \"relayed\"");
    work.draft.key(Part::Recipients, "domains", &json!(domains), place.as_ref());
    if !has_source {
        work.draft.line(Part::Recipients, "call_ahead = {}  # the next hop is asked who has a mailbox there");
    }
    for (key, list) in [("files", files), ("lookups", lookups)] {
        if !list.is_empty() {
            work.draft.key(Part::Recipients, key, &json!(list), work.place("relay_recipient_maps").as_ref());
        }
    }
}

fn delimiter(work: &mut Translation<'_>, known: &str) {
    work.done("recipient_delimiter");
    if work.parameters.is_set("recipient_delimiter") && work.parameters.value("recipient_delimiter") != known {
        work.note("recipient_delimiter", "what stands behind + in an address is its detail, and no other sign is");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_stand_in_commands() {
        assert_eq!(safe("a'b c"), "'a'\\''b c'");
        assert_eq!(safe("ann+x@example.org"), "ann+x@example.org");
    }
}
