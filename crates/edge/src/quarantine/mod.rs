//! The quarantine: a folder with two files a message, `ID.eml` as it came and `ID.json` with what is known of it.
//!
//! `docs/operate/quarantine.md` is the page of the format: its states, what it promises, and what a crash leaves. A message
//! is there when its `ID.json` is; that file comes last and goes first, and is only ever replaced whole.
//!
//! The folder belongs to the service, and the commands may be run by root: nothing in it is opened through a link.

pub mod draft;
pub mod expiry;

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::net::IpAddr;
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use proto::smtp::{Body, MailFrom, NotAPath, RcptTo, Return};
use rustix::fs::{FlockOperation, OFlags};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};

/// The format that is written; others are not touched.
pub const FORMAT: u32 = 1;

/// The longest `ID.json` that is read: an envelope of 10,000 recipients fits.
const FACTS_BYTES_MAX: u64 = 16 << 20;

/// Facts about a message: `ID.json`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Facts {
    /// [`FORMAT`].
    pub format: u32,
    /// Its name, as in replies and in the log.
    pub id: String,
    /// When it was kept, RFC 3339, UTC.
    pub date: String,
    /// Where it came from.
    pub client: IpAddr,
    /// Name in the client's HELO or EHLO.
    pub hello: String,
    /// Its mail is relayed to any recipient.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub inside: bool,
    /// The account that it had logged in to; empty where its name is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub account: Option<String>,
    /// The listener that took it.
    pub listener: String,
    /// Where it would have gone.
    pub hop: String,
    /// The mailbox that it was read from, for what comes by POP3 or IMAP: it has no envelope then, and is there still.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mailbox: Option<Mailbox>,
    /// From whom and for whom.
    pub envelope: Envelope,
    /// The trace field that it would have got, or nothing.
    pub trace: String,
    /// Findings.
    pub found: Vec<String>,
    /// When it was sent on after all, and to whom.
    #[serde(default)]
    pub releases: Vec<Release>,
    /// Lessons taken from it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub trained: Vec<Trained>,
}

/// That a program has learnt from a message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Trained {
    /// When, RFC 3339, UTC.
    pub date: String,
    /// As what: `spam` or `ham`.
    pub kind: String,
    /// The program.
    pub by: String,
}

/// A place in a mailbox.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mailbox {
    /// Owner of the mailbox.
    pub user: String,
    /// The message's name in it.
    pub uid: String,
}

/// The envelope as it was taken, parameters and all.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Envelope {
    /// The reverse-path; empty for the null one.
    pub from: String,
    /// `BODY=8BITMIME`.
    #[serde(default)]
    pub eight_bit_mime: bool,
    /// `SMTPUTF8`.
    #[serde(default)]
    pub smtputf8: bool,
    /// `RET=`: `FULL` or `HDRS`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ret: Option<String>,
    /// `ENVID=`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub envid: Option<String>,
    /// `REQUIRETLS`.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub require_tls: bool,
    /// Recipients.
    pub to: Vec<Recipient>,
}

/// One recipient.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Recipient {
    /// The forward-path.
    pub address: String,
    /// `NOTIFY=`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub notify: Option<String>,
    /// `ORCPT=`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub orcpt: Option<String>,
}

/// That a message was sent on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Release {
    /// When, RFC 3339, UTC.
    pub date: String,
    /// Where to.
    pub hop: String,
    /// For whom it was taken there.
    pub to: Vec<String>,
    /// Reply of the hop.
    pub reply: String,
}

impl Envelope {
    /// The envelope of a transaction.
    pub fn new(mail: &MailFrom, recipients: &[RcptTo]) -> Envelope {
        Envelope {
            from: mail.path.as_str().into(),
            eight_bit_mime: mail.body == Some(Body::EightBitMime),
            smtputf8: mail.smtputf8,
            ret: mail.ret.map(|ret| if ret == Return::Full { "FULL".into() } else { "HDRS".into() }),
            envid: mail.envid.clone(),
            require_tls: mail.require_tls,
            to: recipients.iter().map(Recipient::new).collect(),
        }
    }

    /// The sender, for a message of `bytes`.
    ///
    /// # Errors
    /// When its path is none.
    pub fn mail(&self, bytes: u64) -> Result<MailFrom, NotAPath> {
        Ok(MailFrom {
            path: self.from.parse()?,
            size: Some(bytes),
            body: self.eight_bit_mime.then_some(Body::EightBitMime),
            smtputf8: self.smtputf8,
            ret: match self.ret.as_deref() {
                Some("FULL") => Some(Return::Full),
                Some(_) => Some(Return::Headers),
                None => None,
            },
            envid: self.envid.clone().filter(|text| is_graphic(text)),
            require_tls: self.require_tls,
            hold: None,
        })
    }
}

impl Recipient {
    fn new(rcpt: &RcptTo) -> Recipient {
        Recipient { address: rcpt.path.as_str().into(), notify: rcpt.notify.clone(), orcpt: rcpt.orcpt.clone() }
    }

    /// As a command names it.
    ///
    /// # Errors
    /// When its path is none.
    pub fn rcpt(&self) -> Result<RcptTo, NotAPath> {
        Ok(RcptTo {
            path: self.address.parse()?,
            notify: self.notify.clone().filter(|text| is_graphic(text)),
            orcpt: self.orcpt.clone().filter(|text| is_graphic(text)),
        })
    }
}

/// Checks that a text may be a value in a command.
fn is_graphic(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_graphic())
}

/// How far a message has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// No recipient has the message.
    Held,
    /// Some of its recipients have it.
    Partly,
    /// All of its recipients have it.
    Released,
}

impl State {
    /// The state in lower case.
    pub const fn name(self) -> &'static str {
        match self {
            State::Held => "held",
            State::Partly => "partly",
            State::Released => "released",
        }
    }
}

impl Facts {
    /// How far it has come.
    pub fn state(&self) -> State {
        match self.waiting().count() {
            waiting if waiting == self.envelope.to.len() => State::Held,
            0 => State::Released,
            _ => State::Partly,
        }
    }

    /// Whether a recipient does not have the message.
    pub fn waits(&self) -> bool {
        self.state() != State::Released
    }

    /// The recipients that do not have the message.
    pub fn waiting(&self) -> impl Iterator<Item = &Recipient> {
        let has = |rcpt: &&Recipient| self.releases.iter().any(|release| release.to.contains(&rcpt.address));
        self.envelope.to.iter().filter(move |rcpt| !has(rcpt))
    }
}

/// A message in a quarantine.
#[derive(Debug, Clone)]
pub struct Kept {
    /// The quarantine.
    pub folder: PathBuf,
    /// Facts about it.
    pub facts: Facts,
    /// The size of the mail.
    pub bytes: u64,
    /// When the mail was written.
    pub since: SystemTime,
}

impl Kept {
    /// The message `id`.
    ///
    /// # Errors
    /// When there is none, or what is there is not ours.
    pub fn open(folder: &Path, id: &str) -> io::Result<Kept> {
        if !is_id(id) {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, format!("{id:?} is not an id")));
        }
        let mut text = String::new();
        read(&folder.join(format!("{id}.json")))?.take(FACTS_BYTES_MAX).read_to_string(&mut text)?;
        let facts: Facts = serde_json::from_str(&text)?;
        if facts.format != FORMAT || facts.id != id {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "not of this format"));
        }
        let mail = read(&folder.join(format!("{id}.eml")))?.metadata()?;
        Ok(Kept { folder: folder.into(), facts, bytes: mail.len(), since: mail.modified()? })
    }

    /// The ids of all messages of a folder, in any order; none of the messages is opened.
    ///
    /// # Errors
    /// When the folder cannot be read.
    pub fn ids(folder: &Path) -> io::Result<Vec<String>> {
        let mut ids = Vec::new();
        for entry in fs::read_dir(folder)? {
            ids.extend(id_of(&entry?.path(), "json").map(String::from));
        }
        Ok(ids)
    }

    /// Whether a folder has the message `id`.
    pub fn is_there(folder: &Path, id: &str) -> bool {
        is_id(id) && fs::symlink_metadata(folder.join(format!("{id}.json"))).is_ok()
    }

    /// Where the mail is.
    pub fn mail(&self) -> PathBuf {
        self.folder.join(format!("{}.eml", self.facts.id))
    }

    /// Where its facts are.
    pub fn json(&self) -> PathBuf {
        self.folder.join(format!("{}.json", self.facts.id))
    }

    /// Puts its facts in place of what stands there, durably.
    ///
    /// # Errors
    /// When they cannot be written; the old ones stand then.
    pub fn rewrite(&self) -> io::Result<()> {
        let unfinished = self.folder.join(format!(".{}.json.part", self.facts.id));
        // Left by a crash; the lock on the mail says that nobody is at it.
        let _ = fs::remove_file(&unfinished);
        let owner = read(&self.mail())?.metadata()?;
        let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&unfinished)?;
        file.write_all(format!("{:#}\n", serde_json::to_value(&self.facts)?).as_bytes())?;
        if rustix::process::geteuid().is_root() {
            std::os::unix::fs::fchown(&file, Some(owner.uid()), Some(owner.gid()))?;
        }
        file.sync_all()?;
        fs::rename(unfinished, self.json())?;
        File::open(&self.folder)?.sync_all()
    }

    /// Takes it away: the facts first, so that it is gone at once or not at all.
    ///
    /// # Errors
    /// When the files cannot be removed; being gone already is none.
    pub fn delete(&self) -> io::Result<()> {
        remove(&self.json())?;
        remove(&self.mail())
    }
}

/// Removes a file, if it is there.
fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// Opens a file in the folder, and never what a link or a pipe there leads to.
///
/// # Errors
/// When it cannot be opened, or is no file.
pub fn read(path: &Path) -> io::Result<File> {
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let file = OpenOptions::new().read(true).custom_flags(flags.bits().cast_signed()).open(path)?;
    if file.metadata()?.is_file() { Ok(file) } else { Err(io::Error::other("not a file")) }
}

/// Locks a mail until the file is closed; whether nobody else has.
///
/// # Errors
/// When the file system has no locks.
pub fn lock(mail: &File) -> io::Result<bool> {
    match rustix::fs::flock(mail, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(true),
        Err(Errno::WOULDBLOCK) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// Ids are what `serve` makes: letters and digits.
pub fn is_id(text: &str) -> bool {
    (1..=32).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_alphanumeric())
}

/// The id of a file, if it is one of ours with this ending.
fn id_of<'a>(path: &'a Path, ending: &str) -> Option<&'a str> {
    let (id, found) = path.file_name()?.to_str()?.rsplit_once('.')?;
    (found == ending && is_id(id)).then_some(id)
}

/// The present, RFC 3339, UTC, to the second.
pub fn now() -> String {
    const FORM: &[time::format_description::BorrowedFormatItem<'_>] =
        time::macros::format_description!("[year]-[month]-[day]T[hour]:[minute]:[second]Z");
    time::OffsetDateTime::now_utc().format(FORM).expect("the present can be written in this form")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn facts(to: &[&str]) -> Facts {
        let to = to.iter().map(|address| Recipient { address: (*address).into(), notify: None, orcpt: None }).collect();
        Facts {
            format: FORMAT,
            id: "abc".into(),
            date: now(),
            client: [192, 0, 2, 1].into(),
            hello: "x".into(),
            inside: false,
            account: None,
            listener: "127.0.0.1:25".into(),
            hop: "discard:".into(),
            envelope: Envelope {
                from: String::new(),
                eight_bit_mime: true,
                smtputf8: false,
                ret: Some("HDRS".into()),
                envid: Some("a b".into()),
                require_tls: false,
                to,
            },
            mailbox: None,
            trace: String::new(),
            found: Vec::new(),
            releases: Vec::new(),
            trained: Vec::new(),
        }
    }

    fn kept(folder: &Path) -> Kept {
        let kept = Kept { folder: folder.into(), facts: facts(&["a@b"]), bytes: 4, since: SystemTime::now() };
        fs::write(kept.mail(), "mail").unwrap();
        kept
    }

    #[test]
    fn a_message_is_there_when_its_facts_are() {
        let folder = tempfile::tempdir().unwrap();
        let kept = kept(folder.path());
        assert!(Kept::ids(folder.path()).unwrap().is_empty() && !Kept::is_there(folder.path(), "abc"));
        kept.rewrite().unwrap();
        assert_eq!(Kept::ids(folder.path()).unwrap(), ["abc"]);
        assert!(Kept::is_there(folder.path(), "abc") && !Kept::is_there(folder.path(), "../abc"));
        assert_eq!(Kept::open(folder.path(), "abc").unwrap().facts, kept.facts);
        kept.delete().unwrap();
        kept.delete().unwrap();
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    }

    #[test]
    fn links_and_strange_names_are_not_followed() {
        let folder = tempfile::tempdir().unwrap();
        kept(folder.path()).rewrite().unwrap();
        fs::rename(folder.path().join("abc.eml"), folder.path().join("elsewhere")).unwrap();
        std::os::unix::fs::symlink("elsewhere", folder.path().join("abc.eml")).unwrap();
        assert!(Kept::open(folder.path(), "abc").is_err());
        assert!(Kept::open(folder.path(), "../abc").is_err());
    }

    #[test]
    fn the_state_follows_from_who_has_it() {
        let mut facts = facts(&["a@b", "c@d"]);
        assert_eq!(facts.state(), State::Held);
        let release = |to: &str| Release {
            date: now(),
            hop: "discard:".into(),
            to: vec![to.into()],
            reply: "250 2.0.0 Ok".into(),
        };
        facts.releases.push(release("c@d"));
        assert_eq!(facts.state(), State::Partly);
        assert_eq!(facts.waiting().next().unwrap().address, "a@b");
        facts.releases.push(release("a@b"));
        assert_eq!(facts.state(), State::Released);
    }

    #[test]
    fn an_envelope_from_a_file_cannot_inject_a_command() {
        let mut facts = facts(&["a@b>\r\nDATA"]);
        assert!(facts.envelope.to[0].rcpt().is_err());
        let mail = facts.envelope.mail(4).unwrap();
        assert!(mail.path.is_null() && mail.envid.is_none() && mail.ret == Some(Return::Headers));
        facts.envelope.from = "a@b\n".into();
        assert!(facts.envelope.mail(4).is_err());
    }
}
