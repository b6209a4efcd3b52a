//! The system's users, as it looks them up (NSS): files, LDAP, SSSD, systemd.

use nix::errno::Errno;
use nix::unistd::User;

use super::table::{Calls, Finding, Found, Name, Table};

/// The users of this machine.
#[derive(Debug, Default)]
pub struct Users {
    calls: Calls,
}

impl Table for Users {
    fn kind(&self) -> &'static str {
        "passwd"
    }

    fn source(&self) -> String {
        "system".into()
    }

    fn find<'a>(&'a self, name: Name<'a>) -> Finding<'a> {
        let user = name.user.to_string();
        Box::pin(self.calls.make(move || look(&user)))
    }
}

/// Services say in several ways that they know nobody of this name.
fn look(user: &str) -> Found {
    match User::from_name(user) {
        Ok(Some(_)) => Found::Yes,
        Ok(None) | Err(Errno::ENOENT | Errno::ESRCH | Errno::EINVAL) => Found::No,
        Err(error) => Found::Unsure(error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_users_of_the_machine_are_known() {
        let users = Users::default();
        for (user, wanted) in
            [("root", Found::Yes), ("no-such-user-here", Found::No), ("", Found::No), ("a\0b", Found::No)]
        {
            assert_eq!(users.find(Name { user, domain: Some("a.test") }).await, wanted, "{user:?}");
        }
    }
}
