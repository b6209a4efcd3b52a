//! Entry: a browser by a link that is good once or by the login of a person, then by its session; a program by a token.

use std::fs;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use mailbox::webauthn::{self, Assertion, Ceremony, Challenges, Origin};
use mailbox::{Guard, password};
use sha2::{Digest as _, Sha256};
use tokio::runtime::Handle;
use tokio::time::{Instant, sleep_until, timeout};
use webmail::session::{Key, Session, Sessions, hex};
use webmail::{Call, Form};

use super::fault::Fault;
use super::people::{self, People, Person};
use super::role::{Role, Who};
use crate::output::Failure;

/// How long a link is good, in seconds.
const LINK_SECONDS: i64 = 3_600;

/// Characters that a token of a file has at least.
const TOKEN_MIN: usize = 32;

/// The name of a session that a link has begun: no person can have it.
const LINK_NAME: &str = "the link";

/// How long a login waits for its turn.
const PATIENCE: Duration = Duration::from_secs(30);

/// How long a check may take before it counts as failed.
const CHECK_WAIT: Duration = Duration::from_secs(10);

/// How long a wrong login takes at least, whether there is such a person or not.
const FAILURE_WAIT: Duration = Duration::from_secs(1);

/// The outcome of a login.
pub enum Entry {
    /// The token of the session.
    In(String),
    /// The password was right. The challenge is the proof of that, and what passkeys answer.
    Step { challenge: String, passkeys: Vec<String> },
    /// Something is wrong.
    Wrong,
}

/// Links, sessions, people and tokens.
pub struct Access {
    link: Mutex<Option<(Key, i64)>>,
    sessions: Mutex<Sessions>,
    program: Option<Key>,
    people: Option<PathBuf>,
    guard: Arc<Guard>,
    /// Challenges for passkeys, and second steps of logins that have begun.
    pub challenges: Challenges,
    /// Whether nothing can be changed.
    pub is_read_only: bool,
}

impl Access {
    /// A new link, with its token. People and tokens are in `folder`.
    ///
    /// # Errors
    /// When the file of the token cannot be read, or there is no randomness.
    pub fn new(
        token_file: Option<&Path>,
        folder: Option<&Path>,
        is_read_only: bool,
    ) -> Result<(Access, String), Failure> {
        let program = token_file.map(|path| {
            let text = fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))?;
            match text.trim() {
                token if token.len() >= TOKEN_MIN => Ok(hash(token)),
                _ => Err(format!("{}: a token has at least {TOKEN_MIN} characters", path.display())),
            }
        });
        let token = random()?;
        let access = Access {
            link: Mutex::new(Some((hash(&token), now()))),
            sessions: Mutex::default(),
            program: program.transpose()?,
            people: folder.map(people::file),
            guard: Guard::new(),
            challenges: Challenges::default(),
            is_read_only,
        };
        Ok((access, token))
    }

    /// Takes a link; the token of the session that begins with it.
    pub fn enter(&self, token: &str) -> Option<String> {
        let mut link = lock(&self.link);
        let (known, since) = link.as_ref()?;
        if hash(token) != *known || now().saturating_sub(*since) > LINK_SECONDS {
            return None;
        }
        *link = None;
        self.begin(LINK_NAME, Key::default())
    }

    /// Logs a person in by a password and, if it is set up, the second step. Waits its turn: tries at one name are checked one after the
    /// other, later and later. To be called where a thread may wait.
    pub fn log_in(&self, client: IpAddr, form: &Form, origin: &Origin) -> Entry {
        let name = form.get("name").trim();
        self.attempt(client, name, |path| match form.has("step") {
            true => self.second_step(path, name, form, origin),
            false => self.first_step(path, name, form, origin),
        })
    }

    /// Logs a person in by a passkey alone, which answers the challenge for this browser's token. Waits as [`Access::log_in`].
    pub fn log_in_by_passkey(&self, client: IpAddr, form: &Form, token: Option<&str>, origin: &Origin) -> Entry {
        let user = webauthn::user(form.get("user")).unwrap_or_default();
        let name = user.strip_prefix(HANDLE).unwrap_or_default();
        self.attempt(client, name, |path| {
            let person = self.by_passkey(path, name, form, &(alone(token?), origin), true)?;
            self.begin(name, hash(&person.password)).map(Entry::In)
        })
    }

    /// A challenge for a login by a passkey alone, and the token by which its browser is known.
    pub fn alone(&self) -> Option<(String, String)> {
        let token = random().ok()?;
        Some((self.challenges.make(&alone(&token), now()).ok()?, token))
    }

    fn attempt(&self, client: IpAddr, name: &str, check: impl FnOnce(&Path) -> Option<Entry>) -> Entry {
        let Some(path) = self.people.as_deref() else { return Entry::Wrong };
        let runtime = Handle::current();
        let begun = runtime.block_on(timeout(PATIENCE, self.guard.begin(Some(client), name, CHECK_WAIT)));
        let Ok(attempt) = begun else { return Entry::Wrong };
        let answered = Instant::now() + FAILURE_WAIT;
        let entry = check(path).unwrap_or(Entry::Wrong);
        match &entry {
            Entry::In(_) => attempt.succeed(),
            Entry::Step { .. } => attempt.give_up(),
            Entry::Wrong => {
                drop(attempt);
                runtime.block_on(sleep_until(answered));
            }
        }
        entry
    }

    fn first_step(&self, path: &Path, name: &str, form: &Form, origin: &Origin) -> Option<Entry> {
        let person = person(path, name).filter(|person| person.is_password(form.get("password")))?;
        if person.second.is_some() && form.get("code").is_empty() {
            let challenge = self.challenges.make(&step(&person), now()).ok()?;
            let passkeys = person.passkeys.iter().filter(|one| one.is_of(origin)).map(|one| one.credential()).collect();
            return Some(Entry::Step { challenge, passkeys });
        }
        if person.second.is_some() {
            use_up(path, name, form.get("code"))?;
        }
        self.begin(name, hash(&person.password)).map(Entry::In)
    }

    fn second_step(&self, path: &Path, name: &str, form: &Form, origin: &Origin) -> Option<Entry> {
        let (person, challenge) = (person(path, name)?, form.get("step"));
        let purpose = step(&person);
        if person.second.is_none() || !self.challenges.is_good(challenge, &purpose, now()) {
            return None;
        }
        match form.get("code") {
            "" => drop(self.by_passkey(path, name, form, &(purpose, origin), false)?),
            code => {
                use_up(path, name, code)?;
                self.challenges.take(challenge, &purpose, now()).then_some(())?;
            }
        }
        self.begin(name, hash(&person.password)).map(Entry::In)
    }

    /// The person whose passkey counts. Its counter is kept before this returns.
    fn by_passkey(
        &self,
        path: &Path,
        name: &str,
        form: &Form,
        (purpose, origin): &(String, &Origin),
        is_alone: bool,
    ) -> Option<Person> {
        let person = person(path, name)?;
        let found = webauthn::find(&person.passkeys, form.get("credential"))?;
        let ceremony = Ceremony { challenges: &self.challenges, purpose, origin, now: now() };
        let (client, data, signature) = (form.get("client"), form.get("data"), form.get("signature"));
        let checked = ceremony.check(found, &Assertion { client, data, signature }, is_alone);
        let counter = checked.inspect_err(|why| eprintln!("a passkey of {name} does not count: {why}")).ok()?;
        let id = found.id;
        let note = |people: &mut People| {
            let known = people.person(name)?.passkeys.iter_mut().find(|one| one.id == id);
            match known.is_some_and(|one| one.note(counter, now())) {
                true => Ok(()),
                false => Err("it was used in between".to_owned()),
            }
        };
        People::edit(path, note).ok().map(|()| person)
    }

    /// Work of a session that proves itself again by a password or a code: where it fails, it counts as a login that has failed.
    ///
    /// # Errors
    /// What the work fails with, and when too many wait.
    pub fn guarded<T>(&self, who: &Who, work: impl FnOnce() -> Result<T, Fault>) -> Result<T, Fault> {
        let begun = timeout(PATIENCE, self.guard.begin(Some(who.from), &who.name, CHECK_WAIT));
        let attempt = Handle::current().block_on(begun).map_err(|_| Fault::away("too many try this now"))?;
        let outcome = work();
        match outcome.is_ok() {
            true => attempt.give_up(),
            false => drop(attempt),
        }
        outcome
    }

    fn begin(&self, name: &str, mark: Key) -> Option<String> {
        let (token, form) = (random().ok()?, random().ok()?);
        // Sessions of one are bounded by this number.
        let number = hash(name).first_chunk().map_or(0, |bytes| u32::from_le_bytes(*bytes));
        let session = Session::new(number, name.into(), form, mark, now());
        lock(&self.sessions).begin(hash(&token), session, now());
        Some(token)
    }

    /// The session of a cookie, and who has it. The session of a person ends with the password that it began with.
    pub fn session(&self, cookie: Option<&str>, from: IpAddr) -> Option<(Session, Who)> {
        let key = hash(cookie?);
        let session = lock(&self.sessions).find(&key, now())?;
        let role = match session.name == LINK_NAME {
            true => Some(Role::Administrator),
            false => self.role(&session),
        };
        let Some(role) = role else {
            lock(&self.sessions).end(&key);
            return None;
        };
        let name = session.name.clone();
        Some((session, Who { name, role, from, is_program: false, is_read_only: self.is_read_only }))
    }

    fn role(&self, session: &Session) -> Option<Role> {
        let mut people = People::read(self.people.as_deref()?).ok()?;
        let person = people.person(&session.name).ok()?;
        (hash(&person.password) == session.mark).then_some(person.role)
    }

    /// Ends a session.
    pub fn leave(&self, cookie: Option<&str>) {
        if let Some(cookie) = cookie {
            lock(&self.sessions).end(&hash(cookie));
        }
    }

    /// The program whose token a field `Authorization` has.
    pub fn program(&self, field: Option<&[u8]>, from: IpAddr) -> Option<Who> {
        let token = std::str::from_utf8(bearer(field?)?).ok()?.trim();
        let who = |name: &str, role| {
            let (name, is_read_only) = (name.to_owned(), self.is_read_only);
            Some(Who { name, role, from, is_program: true, is_read_only })
        };
        // Of hashes, so that it takes as long wherever they differ.
        if self.program.is_some_and(|known| hash(token) == known) {
            return who("the token file", Role::Administrator);
        }
        let people = People::read(self.people.as_deref()?).ok()?;
        let token = people.token(token)?;
        who(&token.name, token.role)
    }

    /// The file of people and tokens, if there is a folder for it.
    pub fn people(&self) -> Option<&Path> {
        self.people.as_deref()
    }
}

/// The site as the browser names it. TLS, where there is some, is in front of this process.
pub fn origin(call: &Call) -> Origin {
    Origin::new(&call.authority, false)
}

/// The beginning of the name by which authenticators know a person.
const HANDLE: &str = "admin:";

/// The name by which authenticators know a person.
pub fn handle(name: &str) -> String {
    format!("{HANDLE}{name}")
}

/// The purpose of a challenge for a new passkey.
pub fn registration(session: &Session) -> String {
    format!("register {}", session.token)
}

fn alone(token: &str) -> String {
    format!("passkey {token}")
}

/// The purpose of a challenge of a person whose password was right.
fn step(person: &Person) -> String {
    format!("step {} {}", hex(&hash(&person.password)), person.name)
}

fn person(path: &Path, name: &str) -> Option<Person> {
    People::read(path).ok()?.person(name).ok().cloned()
}

/// Whether a code of a person counts. It is kept as used before this returns.
fn use_up(path: &Path, name: &str, code: &str) -> Option<()> {
    let use_up = |people: &mut People| {
        let second = people.person(name)?.second.as_mut();
        match second.is_some_and(|second| second.takes(code, now())) {
            true => Ok(()),
            false => Err("the code is wrong".to_owned()),
        }
    };
    People::edit(path, use_up).ok()
}

/// The token behind the scheme, whose letters may be of either case.
fn bearer(field: &[u8]) -> Option<&[u8]> {
    let (scheme, token) = field.split_at_checked(7)?;
    scheme.eq_ignore_ascii_case(b"bearer ").then_some(token)
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Seconds since 1970.
pub fn now() -> i64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_secs()).unwrap_or(i64::MAX)
}

fn hash(token: &str) -> Key {
    Sha256::digest(token).into()
}

fn random() -> Result<String, Failure> {
    Ok(hex(&password::random::<32>()?))
}
