//! Roles, and the rights that they have.

use std::net::IpAddr;

pub use crate::cli::Role;

/// A right.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Right {
    /// To see the gateway: metrics, queue, domains, signatures, configuration, audit log.
    Look,
    /// To see the quarantine without its mails.
    Quarantine,
    /// To release, delete and save mails of the quarantine.
    Release,
    /// To see accounts.
    Accounts,
    /// To set the password of an account.
    Password,
    /// To change all else.
    Change,
}

impl Role {
    const fn may(self, right: Right) -> bool {
        match self {
            Role::Administrator => true,
            Role::Helpdesk => matches!(right, Right::Quarantine | Right::Release | Right::Accounts | Right::Password),
            Role::Reader => !right.changes(),
        }
    }
}

impl Right {
    const fn changes(self) -> bool {
        matches!(self, Right::Release | Right::Password | Right::Change)
    }
}

/// Somebody who asks.
#[derive(Debug, Clone)]
pub struct Who {
    /// The name of a person or a token.
    pub name: String,
    /// The role.
    pub role: Role,
    /// The address of the client.
    pub from: IpAddr,
    /// Whether it is a program with a token.
    pub is_program: bool,
    /// Whether nothing may be changed, whatever the role.
    pub is_read_only: bool,
}

impl Who {
    /// Whether this right is theirs.
    pub fn may(&self, right: Right) -> bool {
        self.role.may(right) && !(self.is_read_only && right.changes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: [Right; 6] =
        [Right::Look, Right::Quarantine, Right::Release, Right::Accounts, Right::Password, Right::Change];

    fn may(role: Role, is_read_only: bool) -> [bool; 6] {
        let who = Who { name: "x".into(), role, from: [127, 0, 0, 1].into(), is_program: false, is_read_only };
        ALL.map(|right| who.may(right))
    }

    #[test]
    fn a_role_has_its_rights_and_no_other() {
        assert_eq!(may(Role::Administrator, false), [true; 6]);
        assert_eq!(may(Role::Reader, false), [true, true, false, true, false, false]);
        assert_eq!(may(Role::Helpdesk, false), [false, true, true, true, true, false]);
        assert_eq!(may(Role::Administrator, true), may(Role::Reader, false));
        assert_eq!(may(Role::Helpdesk, true), [false, true, false, true, false, false]);
    }
}
