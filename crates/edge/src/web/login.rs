//! Logins at a proxy that clients know of: `Proxy-Authorization` with the scheme `Basic` (RFC 7617).
//!
//! A tunnel is opened for who has logged in, and what is said within it is that user's. The field never goes on: it is one of those
//! that speak of one connection.

use proto::http::{Request, basic_credentials};

use super::refused::Refused;
use super::session::Session;
use crate::porch::login::Denied;

impl Session {
    /// The name of the user who has logged in.
    pub(super) fn user(&self) -> Option<&str> {
        self.user.as_ref().map(|user| &*user.name)
    }

    /// Has the client log in by a request, where this door asks for it.
    ///
    /// # Errors
    /// When the client has to be asked for its name and password, or they cannot be checked.
    pub(super) async fn log_in(&mut self, request: &Request) -> Result<(), Refused> {
        if self.opened.is_some() || !self.settings.asks_for_login(self.peer.ip()) {
            return Ok(());
        }
        self.user = None;
        let logins = self.shared.runtime.borrow().logins.clone();
        let logins = logins.ok_or_else(|| Refused::new(503, "Nobody can log in here."))?;
        let said = request.fields.get("proxy-authorization").and_then(basic_credentials);
        let Some((name, password)) = said else { return Err(challenge(logins.realm(), "A login is needed.")) };
        match logins.check(self.peer.ip(), &name, &password).await {
            Ok(user) => self.user = Some(user),
            Err(Denied::Wrong) => return Err(challenge(logins.realm(), "The name or the password is wrong.")),
            Err(Denied::Away) => return Err(Refused::new(503, "Logins cannot be checked now. Try again later.")),
        }
        Ok(())
    }
}

/// Asks for a name and a password.
fn challenge(realm: &str, words: &str) -> Refused {
    let realm: String = realm.chars().filter(|letter| !matches!(letter, '"' | '\\') && !letter.is_control()).collect();
    let asked = format!("Basic realm=\"{realm}\", charset=\"UTF-8\"");
    Refused { field: Some(("Proxy-Authenticate", asked.into_bytes().into())), ..Refused::new(407, words) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_realm_cannot_leave_its_quotes() {
        let asked = challenge("a\"b\r\n", "x").field.map(|(_, value)| value).unwrap_or_default();
        assert_eq!(&*asked, b"Basic realm=\"ab\", charset=\"UTF-8\"");
    }
}
