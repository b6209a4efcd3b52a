//! The grammar of commands.

use alloc::string::String;
use alloc::vec::Vec;

use super::{Change, List, Operation, Qresync, STATUS_ITEMS, SelectParameters, StatusItem, Store};
use crate::imap::command::Command;
use crate::imap::items::{FetchItem, fetch_item, macro_of};
use crate::imap::name::{self, NOT_A_NAME};
use crate::imap::syntax::{Cursor, Flags, Set, Wrong};
use crate::imap::{acl, metadata, notify, search};

/// The longest name of somebody who has rights, in bytes.
const IDENTIFIER_BYTES_MAX: usize = 256;

/// Items of one FETCH.
const ITEMS_MAX: usize = 256;

/// Reads a command, to its end.
pub(super) fn read(command: &Command, utf8: bool) -> Result<Operation, Wrong> {
    let mut reader = Reader { cursor: Cursor::new(&command.pieces), utf8 };
    let operation = reader.operation(command)?;
    reader.cursor.end()?;
    Ok(operation)
}

struct Reader<'a> {
    cursor: Cursor<'a>,
    utf8: bool,
}

impl Reader<'_> {
    fn operation(&mut self, command: &Command) -> Result<Operation, Wrong> {
        let by_uid = command.by_uid();
        Ok(match command.name {
            "CAPABILITY" => Operation::Capability,
            "NOOP" | "CHECK" => Operation::Noop,
            "LOGOUT" => Operation::Logout,
            "STARTTLS" => Operation::Starttls,
            "LOGIN" => {
                let user = self.cursor.astring()?;
                self.cursor.blank()?;
                Operation::Login { user, password: self.cursor.astring()? }
            }
            "AUTHENTICATE" => self.authenticate()?,
            "ENABLE" => Operation::Enable(self.words()?),
            "ID" => {
                // Whatever it says of itself.
                while !self.cursor.is_at_end() {
                    if !self.cursor.eat(b'(') && !self.cursor.eat(b')') && !self.cursor.eat(b' ') {
                        self.cursor.astring()?;
                    }
                }
                Operation::Id
            }
            "NAMESPACE" => Operation::Namespace,
            "COMPRESS" => Operation::Compress(self.cursor.atom()?),
            "IDLE" => Operation::Idle,
            "SELECT" => self.select(false)?,
            "EXAMINE" => self.select(true)?,
            "CREATE" => self.create()?,
            "DELETE" => Operation::Delete(self.mailbox()?),
            "RENAME" => {
                let from = self.mailbox()?;
                self.cursor.blank()?;
                Operation::Rename { from, to: self.mailbox()? }
            }
            "SUBSCRIBE" => Operation::Subscribe { mailbox: self.mailbox()?, subscribed: true },
            "UNSUBSCRIBE" => Operation::Subscribe { mailbox: self.mailbox()?, subscribed: false },
            "LIST" => Operation::List(self.list()?),
            "LSUB" => {
                let reference = self.mailbox_pattern()?;
                self.cursor.blank()?;
                let patterns = Vec::from([self.mailbox_pattern()?]);
                Operation::List(List {
                    is_lsub: true,
                    subscribed: true,
                    recursive: true,
                    reference,
                    patterns,
                    ..List::default()
                })
            }
            "STATUS" => {
                let mailbox = self.mailbox()?;
                self.cursor.blank()?;
                Operation::Status { mailbox, items: self.cursor.list(false, status_item)? }
            }
            "CLOSE" => Operation::Close,
            "UNSELECT" => Operation::Unselect,
            "EXPUNGE" => Operation::Expunge(None),
            "UID EXPUNGE" => Operation::Expunge(Some(Set::read(&mut self.cursor)?)),
            "SEARCH" | "UID SEARCH" => Operation::Search { by_uid, search: search::read(&mut self.cursor)? },
            "SORT" | "UID SORT" => {
                let (criteria, search) = search::read_sort(&mut self.cursor)?;
                Operation::Sort { by_uid, criteria, search }
            }
            "THREAD" | "UID THREAD" => {
                let (threading, search) = search::read_thread(&mut self.cursor)?;
                Operation::Thread { by_uid, threading, search }
            }
            "FETCH" | "UID FETCH" => self.fetch(by_uid)?,
            "STORE" | "UID STORE" => Operation::Store(self.store(by_uid)?),
            "COPY" | "UID COPY" | "MOVE" | "UID MOVE" => {
                let set = Set::read(&mut self.cursor)?;
                self.cursor.blank()?;
                Operation::Copy { by_uid, set, mailbox: self.mailbox()?, moves: command.name.ends_with("MOVE") }
            }
            "GETACL" => Operation::GetAcl(self.mailbox()?),
            "MYRIGHTS" => Operation::MyRights(self.mailbox()?),
            "LISTRIGHTS" => {
                let mailbox = self.mailbox()?;
                Operation::ListRights { mailbox, who: self.identifier()? }
            }
            "SETACL" => {
                let (mailbox, who) = (self.mailbox()?, self.identifier()?);
                self.cursor.blank()?;
                let modification = acl::Modification::parse(&self.cursor.astring()?)?;
                Operation::SetAcl { mailbox, who, modification }
            }
            "DELETEACL" => {
                let (mailbox, who) = (self.mailbox()?, self.identifier()?);
                Operation::SetAcl { mailbox, who, modification: acl::Modification::Replace(acl::Rights::NONE) }
            }
            "GETQUOTA" => Operation::GetQuota(self.cursor.astring()?),
            "GETQUOTAROOT" => Operation::GetQuotaRoot(self.mailbox()?),
            "GETMETADATA" => {
                let options = metadata::options(&mut self.cursor)?;
                let mailbox = self.mailbox()?;
                self.cursor.blank()?;
                let entries = metadata::entries(&mut self.cursor)?;
                Operation::GetMetadata { mailbox, asked: metadata::Asked { entries, ..options } }
            }
            "NOTIFY" => Operation::Notify(notify::read(&mut self.cursor, self.utf8)?),
            "SETMETADATA" => {
                let mailbox = self.mailbox()?;
                self.cursor.blank()?;
                Operation::SetMetadata { mailbox, changes: metadata::changes(&mut self.cursor)? }
            }
            _ => return Err("Unknown command"),
        })
    }

    fn authenticate(&mut self) -> Result<Operation, Wrong> {
        let mechanism = self.cursor.atom()?;
        let mut initial = None;
        if self.cursor.eat(b' ') {
            let response = self.cursor.while_(|byte| byte.is_ascii_graphic());
            initial = Some(if response == b"=" { Vec::new() } else { response.to_vec() });
        }
        Ok(Operation::Authenticate { mechanism, initial })
    }

    /// Identifier of an account, after a blank.
    fn identifier(&mut self) -> Result<String, Wrong> {
        self.cursor.blank()?;
        let name = String::from_utf8(self.cursor.astring()?).map_err(|_| "Not a name")?;
        let is_odd = name.is_empty() || name.len() > IDENTIFIER_BYTES_MAX || name.contains(char::is_control);
        if is_odd { Err("Not a name") } else { Ok(name) }
    }

    fn words(&mut self) -> Result<Vec<String>, Wrong> {
        let mut words = Vec::from([self.cursor.atom()?]);
        while !self.cursor.is_at_end() {
            self.cursor.blank()?;
            words.push(self.cursor.atom()?);
        }
        Ok(words)
    }

    fn mailbox(&mut self) -> Result<Vec<u8>, Wrong> {
        name::decode(&self.cursor.astring()?, self.utf8).ok_or(NOT_A_NAME)
    }

    fn mailbox_pattern(&mut self) -> Result<Vec<u8>, Wrong> {
        let pattern = self.cursor.list_mailbox()?;
        pattern_of(pattern, self.utf8)
    }

    fn select(&mut self, read_only: bool) -> Result<Operation, Wrong> {
        let mailbox = self.mailbox()?;
        let mut parameters = SelectParameters::default();
        if self.cursor.eat(b' ') {
            self.cursor.list(false, |cursor| {
                match cursor.atom()?.as_str() {
                    "CONDSTORE" => parameters.condstore = true,
                    "QRESYNC" => {
                        cursor.blank()?;
                        parameters.qresync = Some(qresync(cursor)?);
                    }
                    _ => return Err("Unknown parameter"),
                }
                Ok(())
            })?;
        }
        Ok(Operation::Select { mailbox, read_only, parameters })
    }

    fn create(&mut self) -> Result<Operation, Wrong> {
        let mailbox = self.mailbox()?;
        let mut uses = Vec::new();
        if self.cursor.eat(b' ') {
            self.cursor.expect(b'(', "Not a list")?;
            if !self.cursor.eat_word("USE") {
                return Err("Unknown parameter");
            }
            self.cursor.blank()?;
            uses = self.cursor.list(true, |cursor| {
                cursor.expect(b'\\', "Not a special use")?;
                cursor.atom()
            })?;
            self.cursor.expect(b')', "Not a list")?;
        }
        Ok(Operation::Create { mailbox, uses })
    }

    fn list(&mut self) -> Result<List, Wrong> {
        let mut list = List::default();
        let mut remote = false;
        if self.cursor.peek() == Some(b'(') {
            self.cursor.list(true, |cursor| {
                match cursor.atom()?.as_str() {
                    "SUBSCRIBED" => list.subscribed = true,
                    "RECURSIVEMATCH" => list.recursive = true,
                    "SPECIAL-USE" => list.special_use = true,
                    // There are none elsewhere.
                    "REMOTE" => remote = true,
                    _ => return Err("Unknown selection option"),
                }
                Ok(())
            })?;
            self.cursor.blank()?;
            if list.recursive && !list.subscribed {
                return Err("RECURSIVEMATCH needs SUBSCRIBED");
            }
        }
        list.reference = self.mailbox_pattern()?;
        self.cursor.blank()?;
        let utf8 = self.utf8;
        list.patterns = match self.cursor.peek() {
            Some(b'(') => self.cursor.list(false, |cursor| pattern_of(cursor.list_mailbox()?, utf8))?,
            _ => Vec::from([self.mailbox_pattern()?]),
        };
        if self.cursor.eat(b' ') {
            if !self.cursor.eat_word("RETURN") {
                return Err("Too many arguments");
            }
            self.cursor.blank()?;
            self.cursor.list(true, |cursor| return_option(cursor, &mut list))?;
        }
        list.return_subscribed |= list.subscribed;
        Ok(list)
    }

    fn fetch(&mut self, by_uid: bool) -> Result<Operation, Wrong> {
        let set = Set::read(&mut self.cursor)?;
        self.cursor.blank()?;
        let mut items = match self.cursor.peek() {
            Some(b'(') => self.cursor.list(false, fetch_item)?,
            _ => match macro_of(&mut self.cursor) {
                Some(items) => items,
                None => Vec::from([fetch_item(&mut self.cursor)?]),
            },
        };
        if items.len() > ITEMS_MAX {
            return Err("Too many items");
        }
        let (mut changed_since, mut vanished) = (None, false);
        if self.cursor.eat(b' ') {
            self.cursor.list(false, |cursor| {
                match cursor.atom()?.as_str() {
                    "CHANGEDSINCE" => {
                        cursor.blank()?;
                        changed_since = Some(cursor.number()?);
                    }
                    "VANISHED" => vanished = true,
                    _ => return Err("Unknown modifier"),
                }
                Ok(())
            })?;
        }
        if vanished && !(by_uid && changed_since.is_some()) {
            return Err("VANISHED needs UID FETCH and CHANGEDSINCE");
        }
        if changed_since.is_some() && !items.contains(&FetchItem::Modseq) {
            items.push(FetchItem::Modseq);
        }
        if by_uid && !items.contains(&FetchItem::Uid) {
            items.insert(0, FetchItem::Uid);
        }
        Ok(Operation::Fetch { by_uid, set, items, changed_since, vanished })
    }

    fn store(&mut self, by_uid: bool) -> Result<Store, Wrong> {
        let set = Set::read(&mut self.cursor)?;
        self.cursor.blank()?;
        let mut unchanged_since = None;
        if self.cursor.eat(b'(') {
            if !self.cursor.eat_word("UNCHANGEDSINCE") {
                return Err("Unknown modifier");
            }
            self.cursor.blank()?;
            unchanged_since = Some(self.cursor.number()?);
            self.cursor.expect(b')', "Not a list")?;
            self.cursor.blank()?;
        }
        let change = match self.cursor.peek() {
            Some(b'+') => Change::Add,
            Some(b'-') => Change::Remove,
            _ => Change::Replace,
        };
        let _ = self.cursor.eat(b'+') || self.cursor.eat(b'-');
        let silent = match self.cursor.atom()?.as_str() {
            "FLAGS" => false,
            "FLAGS.SILENT" => true,
            _ => return Err("Unknown item"),
        };
        self.cursor.blank()?;
        let mut flags = Flags::default();
        match self.cursor.peek() {
            Some(b'(') => flags = Flags::read(&mut self.cursor)?,
            _ => loop {
                flags.add(&mut self.cursor)?;
                if self.cursor.is_at_end() {
                    break;
                }
                self.cursor.blank()?;
            },
        }
        Ok(Store { by_uid, set, unchanged_since, change, silent, flags })
    }
}

/// A pattern of LIST from the wire. A pattern in ASCII that is the form of no name matches none.
fn pattern_of(pattern: Vec<u8>, utf8: bool) -> Result<Vec<u8>, Wrong> {
    match name::decode(&pattern, utf8) {
        Some(name) => Ok(name),
        None if pattern.is_ascii() => Ok(pattern),
        None => Err(NOT_A_NAME),
    }
}

/// `(UIDVALIDITY MODSEQ [UIDs [(numbers UIDs)]])`: the numbers of UIDs are not needed.
fn qresync(cursor: &mut Cursor<'_>) -> Result<Qresync, Wrong> {
    cursor.expect(b'(', "Not a list")?;
    let validity = u32::try_from(cursor.number()?).map_err(|_| "Not a UIDVALIDITY")?;
    cursor.blank()?;
    let modseq = cursor.number()?;
    let mut known = None;
    if cursor.eat(b' ') && cursor.peek() != Some(b'(') {
        known = Some(Set::read(cursor)?);
        cursor.eat(b' ');
    }
    if cursor.eat(b'(') {
        Set::read(cursor)?;
        cursor.blank()?;
        Set::read(cursor)?;
        cursor.expect(b')', "Not a list")?;
    }
    cursor.expect(b')', "Not a list")?;
    Ok(Qresync { validity, modseq, known })
}

fn return_option(cursor: &mut Cursor<'_>, list: &mut List) -> Result<(), Wrong> {
    match cursor.atom()?.as_str() {
        "SUBSCRIBED" => list.return_subscribed = true,
        // Told always.
        "CHILDREN" => {}
        "SPECIAL-USE" => list.return_special_use = true,
        "STATUS" => {
            cursor.blank()?;
            list.status = cursor.list(false, status_item)?;
        }
        _ => return Err("Unknown return option"),
    }
    Ok(())
}

fn status_item(cursor: &mut Cursor<'_>) -> Result<StatusItem, Wrong> {
    let word = cursor.atom()?;
    STATUS_ITEMS.iter().find(|(name, _)| *name == word).map(|&(_, item)| item).ok_or("Unknown item")
}
