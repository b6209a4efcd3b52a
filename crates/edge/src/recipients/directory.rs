//! All tables of the configuration, and the order in which they are asked.
//!
//! The group whose domains hold the recipient's decides; without one the next hop does. In a group the postmaster comes
//! first, then the lists and aliases, for each form of the address in turn ([`Address::keys`]): so a refusal for one
//! address stands in front of a catch-all, whichever file holds it. Then come the tables that are not in memory, in
//! the order of their settings, and a server is asked for who is in none of them.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::address::Address;
use super::answer::{Answer, By, Verdict};
use super::call_ahead::{CallAhead, Way};
use super::folders::Folders;
use super::keys::Seed;
use super::list::{Error, Kind, List};
use super::table::{Found, Name, Table, Tables};
use super::users::Users as SystemUsers;
use proto::smtp::Path as Mailbox;

use crate::settings::{RecipientTable, Tls, Unsure, Users};

/// All tables.
#[derive(Debug, Default)]
pub struct Directory {
    seed: Seed,
    groups: Vec<Group>,
}

/// The tables of one `[[recipients]]`.
#[derive(Debug, Clone)]
pub struct Group {
    settings: RecipientTable,
    lists: Vec<Arc<List>>,
    tables: Vec<Arc<dyn Table>>,
    call_ahead: Option<Arc<CallAhead>>,
}

/// Why there is no directory.
#[derive(Debug)]
pub enum Fault {
    /// A file cannot be taken.
    File(Error),
    /// A server cannot be asked, for this reason.
    Server(String),
}

impl Directory {
    /// Reads the files of all tables, but those that `old` has as they are now. `lookups` are those of databases and directories.
    ///
    /// # Errors
    /// When one cannot be taken; the message names the file, and the line if it is for one.
    pub fn load(
        tables: &[RecipientTable],
        lookups: &Tables,
        tls: &Tls,
        old: Option<&Directory>,
    ) -> Result<Directory, Fault> {
        let seed = old.map(|old| old.seed.clone()).unwrap_or_default();
        let known = |path: &Path, kind| old.and_then(|old| old.known(path, kind));
        let group = |settings: &RecipientTable| {
            let read = |(kind, path): (Kind, &PathBuf)| match known(path, kind) {
                Some(list) if !list.has_changed() => Ok(list.clone()),
                _ => List::read(path, kind, &seed).map(Arc::new),
            };
            let lists = files(settings).map(read).collect::<Result<_, _>>().map_err(Fault::File)?;
            let call_ahead = call_ahead(settings, tls, old).map_err(Fault::Server)?;
            Ok(Group { settings: settings.clone(), lists, tables: outside(settings, lookups), call_ahead })
        };
        let groups = tables.iter().map(group).collect::<Result<_, _>>()?;
        Ok(Directory { seed, groups })
    }

    /// The same with the files as they are now; nothing if none has changed. What cannot be taken stays as it was, and is
    /// told besides.
    pub fn refreshed(&self) -> (Option<Directory>, Vec<Error>) {
        let mut groups = self.groups.clone();
        let (mut has_changed, mut errors) = (false, Vec::new());
        for list in groups.iter_mut().flat_map(|group| &mut group.lists).filter(|list| list.has_changed()) {
            match List::read(&list.path, list.kind, &self.seed) {
                Ok(new) => (*list, has_changed) = (Arc::new(new), true),
                Err(error) => errors.push(error),
            }
        }
        (has_changed.then(|| Directory { seed: self.seed.clone(), groups }), errors)
    }

    /// Looks a recipient up in the groups of these names. Without a way no server is asked, and a recipient in no
    /// table has the next hop decide where one would be.
    pub async fn ask(&self, names: &[String], mailbox: &Mailbox, way: Option<&Way>) -> Verdict {
        let groups = self.groups.iter().filter(|group| names.contains(&group.settings.name));
        for group in groups {
            let address = Address::new(mailbox.as_str(), &group.settings.delimiter);
            if group.holds(&address) {
                return group.ask(&address, mailbox, &self.seed, way).await;
            }
        }
        Verdict { answer: Answer::Valid, by: By::default() }
    }

    /// The line of a file that gave an answer.
    pub fn line_of(&self, by: &By) -> Option<usize> {
        let list =
            self.lists().find(|list| list.kind.name() == by.table && list.path.display().to_string() == by.source)?;
        list.line_of(&by.key)
    }

    /// The lists of all groups.
    pub fn lists(&self) -> impl Iterator<Item = &List> {
        self.groups.iter().flat_map(|group| &group.lists).map(|list| &**list)
    }

    fn known(&self, path: &Path, kind: Kind) -> Option<&Arc<List>> {
        let mut lists = self.groups.iter().flat_map(|group| &group.lists);
        lists.find(|list| list.path == path && list.kind == kind)
    }
}

/// Server of a group to ask: the one of `old`, if its settings are the same.
fn call_ahead(settings: &RecipientTable, tls: &Tls, old: Option<&Directory>) -> Result<Option<Arc<CallAhead>>, String> {
    let Some(wanted) = &settings.call_ahead else { return Ok(None) };
    let known = old.and_then(|old| old.groups.iter().find(|group| group.settings.name == settings.name));
    let known = known.and_then(|group| group.call_ahead.clone()).filter(|known| known.is_for(wanted));
    match known {
        Some(known) => Ok(Some(known)),
        None => CallAhead::new(wanted, tls).map(|asks| Some(Arc::new(asks))),
    }
}

/// The files of a group, those that are asked first in front.
fn files(settings: &RecipientTable) -> impl Iterator<Item = (Kind, &PathBuf)> {
    let lists = settings.files.iter().map(|path| (Kind::List, path));
    let users = settings.passwd.iter().filter_map(Users::path);
    lists.chain(settings.aliases.iter().map(|path| (Kind::Aliases, path))).chain(users.map(|path| (Kind::Passwd, path)))
}

/// The tables of a group that are not in memory.
fn outside(settings: &RecipientTable, lookups: &Tables) -> Vec<Arc<dyn Table>> {
    let mut tables: Vec<Arc<dyn Table>> = Vec::new();
    if let Some(pattern) = &settings.maildir {
        tables.push(Arc::new(Folders::new(pattern)));
    }
    if settings.passwd.contains(&Users::System) {
        tables.push(Arc::new(SystemUsers::default()));
    }
    tables.extend(settings.lookups.iter().filter_map(|name| lookups.get(name).cloned()));
    tables
}

/// Asks the server about a recipient.
async fn ask_ahead(asks: &Arc<CallAhead>, mailbox: &Mailbox, way: Option<&Way>, by: By) -> Verdict {
    let by = By { table: "call_ahead", ..by };
    let Some(way) = way else { return Verdict { answer: Answer::Valid, by } };
    Verdict { answer: asks.ask(mailbox, way).await, by: By { source: asks.server(way), ..by } }
}

impl std::fmt::Display for Fault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Fault::File(error) => error.fmt(f),
            Fault::Server(reason) => write!(f, "call_ahead: {reason}"),
        }
    }
}

impl std::error::Error for Fault {}

impl Group {
    /// Whether it knows all recipients of the address' domain. An address without a domain is everybody's.
    fn holds(&self, address: &Address) -> bool {
        let domains = &self.settings.domains;
        domains.is_empty() || address.domain().is_none_or(|domain| domains.iter().any(|pattern| pattern.holds(domain)))
    }

    async fn ask(&self, address: &Address, mailbox: &Mailbox, seed: &Seed, way: Option<&Way>) -> Verdict {
        let by = By { group: self.settings.name.clone(), ..By::default() };
        if address.is_postmaster() {
            return Verdict { answer: Answer::Valid, by: By { table: "postmaster", ..by } };
        }
        if let Some((found, list, key)) = self.find(address, seed) {
            let source = list.path.display().to_string();
            return Verdict { answer: found, by: By { table: list.kind.name(), source, key, ..by } };
        }
        let looked = self.look(address, &by).await;
        let verdict = match (&self.call_ahead, looked) {
            (Some(call_ahead), None) => ask_ahead(call_ahead, mailbox, way, by).await,
            // Who could not be looked up has to be known to the server, or is not known to be unknown.
            (Some(call_ahead), Some(unsure)) if matches!(unsure.answer, Answer::Unsure { .. }) => {
                let asked = ask_ahead(call_ahead, mailbox, way, by).await;
                if asked.answer == Answer::Valid { asked } else { unsure }
            }
            (_, Some(found)) => found,
            (None, None) => Verdict { answer: Answer::unknown(), by },
        };
        match verdict.answer {
            Answer::Unsure { .. } if self.settings.unsure == Unsure::Pass => {
                Verdict { answer: Answer::Valid, ..verdict }
            }
            _ => verdict,
        }
    }

    /// Asks the tables outside of memory: the first that knows the address, else the first that failed.
    async fn look(&self, address: &Address, by: &By) -> Option<Verdict> {
        let mut unsure = None;
        for table in &self.tables {
            for user in address.users() {
                let name = Name { user, domain: address.domain() };
                let answer = match table.find(name).await {
                    Found::No => continue,
                    Found::Yes => Answer::Valid,
                    Found::Refused(reply) => Answer::Refused(reply),
                    Found::Unsure(reason) => Answer::unsure(reason),
                };
                let by = By { table: table.kind(), source: table.source(), key: name.to_string(), ..by.clone() };
                let verdict = Verdict { answer, by };
                if !matches!(verdict.answer, Answer::Unsure { .. }) {
                    return Some(verdict);
                }
                unsure.get_or_insert(verdict);
            }
        }
        unsure
    }

    /// Looks an address up in the lists: the answer, the list, and the key found.
    fn find(&self, address: &Address, seed: &Seed) -> Option<(Answer, &List, String)> {
        for key in address.keys() {
            let number = seed.number(&key);
            for list in &self.lists {
                match list.find(number) {
                    Some(Ok(())) => return Some((Answer::Valid, list, key.into_owned())),
                    Some(Err(reply)) => return Some((Answer::Refused(reply.clone()), list, key.into_owned())),
                    None => {}
                }
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A directory of one group with these files, and the folder that they are in.
    fn directory(settings: &str, files: &[(&str, &str)]) -> (tempfile::TempDir, Directory) {
        let folder = tempfile::tempdir().unwrap();
        for (name, text) in files {
            std::fs::write(folder.path().join(name), text).unwrap();
        }
        let mut table: RecipientTable = toml::from_str(&format!("name='all'\n{settings}")).unwrap();
        table.paths_mut().for_each(|path| *path = folder.path().join(&path));
        let directory = Directory::load(&[table], &Tables::default(), &Tls::default(), None).unwrap();
        (folder, directory)
    }

    /// Answer that is given at once.
    fn asked(directory: &Directory, names: &[String], mailbox: &str) -> Verdict {
        let (waker, mailbox) = (std::task::Waker::noop(), mailbox.parse().unwrap());
        let asking = std::pin::pin!(directory.ask(names, &mailbox, None));
        match asking.poll(&mut std::task::Context::from_waker(waker)) {
            std::task::Poll::Ready(verdict) => verdict,
            std::task::Poll::Pending => panic!("lists are in memory"),
        }
    }

    fn ask(directory: &Directory, mailbox: &str) -> (&'static str, &'static str, String) {
        let Verdict { answer, by } = asked(directory, &["all".into()], mailbox);
        (answer.name(), by.table, by.key)
    }

    #[test]
    fn lists_aliases_catch_alls_and_extensions_are_known() {
        let settings = "domains=['a.test','b.test','*.c.test']\nfiles=['list']\naliases=['aliases']";
        let list = "Tim@A.test OK\n@b.test\nanna\n\"john doe\"@a.test\nlist+own@a.test\nno@b.test REJECT\n";
        let (_folder, directory) = directory(settings, &[("list", list), ("aliases", "root: tim\ninfo@a.test anna\n")]);
        for (mailbox, answer, table, key) in [
            ("tim@a.TEST", "valid", "files", "tim@a.test"),
            ("TIM+x@a.test", "valid", "files", "tim@a.test"),
            ("\"john doe\"@a.test", "valid", "files", "john doe@a.test"),
            ("list+own@a.test", "valid", "files", "list+own@a.test"),
            ("list@a.test", "unknown", "", ""),
            ("anna@x.c.test", "valid", "files", "anna"),
            ("anna", "valid", "files", "anna"),
            ("root@a.test", "valid", "aliases", "root"),
            ("info+1@a.test", "valid", "aliases", "info@a.test"),
            ("whoever@b.test", "valid", "files", "@b.test"),
            ("no@b.test", "refused", "files", "no@b.test"),
            ("Postmaster@x.c.test", "valid", "postmaster", ""),
            ("postmaster", "valid", "postmaster", ""),
            ("x@a.test", "unknown", "", ""),
            ("x", "unknown", "", ""),
            ("x@c.test", "valid", "", ""),
            ("x@elsewhere.test", "valid", "", ""),
        ] {
            assert_eq!(ask(&directory, mailbox), (answer, table, key.to_string()), "{mailbox}");
        }
        assert_eq!(asked(&directory, &[], "x@a.test").answer, Answer::Valid, "a listener that names no tables");
    }

    #[test]
    fn a_file_that_cannot_be_taken_leaves_the_old_one_in_force() {
        let (folder, directory) = directory("files=['list','more']", &[("list", "a@b\n"), ("more", "c@d\n")]);
        assert!(matches!(directory.refreshed(), (None, errors) if errors.is_empty()));
        std::fs::write(folder.path().join("list"), "").unwrap();
        std::fs::write(folder.path().join("more"), "e@f\n").unwrap();
        let (new, errors) = directory.refreshed();
        assert_eq!(errors.len(), 1);
        let new = new.unwrap();
        assert_eq!([ask(&new, "a@b").0, ask(&new, "e@f").0, ask(&new, "c@d").0], ["valid", "valid", "unknown"]);
        std::fs::remove_file(folder.path().join("more")).unwrap();
        let (newer, errors) = new.refreshed();
        assert!(newer.is_none() && errors.len() == 2, "{errors:?}");
    }
}
