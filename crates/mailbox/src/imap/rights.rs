//! GETACL, SETACL, DELETEACL, LISTRIGHTS and MYRIGHTS (RFC 4314).

use proto::imap::acl::{Modification, Rights};
use proto::imap::response;
use store::{Error, Refused};

use super::{Done, Refusal, Session, User, done, no, nonexistent};
use crate::acl::{self, Place};
use crate::wire::Stream;

impl<S: Stream> Session<'_, S> {
    /// The mailbox of this name for a user, if the user has this right.
    pub(super) fn place(&self, user: &User, name: &[u8], needed: Rights) -> Result<Place, Refusal> {
        let state = self.site.store.state();
        let place = acl::place(&state, user.number, name).ok_or_else(nonexistent)?;
        match (place.rights.has(needed), place.rights.has(Rights::LOOKUP)) {
            (true, _) => Ok(place),
            (false, true) => Err(not_permitted()),
            // It is told to nobody who may not see it.
            (false, false) => Err(nonexistent()),
        }
    }

    /// Current rights in the selected mailbox.
    pub(super) fn rights_here(&self) -> Rights {
        let (Some(view), Some(user)) = (&self.selected, &self.user) else { return Rights::NONE };
        let state = self.site.store.state();
        state.mailbox(view.number).map_or(Rights::NONE, |mailbox| acl::rights(&state, user.number, mailbox))
    }

    /// Refuses what may not be done there.
    pub(super) fn permit(&self, needed: Rights) -> Result<(), Refusal> {
        if self.rights_here().has(needed) { Ok(()) } else { Err(not_permitted()) }
    }

    pub(super) fn get_acl(&mut self, user: &User, name: &[u8]) -> Result<Done, Refusal> {
        let place = self.place(user, name, Rights::ADMINISTER)?;
        let state = self.site.store.state();
        let owner = state.account(place.account).ok_or_else(nonexistent)?;
        let owner = (String::from_utf8_lossy(&owner.name).into_owned(), Rights::ALL);
        let mut line = self.told("ACL", name);
        for (who, rights) in std::iter::once(owner).chain(acl::list(&place.mailbox)) {
            line.push(b' ');
            response::string(who.as_bytes(), &mut line);
            line.push(b' ');
            response::string(rights.to_string().as_bytes(), &mut line);
        }
        self.end(line);
        done("ACL completed")
    }

    pub(super) fn my_rights(&mut self, user: &User, name: &[u8]) -> Result<Done, Refusal> {
        let place = self.place(user, name, Rights::NONE)?;
        let mut line = self.told("MYRIGHTS", name);
        line.extend_from_slice(format!(" {}", place.rights).as_bytes());
        self.end(line);
        done("Rights completed")
    }

    pub(super) fn list_rights(&mut self, user: &User, name: &[u8], who: &str) -> Result<Done, Refusal> {
        let place = self.place(user, name, Rights::ADMINISTER)?;
        let state = self.site.store.state();
        let is_owner =
            state.account(place.account).is_some_and(|owner| &*owner.name == who.to_ascii_lowercase().as_bytes());
        let mut line = self.told("LISTRIGHTS", name);
        line.push(b' ');
        response::string(who.as_bytes(), &mut line);
        match is_owner {
            true => line.extend_from_slice(format!(" {}", Rights::ALL).as_bytes()),
            false => {
                line.extend_from_slice(b" \"\"");
                Rights::ALL
                    .to_string()
                    .chars()
                    .for_each(|letter| line.extend_from_slice(format!(" {letter}").as_bytes()));
            }
        }
        self.end(line);
        done("Rights completed")
    }

    pub(super) async fn set_acl(
        &mut self,
        user: &User,
        name: &[u8],
        who: &str,
        modification: Modification,
    ) -> Result<Done, Refusal> {
        let place = self.place(user, name, Rights::ADMINISTER)?;
        let who = self.identifier(&place, who, modification).await?;
        let number = place.number;
        let change = self.site.store.transact(move |transaction| acl::change(transaction, number, &who, modification));
        match change.await {
            Err(Error::Refused(Refused::TooManyAnnotations)) => Err(no("[LIMIT] Too many annotations")),
            outcome => {
                outcome?;
                done("Rights changed")
            }
        }
    }

    /// Checks an identifier of SETACL: `anyone`, or an account other than the owner. One that the list has already
    /// may have been deleted since.
    async fn identifier(&self, place: &Place, who: &str, modification: Modification) -> Result<String, Refusal> {
        let (sign, name) = who.strip_prefix('-').map_or(("", who), |name| ("-", name));
        let name = name.to_ascii_lowercase();
        let state = self.site.store.state();
        if state.account(place.account).is_some_and(|owner| &*owner.name == name.as_bytes()) {
            return Err(no("[CANNOT] The owner has all rights"));
        }
        let who = format!("{sign}{name}");
        let goes = modification == Modification::Replace(Rights::NONE);
        if name == acl::ANYONE || goes || acl::given(&place.mailbox, &who) != Rights::NONE {
            return Ok(who);
        }
        match self.site.accounts.named(&name, false).await {
            Ok(Some(account)) if account.name == name => Ok(who),
            Ok(_) => Err(no("[CANNOT] Nobody has an account with this name")),
            Err(_) => Err(no("[UNAVAILABLE] Accounts cannot be looked up now")),
        }
    }

    fn told(&self, word: &str, name: &[u8]) -> Vec<u8> {
        let mut line = format!("* {word} ").into_bytes();
        response::mailbox(name, self.enabled.has_utf8_names(), &mut line);
        line
    }

    fn end(&mut self, mut line: Vec<u8>) {
        line.extend_from_slice(b"\r\n");
        self.server.bytes(&line);
    }
}

pub(super) fn not_permitted() -> Refusal {
    no("[NOPERM] You may not")
}
