//! Who may come in: a browser by a link that is good once, then by its session; a program by a token of a file.

use std::fs;
use std::io::Read as _;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

use sha2::{Digest as _, Sha256};
use webmail::session::{Key, Session, Sessions, hex};

use crate::output::Failure;

/// How long a link is good, in seconds.
const LINK_SECONDS: i64 = 3_600;

/// Characters that a token of a file has at least.
const TOKEN_MIN: usize = 32;

/// Who may come in.
pub struct Access {
    link: Mutex<Option<(Key, i64)>>,
    sessions: Mutex<Sessions>,
    program: Option<Key>,
    /// Nothing can be changed.
    pub is_read_only: bool,
}

impl Access {
    /// A new link, with its token.
    pub fn new(token_file: Option<&Path>, is_read_only: bool) -> Result<(Access, String), Failure> {
        let program = token_file.map(|path| {
            let text = fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))?;
            match text.trim() {
                token if token.len() >= TOKEN_MIN => Ok(hash(token)),
                _ => Err(format!("{}: a token has at least {TOKEN_MIN} characters", path.display())),
            }
        });
        let token = random()?;
        let link = Mutex::new(Some((hash(&token), now())));
        Ok((Access { link, sessions: Mutex::default(), program: program.transpose()?, is_read_only }, token))
    }

    /// Takes a link; the token of the session that begins with it.
    pub fn enter(&self, token: &str) -> Option<String> {
        let mut link = lock(&self.link);
        let (known, since) = link.as_ref()?;
        if hash(token) != *known || now().saturating_sub(*since) > LINK_SECONDS {
            return None;
        }
        *link = None;
        let (token, form) = (random().ok()?, random().ok()?);
        let session = Session::new(0, "administrator".into(), form, Key::default(), now());
        lock(&self.sessions).begin(hash(&token), session, now());
        Some(token)
    }

    /// The session of a cookie.
    pub fn session(&self, cookie: Option<&str>) -> Option<Session> {
        lock(&self.sessions).find(&hash(cookie?), now())
    }

    /// Ends a session.
    pub fn leave(&self, cookie: Option<&str>) {
        if let Some(cookie) = cookie {
            lock(&self.sessions).end(&hash(cookie));
        }
    }

    /// Whether a field `Authorization` has the token of programs.
    pub fn is_program(&self, field: Option<&[u8]>) -> bool {
        let token = field.and_then(|field| std::str::from_utf8(bearer(field)?).ok());
        // Of hashes, so that it takes as long wherever they differ.
        matches!((token, self.program), (Some(token), Some(known)) if hash(token.trim()) == known)
    }
}

/// What stands behind the scheme, whose letters may be of either case.
fn bearer(field: &[u8]) -> Option<&[u8]> {
    let (scheme, token) = field.split_at_checked(7)?;
    scheme.eq_ignore_ascii_case(b"bearer ").then_some(token)
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn now() -> i64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_secs()).unwrap_or(i64::MAX)
}

fn hash(token: &str) -> Key {
    Sha256::digest(token).into()
}

fn random() -> Result<String, Failure> {
    let mut bytes = [0; 32];
    fs::File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    Ok(hex(&bytes))
}
