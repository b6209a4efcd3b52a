//! A mailbox in memory, whose mails have hostile values wherever a value can stand.

use webmail::Mail;
use webmail::mail::{
    AppPassword, Failure, Flag, Flags, Folder, Identity, Layout, Message, NewPasskey, PasskeySummary, Passkeys,
    Program, Purpose, Row, SCRIPT_NAME, Script, Second, Sending, Setup, Unkept,
};
use webmail::session::{Ending, Session};

/// A value that would break out of text, of an attribute, of a field.
pub const HOSTILE: &str = "\"'><script>alert(1)</script><img src=x onerror=alert(1)>";

/// A mailbox.
#[derive(Default)]
pub struct Fake {
    pub subject: String,
    pub html: String,
    pub count: u32,
    pub settings: Vec<u8>,
    pub contacts: Vec<u8>,
    pub script: String,
    pub identities: Vec<Identity>,
    /// Headers and bodies of parts beside those of every message, which make it a `multipart/related`.
    pub related: Vec<(String, String)>,
    /// Fields of the message, each with its end.
    pub fields: String,
    /// The envelope of all messages, if it is another than that of the subject.
    pub envelope: String,
    /// Calls received, in order.
    pub asked: Vec<String>,
    pub sent: Vec<Sending>,
    pub saved: Vec<u8>,
    pub has_second: bool,
}

impl Fake {
    fn raw(&self) -> (Vec<u8>, Layout) {
        let mut raw = format!(
            "From: x\r\n{}References: <a@b>\r\n {HOSTILE}\r\nContent-Type: multipart/{}; boundary=b\r\n\r\n",
            self.fields,
            if self.related.is_empty() { "mixed" } else { "related" }
        );
        let mut layout = Layout { header: 0, body: raw.len() as u64, ..Layout::default() };
        let file = HOSTILE.replace('"', "");
        let parts = [
            (
                "Content-Type: text/plain; charset=utf-8\r\n".into(),
                format!("Hello,\r\n\r\n> quoted\r\nhttps://a.example/{HOSTILE}\r\n"),
            ),
            ("Content-Type: text/html\r\n".into(), self.html.clone()),
            (
                format!(
                    "Content-Type: {HOSTILE}/x; name=\"{file}\"\r\nContent-Disposition: attachment; filename=\"{file}\"\r\n"
                ),
                "file".into(),
            ),
        ];
        for (header, body) in parts.into_iter().chain(self.related.clone()) {
            raw.push_str("--b\r\n");
            let at = raw.len() as u64;
            raw.push_str(&format!("{header}\r\n"));
            let begins = raw.len() as u64;
            raw.push_str(&body);
            let mut part = Layout { header: at, body: begins, end: raw.len() as u64, ..Layout::default() };
            if header.starts_with("Content-Type: message/rfc822") {
                let within = begins + body.find("\r\n\r\n").map_or(0, |at| at as u64 + 4);
                part.is_message = true;
                part.parts.push(Layout { header: begins, body: within, end: part.end, ..Layout::default() });
            }
            layout.parts.push(part);
            raw.push_str("\r\n");
        }
        raw.push_str("--b--\r\n");
        layout.end = raw.len() as u64;
        (raw.into_bytes(), layout)
    }

    fn row(&self, folder: u32, uid: u32) -> Row {
        let quoted = self.subject.replace('\\', "\\\\").replace('"', "\\\"");
        let people = format!("((\"{quoted}\" NIL \"ann\" \"{}\"))", quoted.replace(' ', ""));
        let envelope =
            format!("(\"d\" \"{quoted}\" {people} {people} {people} {people} {people} NIL NIL \"<{quoted}>\")");
        let flags =
            Flags { seen: !uid.is_multiple_of(3), answered: uid.is_multiple_of(5), flagged: uid.is_multiple_of(7) };
        let date = 1_795_880_000 - i64::from(self.count.saturating_sub(uid)) * 40_000;
        Row {
            folder,
            uid,
            flags,
            date,
            size: self.raw().0.len() as u64,
            envelope: if self.envelope.is_empty() { envelope } else { self.envelope.clone() }.into_bytes(),
            has_attachment: uid.is_multiple_of(4),
            count: 1,
        }
    }

    fn note(&mut self, asked: String) -> Result<(), Failure> {
        self.asked.push(asked);
        Ok(())
    }
}

impl Mail for Fake {
    fn user(&self) -> &str {
        "ann@mx.example"
    }

    fn addresses(&self) -> Vec<String> {
        vec!["ann@mx.example".into(), "info@mx.example".into()]
    }

    fn hostname(&self) -> &str {
        "mx.example"
    }

    fn now(&self) -> i64 {
        1_795_885_000
    }

    fn random(&mut self) -> [u8; 16] {
        [7; 16]
    }

    fn quota(&self) -> (u64, u64) {
        (123_456_789, 1_000_000_000)
    }

    fn folders(&mut self) -> Vec<Folder> {
        let folder =
            |number, name: &str, purpose| Folder { number, name: name.into(), purpose, count: 9, unseen: number % 3 };
        vec![
            folder(1, "INBOX", Purpose::Inbox),
            folder(2, "Drafts", Purpose::Drafts),
            folder(3, "Sent", Purpose::Sent),
            folder(4, "Archive", Purpose::Archive),
            folder(5, "Junk", Purpose::Junk),
            folder(6, "Trash", Purpose::Trash),
            folder(7, &self.subject, Purpose::Other),
        ]
    }

    fn rows(&mut self, folder: u32, before: u32, count: usize) -> Vec<Row> {
        (1..=self.count).rev().filter(|uid| *uid < before).take(count).map(|uid| self.row(folder, uid)).collect()
    }

    fn message(&mut self, folder: u32, uid: u32) -> Option<Message> {
        let (_, layout) = self.raw();
        (uid <= self.count).then(|| Message { row: self.row(folder, uid), number: 1, layout })
    }

    fn read(&mut self, _message: u64, offset: u64, buffer: &mut [u8]) -> usize {
        let raw = self.raw().0;
        let rest = raw.get(usize::try_from(offset).unwrap_or(usize::MAX)..).unwrap_or_default();
        let count = rest.len().min(buffer.len());
        buffer[..count].copy_from_slice(&rest[..count]);
        count
    }

    fn search(&mut self, words: &str, count: usize) -> (Vec<Row>, bool) {
        (self.rows(1, u32::MAX, count), words != "slow")
    }

    fn flag(&mut self, folder: u32, uids: &[u32], flag: Flag, is_set: bool) -> Result<(), Failure> {
        self.note(format!("flag {folder} {uids:?} {flag:?} {is_set}"))
    }

    fn move_to(&mut self, folder: u32, uids: &[u32], to: u32) -> Result<(), Failure> {
        self.note(format!("move {folder} {uids:?} {to}"))
    }

    fn expunge(&mut self, folder: u32, uids: &[u32]) -> Result<(), Failure> {
        self.note(format!("expunge {folder} {uids:?}"))
    }

    fn save(&mut self, folder: u32, content: Vec<u8>, replaces: Option<u32>, _: [u8; 16]) -> Result<u32, Failure> {
        self.saved = content;
        self.note(format!("save {folder} {replaces:?}")).map(|()| 1)
    }

    fn send(&mut self, sending: Sending) -> Result<(), Failure> {
        self.sent.push(sending);
        Ok(())
    }

    fn provide(&mut self, purpose: Purpose) -> Result<u32, Failure> {
        self.note(format!("provide {purpose:?}"))?;
        Ok(99)
    }

    fn create(&mut self, name: &str) -> Result<(), Failure> {
        self.note(format!("create {name}"))
    }

    fn rename(&mut self, folder: u32, name: &str) -> Result<(), Failure> {
        self.note(format!("rename {folder} {name}"))
    }

    fn delete(&mut self, folder: u32) -> Result<(), Failure> {
        self.note(format!("delete {folder}"))
    }

    fn settings(&mut self) -> Vec<u8> {
        self.settings.clone()
    }

    fn contacts(&mut self) -> Vec<u8> {
        self.contacts.clone()
    }

    fn set_contacts(&mut self, contacts: &[u8]) -> Result<(), Failure> {
        self.contacts = contacts.to_vec();
        self.note("contacts".into())
    }

    fn script(&mut self) -> Option<Script> {
        Some(Script { name: SCRIPT_NAME.into(), text: self.script.clone(), is_active: true })
    }

    fn set_script(&mut self, name: &str, text: &str) -> Result<(), Unkept> {
        if text.contains("wrong") {
            return Err(Unkept::Wrong(format!("line 1: {HOSTILE}")));
        }
        self.script = text.into();
        self.note(format!("script {name}")).map_err(Unkept::Failure)
    }

    fn identities(&mut self) -> Vec<Identity> {
        let noted = self.identities.clone();
        let of = |address: String| {
            let known = noted.iter().find(|known| known.address == address).cloned();
            known.unwrap_or(Identity { address, ..Identity::default() })
        };
        self.addresses().into_iter().map(of).collect()
    }

    fn set_identity(&mut self, identity: Identity) -> Result<(), Failure> {
        self.identities.retain(|known| known.address != identity.address);
        self.identities.push(identity);
        self.note("identity".into())
    }

    fn fetches(&self) -> bool {
        true
    }

    fn pictures(&mut self, urls: &[String], bytes_max: usize) -> Vec<Option<Vec<u8>>> {
        let _ = self.note(format!("pictures {urls:?} {bytes_max}"));
        let file = |url: &String| match url.rsplit('/').next() {
            Some("png") => Some(b"\x89PNG".to_vec()),
            Some("avif") => Some(b"\0\0\0\x20ftypavif".to_vec()),
            Some("page") => Some(HOSTILE.into()),
            Some("large") => Some([&b"GIF89a"[..], &vec![0; bytes_max / 2]].concat()),
            _ => None,
        };
        urls.iter().map(file).collect()
    }

    fn leave(&mut self, message: u64, url: &str) -> Result<(), Failure> {
        self.note(format!("leave {message} {url}"))
    }

    fn second(&mut self) -> Option<Second> {
        Some(match self.has_second {
            true => Second::Set { recovery_codes: 7 },
            false => Second::Unset { secret: "SECRET".into(), link: "otpauth://totp/x?secret=SECRET".into() },
        })
    }

    fn begin_second(&mut self, setup: Setup<'_>) -> Result<Vec<String>, Failure> {
        match setup.device {
            Some((_, "")) => Err(Failure::Code),
            _ => Ok(vec!["abcd".into()]),
        }
    }

    fn app_passwords(&mut self) -> Option<Vec<AppPassword>> {
        let used = Some((1_795_880_000, "jmap".into()));
        let one =
            AppPassword { id: 1, name: self.subject.clone(), doors: vec!["imap", "jmap"], made: 1_795_000_000, used };
        Some(vec![one.clone(), AppPassword { id: 2, used: None, ..one }])
    }

    fn add_app_password(&mut self, own: &str, program: Program<'_>) -> Result<String, Failure> {
        self.note(format!("app password {own} {program:?}")).map(|()| "abcd".into())
    }

    fn passkeys(&mut self, session: &Session) -> Option<Passkeys> {
        let one = PasskeySummary {
            id: 1,
            name: self.subject.clone(),
            made: 1_795_000_000,
            used: Some(1_795_880_000),
            credential: HOSTILE.into(),
        };
        let all = vec![one.clone(), PasskeySummary { id: 2, used: None, ..one }];
        Some(Passkeys { all, challenge: session.token.clone(), user: HOSTILE.into() })
    }

    fn add_passkey(&mut self, session: &Session, new: NewPasskey<'_>) -> Result<(), Failure> {
        let _ = self.note(format!("passkey of {} {new:?}", session.token));
        match new.name {
            "1" => Err(Failure::Passkey),
            "2" => Err(Failure::Passkeys),
            _ => Ok(()),
        }
    }

    fn end_passkey(&mut self, id: u32) -> Result<(), Failure> {
        if id == 1 { Err(Failure::LastPasskey) } else { self.note(format!("end passkey {id}")) }
    }

    fn sessions(&mut self) -> Vec<Session> {
        let session = |id: &str, client: &str| {
            let new = Session::new(1, "ann".into(), "secret".into(), [0; 32], 1_795_880_000);
            Session { id: id.into(), client: client.into(), ..new }
        };
        vec![session("", "192.0.2.1, Mozilla/5.0 (X11; Linux x86_64)"), session("a1", &self.subject)]
    }

    fn end_sessions(&mut self, ending: Ending<'_>) {
        let _ = self.note(format!("{ending:?}"));
    }

    fn conversations(&mut self, folder: u32, before: u32, count: usize) -> Vec<Row> {
        let rows = self.rows(folder, before, count).into_iter();
        rows.map(|row| Row { count: 1 + row.uid as usize % 3, ..row }).collect()
    }

    fn conversation(&mut self, folder: u32, uid: u32, _count: usize) -> Vec<Row> {
        if folder > 7 || uid > self.count {
            return Vec::new();
        }
        vec![self.row(3, 2), self.row(folder, uid.saturating_sub(1)), self.row(folder, uid)]
    }

    fn of_conversations(&mut self, _folder: u32, uids: &[u32]) -> Vec<u32> {
        uids.iter().map(|uid| uid - 1).collect()
    }

    fn set_settings(&mut self, settings: &[u8]) -> Result<(), Failure> {
        self.settings = settings.to_vec();
        self.note("settings".into())
    }
}
