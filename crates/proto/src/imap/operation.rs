//! Commands for a server that keeps the mail itself: the whole grammar, parsed into types that cannot be wrong.
//!
//! ```text
//!   bytes ── Server (lines, literals) ──► Command ── Operation::parse ──► what is to be done
//! ```
//!
//! IMAP4rev1 (RFC 3501) with the extensions that [`Operation`] names; bounds are those of the frame, and of SEARCH.

use alloc::string::String;
use alloc::vec::Vec;

use super::command::Command;
use super::items::FetchItem;
use super::search::{Criterion, Search, Threading};
use super::syntax::{Flags, Set, Wrong};
use super::{acl, metadata, notify};

mod reader;

/// A parsed command. Names of mailboxes are UTF-8, `INBOX` in upper case.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(missing_docs, reason = "their names are those of the commands")]
pub enum Operation {
    Capability,
    /// CHECK too.
    Noop,
    Logout,
    Starttls,
    Login {
        user: Vec<u8>,
        password: Vec<u8>,
    },
    Authenticate {
        mechanism: String,
        initial: Option<Vec<u8>>,
    },
    Enable(Vec<String>),
    Id,
    Namespace,
    /// COMPRESS with this mechanism.
    Compress(String),
    Idle,
    Select {
        mailbox: Vec<u8>,
        read_only: bool,
        parameters: SelectParameters,
    },
    Create {
        mailbox: Vec<u8>,
        uses: Vec<String>,
    },
    Delete(Vec<u8>),
    Rename {
        from: Vec<u8>,
        to: Vec<u8>,
    },
    Subscribe {
        mailbox: Vec<u8>,
        subscribed: bool,
    },
    List(List),
    Status {
        mailbox: Vec<u8>,
        items: Vec<StatusItem>,
    },
    /// Expunges messages marked `\Deleted`, and unselects.
    Close,
    Unselect,
    /// Expunges these UIDs, or all that are marked.
    Expunge(Option<Set>),
    Search {
        by_uid: bool,
        search: Search,
    },
    Sort {
        by_uid: bool,
        criteria: Vec<Criterion>,
        search: Search,
    },
    Thread {
        by_uid: bool,
        threading: Threading,
        search: Search,
    },
    Fetch {
        by_uid: bool,
        set: Set,
        items: Vec<FetchItem>,
        changed_since: Option<u64>,
        vanished: bool,
    },
    Store(Store),
    Copy {
        by_uid: bool,
        set: Set,
        mailbox: Vec<u8>,
        moves: bool,
    },
    GetAcl(Vec<u8>),
    /// Sets the rights of an identifier.
    SetAcl {
        mailbox: Vec<u8>,
        who: String,
        modification: acl::Modification,
    },
    ListRights {
        mailbox: Vec<u8>,
        who: String,
    },
    MyRights(Vec<u8>),
    GetQuota(Vec<u8>),
    GetQuotaRoot(Vec<u8>),
    /// Reads annotations of a mailbox; of the server, if its name is empty.
    GetMetadata {
        mailbox: Vec<u8>,
        asked: metadata::Asked,
    },
    /// Without anything: nothing more is told.
    Notify(Option<notify::Notify>),
    SetMetadata {
        mailbox: Vec<u8>,
        changes: Vec<metadata::Change>,
    },
}

/// Parameters of SELECT after the mailbox (RFC 7162).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SelectParameters {
    /// CONDSTORE.
    pub condstore: bool,
    /// QRESYNC.
    pub qresync: Option<Qresync>,
}

/// Last state of a mailbox that the client knows (RFC 7162, section 3.2.5).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Qresync {
    /// UIDVALIDITY.
    pub validity: u32,
    /// MODSEQ.
    pub modseq: u64,
    /// The UIDs that changes are reported for; none: all.
    pub known: Option<Set>,
}

/// LIST and LSUB (RFC 5258, 5819, 6154).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct List {
    /// It is answered by LSUB.
    pub is_lsub: bool,
    /// Only subscribed names.
    pub subscribed: bool,
    /// RECURSIVEMATCH: parents of subscribed mailboxes match too.
    pub recursive: bool,
    /// Only mailboxes with a special use.
    pub special_use: bool,
    /// Reference name in front of the patterns.
    pub reference: Vec<u8>,
    /// Patterns.
    pub patterns: Vec<Vec<u8>>,
    /// Whether subscriptions are told.
    pub return_subscribed: bool,
    /// Whether special uses are told, asked for or not.
    pub return_special_use: bool,
    /// STATUS items returned with each mailbox.
    pub status: Vec<StatusItem>,
}

/// An item of STATUS.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs, reason = "their names are those of the standards")]
pub enum StatusItem {
    Messages,
    Recent,
    UidNext,
    UidValidity,
    Unseen,
    Deleted,
    Size,
    HighestModseq,
    AppendLimit,
    MailboxId,
}

const STATUS_ITEMS: [(&str, StatusItem); 10] = [
    ("MESSAGES", StatusItem::Messages),
    ("RECENT", StatusItem::Recent),
    ("UIDNEXT", StatusItem::UidNext),
    ("UIDVALIDITY", StatusItem::UidValidity),
    ("UNSEEN", StatusItem::Unseen),
    ("DELETED", StatusItem::Deleted),
    ("SIZE", StatusItem::Size),
    ("HIGHESTMODSEQ", StatusItem::HighestModseq),
    ("APPENDLIMIT", StatusItem::AppendLimit),
    ("MAILBOXID", StatusItem::MailboxId),
];

impl StatusItem {
    /// As it is written.
    pub fn name(self) -> &'static str {
        STATUS_ITEMS.iter().find(|(_, item)| *item == self).map_or("", |(name, _)| name)
    }
}

/// STORE.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Store {
    /// Whether the set is of UIDs.
    pub by_uid: bool,
    /// Messages to change.
    pub set: Set,
    /// Only those that no later transaction has changed.
    pub unchanged_since: Option<u64>,
    /// Kind of change.
    pub change: Change,
    /// Whether the new flags are not told.
    pub silent: bool,
    /// Flags to change.
    pub flags: Flags,
}

/// Change of flags.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs, reason = "their names say it")]
pub enum Change {
    Add,
    Remove,
    Replace,
}

impl Operation {
    /// Reads a command. With `utf8` the names of mailboxes are UTF-8 as they stand.
    ///
    /// # Errors
    /// What the client is told.
    pub fn parse(command: &Command, utf8: bool) -> Result<Operation, Wrong> {
        reader::read(command, utf8)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::imap::search;
    use crate::imap::search::{Key, Returns};
    use crate::imap::{Part, ServerEvent};
    use alloc::boxed::Box;

    /// Reads a command, however it is cut.
    fn parse(line: &str) -> Result<Operation, Wrong> {
        let whole = parse_cut(line.as_bytes(), line.len());
        for cut in 0..line.len() {
            assert_eq!(parse_cut(line.as_bytes(), cut), whole, "{line} cut at {cut}");
        }
        whole
    }

    fn parse_cut(line: &[u8], cut: usize) -> Result<Operation, Wrong> {
        let mut server = crate::imap::Server::new(crate::imap::Config::default(), 0);
        if !line.starts_with(b"a LOGIN") {
            server.logged_in(0);
            server.step(0, b"0 SELECT x\r\n");
            server.answered(0, crate::imap::Kind::Ok);
        }
        let bytes = [line, b"\r\n"].concat();
        for piece in [&bytes[..cut], &bytes[cut..]] {
            let mut at = 0;
            loop {
                match server.step(0, &piece[at..]) {
                    (_, ServerEvent::Command(command)) => return Operation::parse(&command, false),
                    (_, ServerEvent::Wrong(_, why)) => return Err(why),
                    (0, _) => break,
                    (taken, _) => at += taken,
                }
            }
        }
        Err("nothing")
    }

    #[test]
    fn commands_are_understood() {
        assert_eq!(
            parse("a LOGIN {3+}\r\ntim \"se\\\"cret\""),
            Ok(Operation::Login { user: b"tim".to_vec(), password: b"se\"cret".to_vec() })
        );
        let parameters = SelectParameters { condstore: true, qresync: None };
        assert_eq!(
            parse("a SELECT inbox (CONDSTORE)"),
            Ok(Operation::Select { mailbox: b"INBOX".to_vec(), read_only: false, parameters })
        );
        let Ok(Operation::Select { parameters, .. }) = parse("a SELECT x (QRESYNC (7 9 1:5 (1,2 3,4)))") else {
            panic!()
        };
        let qresync = parameters.qresync.unwrap();
        assert_eq!((qresync.validity, qresync.modseq), (7, 9));
        assert_eq!(qresync.known.unwrap().runs(9).collect::<Vec<_>>(), [(1, 5)]);
        let Ok(Operation::Select { parameters, .. }) = parse("a SELECT x (QRESYNC (7 9 (1,2 3,4)))") else { panic!() };
        assert_eq!(parameters.qresync, Some(Qresync { validity: 7, modseq: 9, known: None }));
        let Ok(Operation::Fetch { items, changed_since, .. }) =
            parse("a UID FETCH 1:* (FLAGS BODY.PEEK[HEADER.FIELDS (From To)]<0.9>) (CHANGEDSINCE 5)")
        else {
            panic!()
        };
        assert_eq!((items.len(), changed_since), (4, Some(5)));
        let FetchItem::Section(section) = &items[2] else { panic!() };
        assert_eq!((section.peek, &section.partial), (true, &Some((0, Some(9)))));
        assert_eq!(section.part, Part::Fields(b"HEADER.FIELDS (From To)".to_vec()));
        let Ok(Operation::Store(store)) = parse("a STORE 2:4,7 +FLAGS.SILENT (\\Deleted $x)") else { panic!() };
        assert_eq!((store.change, store.silent, store.flags.system), (Change::Add, true, 8));
        assert_eq!(store.set.runs(9).collect::<Vec<_>>(), [(2, 4), (7, 7)]);
        let Ok(Operation::List(list)) =
            parse("a LIST (SUBSCRIBED) \"\" (\"%\" INBOX) RETURN (CHILDREN STATUS (MESSAGES UNSEEN))")
        else {
            panic!()
        };
        assert_eq!((list.patterns.len(), list.status.len(), list.subscribed), (2, 2, true));
        let Ok(Operation::SetAcl { mailbox, who, modification }) = parse("a SETACL {4}\r\nTeam bob@a.test +it") else {
            panic!()
        };
        let added = acl::Modification::Add(acl::Rights::INSERT.with(acl::Rights::MARK));
        assert_eq!((&*mailbox, &*who, modification), (&b"Team"[..], "bob@a.test", added));
        assert!(parse("a SETACL Team bob +z").is_err() && parse("a SETACL Team").is_err());
    }

    #[test]
    fn searches_are_understood() {
        let Ok(Operation::Search { search, .. }) =
            parse("a SEARCH RETURN (MIN COUNT) CHARSET utf-8 UNSEEN OR FROM x (2:* NOT KEYWORD y) SENTON 1-Jan-2020")
        else {
            panic!()
        };
        assert_eq!(search.returns, Some(Returns { min: true, count: true, ..Returns::default() }));
        let Key::And(keys) = search.key else { panic!() };
        assert_eq!(keys[0], Key::Not(Box::new(Key::Flag(1))));
        assert!(matches!(&keys[1], Key::Or(_)));
        assert_eq!(keys[2], Key::Sent(18262, 18263));
    }

    #[test]
    fn orders_and_threads_are_understood() {
        let Ok(Operation::Sort { by_uid, criteria, search }) = parse("a UID SORT (REVERSE DATE subject) us-ascii SEEN")
        else {
            panic!()
        };
        let date = Criterion { by: search::By::Date, reverse: true };
        assert_eq!((by_uid, criteria[0], criteria[1].reverse, criteria.len()), (true, date, false, 2));
        assert_eq!((search.is_foreign, search.returns, search.key), (false, None, Key::And(Vec::from([Key::Flag(1)]))));
        let Ok(Operation::Thread { threading, search, .. }) = parse("a THREAD references x-unknown ALL") else {
            panic!()
        };
        assert_eq!((threading, search.is_foreign), (Threading::References, true));
    }

    #[test]
    fn texts_of_a_search_are_utf_8_whatever_their_charset() {
        let text = |line: &str| match parse(line) {
            Ok(Operation::Search { search, .. }) if !search.is_foreign => alloc::format!("{:?}", search.key),
            Ok(Operation::Search { .. }) => alloc::string::String::from("unknown"),
            other => alloc::format!("{other:?}"),
        };
        let wanted =
            alloc::format!("{:?}", Key::And(Vec::from([Key::Not(Box::new(Key::Text("grün".as_bytes().to_vec())))])));
        for (charset, written) in [
            ("UTF-8", "grün"),
            ("us-ascii", "grün"),
            ("utf8", "grün"),
            ("UTF-7", "gr+APw-n"),
            ("unicode-1-1-utf-7", "gr+APw-n"),
        ] {
            assert_eq!(
                text(&alloc::format!("a SEARCH CHARSET {charset} NOT TEXT {{{}+}}\r\n{written}", written.len())),
                wanted,
                "{charset}"
            );
        }
        assert_eq!(text("a SEARCH CHARSET x-unknown ALL"), "unknown");
        assert!(text("a SEARCH CHARSET UTF-16 TEXT abc").contains("not in its charset"));
        assert!(text("a SEARCH CHARSET KOI8-R SUBJECT abc").contains("[97, 98, 99]"));
        let latin1 = b"a SEARCH OR SEEN SUBJECT \"gr\xfcn\"";
        assert_eq!(parse_cut(latin1, latin1.len()), Err("A string is not UTF-8"));
        assert!(parse("a SEARCH SUBJECT \"grün\"").is_ok());
    }

    #[test]
    fn what_cannot_be_understood_is_refused() {
        for line in [
            "a LOGIN tim",
            "a SELECT",
            "a SELECT a b",
            "a SELECT &AGE-",
            "a FETCH 0 FLAGS",
            "a FETCH 1 FOO",
            "a FETCH 1 (FLAGS",
            "a FETCH 1 ()",
            "a FETCH 1: FLAGS",
            "a FETCH 1 BODY[0]",
            "a FETCH 1 (FLAGS) (VANISHED)",
            "a STORE 1 FLAGS \\Foo",
            "a STORE 1 XFLAGS (x)",
            "a SEARCH",
            "a SEARCH SENTON 31-Feb-2020",
            "a SEARCH (SEEN",
            "a SEARCH NOT",
            "a SORT (DATE) ALL",
            "a SORT (REVERSE) UTF-8 ALL",
            "a SORT () UTF-8 ALL",
            "a SORT (NAME) UTF-8 ALL",
            "a THREAD REFS UTF-8 ALL",
            "a THREAD REFERENCES UTF-8",
            "a STATUS x ()",
            "a STATUS x (FOO)",
            "a LIST \"\" * RETURN (FOO)",
            "a NOOP x",
            "a COPY 1 ",
            "a COPY * ",
        ] {
            assert!(parse(line).is_err(), "{line}");
        }
        let deep = alloc::format!("a SEARCH {}ALL{}", "(".repeat(100), ")".repeat(100));
        assert!(parse(&deep).is_err());
        let wide = alloc::format!("a SEARCH {}", "SEEN ".repeat(2_000));
        assert!(parse(wide.trim_end()).is_err());
    }
}
