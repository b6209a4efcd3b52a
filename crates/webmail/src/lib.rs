//! Webmail without I/O: from a request and a mailbox to a page.
//!
//! ```text
//!  request ─ Call ─► answer(mail, session, call) ─► Reply ─► the host's connection
//!                        │
//!                        ├ html       markup that is constant, text that is escaped
//!                        ├ language   the texts of the interface, numbers and dates
//!                        ├ sanitise   HTML of mails, written anew from what is allowed
//!                        ├ passkey    forms that ask for passkeys, by the one script
//!                        ├ structure  parts of a message, decoded by `mime`
//!                        └ compose    a mail from a form
//! ```
//! Every page works without script, but for passkeys: forms and links, and a redirection behind each form. Sessions are [`session::Sessions`]; the host
//! keeps them, checks passwords and hands in the time, randomness and the [`Mail`] of the user who has logged in.
//!
//! It knows no store, no socket and no clock. Bounds: forms, parts, rows and recipients are counted where they are read.
#![cfg_attr(not(test), no_std)]
#![forbid(unsafe_code)]

extern crate alloc;

mod call;
mod compose;
mod contacts;
mod envelope;
mod fault;
pub mod filters;
mod form;
mod fuzz;
pub mod html;
mod language;
pub mod mail;
mod page;
pub mod passkey;
mod percent;
mod plain;
mod qr;
mod recipients;
mod refusal;
mod reply;
mod sanitise;
pub mod session;
mod structure;

pub use call::{Call, cookie, cookie_name, is_foreign};
pub use envelope::Envelope;
pub use form::Form;
pub use fuzz::fuzz_sanitise;
pub use language::Language;
pub use mail::Mail;
pub use plain::of_html as text_of_html;
pub use qr::qr;
pub use refusal::{Denial, Refusal};
pub use reply::{Body, Reply, attachment_named};
pub use sanitise::{Picture, Safe, sanitise};
pub use structure::Content;

pub use page::STYLE;
pub use page::login::Step;
use page::{Pages, Told, login};
use proto::http::Limits;
use session::{Session, is_same};

/// Bytes of the form of who has not logged in.
pub const LOGIN_BYTES_MAX: u64 = 16 << 10;

/// Bytes of a mail, without files, of whose session nothing is known any more.
pub const EXPIRED_BYTES_MAX: u64 = 256 << 10;

/// Bytes of a form: the files of a mail, and what stands around them.
pub const FORM_BYTES_MAX: u64 = 27 << 20;

/// Bounds of HTTP with browsers: pages have short paths, and forms come in bodies.
pub const LIMITS: Limits = Limits {
    head_bytes_max: 16 << 10,
    fields_max: 100,
    target_bytes_max: 8 << 10,
    chunk_line_bytes_max: 1 << 10,
    chunk_extension_bytes_max: 4 << 10,
    interim_max: 0,
};

/// Whether a request has a password or a code of the user checked: one that waits as guesses do.
pub fn asks_for_proof(call: &Call) -> bool {
    call.is_post && matches!(call.segments()[..], ["second"] | ["app-passwords"] | ["passkeys"])
}

/// Whether a request has other servers asked for something: a page that waits for them.
pub fn asks_others(call: &Call) -> bool {
    match call.segments()[..] {
        ["m", _, _, "html", _] => call.query.get("pictures") == "1",
        ["unsubscribe"] => call.is_post && call.form.get("do") == "once",
        _ => false,
    }
}

/// Answers a request of who has logged in.
pub fn answer(mail: &mut dyn Mail, session: &Session, mut call: Call) -> Reply {
    if let Some(reply) = refused(&call) {
        return reply;
    }
    let mut pages = Pages::new(mail, session, call.language);
    if call.is_post && !is_same(call.form.get("token"), &session.token) {
        return match call.segments()[..] {
            ["write"] => pages.unsent(&call),
            _ => login::refusal(pages.words, Refusal::OtherSession),
        };
    }
    let path = core::mem::take(&mut call.path);
    let segments: alloc::vec::Vec<&str> = path.iter().map(|segment| segment.as_str()).collect();
    match (call.is_post, &segments[..]) {
        (false, ["style.css"]) => Reply::style(STYLE),
        (false, ["passkey.js"]) => Reply::script(passkey::SCRIPT),
        (false, []) => {
            let inbox = pages.folder_for(mail::Purpose::Inbox).unwrap_or_default();
            pages.list(inbox, &call)
        }
        (false, ["m", folder, rest @ ..]) => message(&mut pages, folder, rest, &call),
        (false, ["search"]) => pages.search(&call),
        (false, ["write"]) => pages.write(&call),
        (true, ["write"]) => pages.written(&mut call),
        (true, ["act"]) => pages.act(&call),
        (false, ["folders"]) => pages.folders(&call),
        (true, ["folders"]) => pages.change_folder(&call),
        (false, ["settings"]) => pages.settings(&call),
        (true, ["settings"]) => pages.change_settings(&call),
        (false, ["second"]) => pages.second(&call),
        (true, ["second"]) => pages.change_second(&call),
        (false, ["app-passwords"]) => pages.app_passwords(&call),
        (true, ["app-passwords"]) => pages.change_app_passwords(&call),
        (false, ["passkeys"]) => pages.passkeys(&call),
        (true, ["passkeys"]) => pages.change_passkeys(&call),
        (false, ["contacts"]) => pages.contacts(&call),
        (true, ["contacts"]) => pages.change_contacts(&call),
        (false, ["contacts", "edit"]) => pages.contact(&call),
        (false, ["contacts", "export"]) => pages.export_contacts(&call),
        (false, ["filters"]) => pages.filters(&call),
        (true, ["filters"]) => pages.change_filters(&call),
        (false, ["filters", "rule"]) => pages.filter(&call),
        (true, ["filters", "rule"]) => pages.change_filter(&call),
        (false, ["filters", "text"]) => pages.filter_text(&call),
        (true, ["filters", "text"]) => pages.change_filter_text(&call),
        (false, ["vacation"]) => pages.vacation(&call),
        (true, ["vacation"]) => pages.change_vacation(&call),
        (false, ["identities"]) => pages.identities(&call),
        (true, ["identities"]) => pages.change_identity(&call),
        (true, ["unsubscribe"]) => pages.unsubscribe(&call),
        (false, ["pictures"]) => pages.pictures(&call),
        (true, ["pictures"]) => pages.change_pictures(&call),
        (false, ["sessions"]) => pages.sessions(&call),
        (true, ["sessions"]) => pages.end_sessions(&call),
        (false, ["login", ..]) => Reply::see("/"),
        _ => pages.missing(),
    }
}

fn message(pages: &mut Pages<'_>, folder: &str, rest: &[&str], call: &Call) -> Reply {
    let Ok(folder) = folder.parse() else { return pages.missing() };
    let uid = rest.first().map(|uid| uid.parse::<u32>());
    match (uid, rest) {
        (None, _) => pages.list(folder, call),
        (Some(Ok(uid)), [_]) => pages.read(folder, uid, call),
        (Some(Ok(uid)), [_, "conversation"]) => pages.conversation(folder, uid, call),
        (Some(Ok(uid)), [_, "print"]) => pages.print(folder, uid),
        (Some(Ok(uid)), [_, "source"]) => pages.source(folder, uid),
        (Some(Ok(uid)), [_, "html", path]) => pages.frame(folder, uid, path, call),
        (Some(Ok(uid)), [_, "part", path]) => pages.attachment(folder, uid, path),
        (Some(Ok(uid)), [_, "view", path]) => pages.view(folder, uid, path),
        _ => pages.missing(),
    }
}

/// Answers a request of who has not logged in, but for the form that does.
pub fn answer_stranger(call: &Call) -> Reply {
    if let Some(reply) = refused(call) {
        return reply;
    }
    match call.segments()[..] {
        ["style.css"] if !call.is_post => Reply::style(STYLE),
        ["passkey.js"] if !call.is_post => Reply::script(passkey::SCRIPT),
        [] | ["login"] if !call.is_post => login::page(call.language.words(), "", Told::Nothing),
        ["write"] if call.is_post && call.form.has("text") => login::expired(call.language.words(), &call.form),
        // The same for all that there is, and for all that there is not.
        _ => Reply::see("/login"),
    }
}

/// Sends who has logged in to the pages, with the token of the session.
pub fn welcome(token: &str, is_secure: bool) -> Reply {
    let mut reply = Reply::see("/");
    reply.set("Set-Cookie", call::set_cookie(token, is_secure, ""));
    reply
}

/// Sends who has logged out to the login page.
pub fn farewell(is_secure: bool) -> Reply {
    let mut reply = Reply::see("/login");
    reply.set("Set-Cookie", call::set_cookie("", is_secure, "; Max-Age=0"));
    reply
}

/// Tells who logs in that it did not work.
pub fn denied(language: Language, name: &str, why: Denial) -> Reply {
    let words = language.words();
    login::page(words, name, Told::Wrong(why.text(words).into()))
}

/// Asks who logs in with the right password for the second step.
pub fn needs_step(language: Language, step: &Step<'_>) -> Reply {
    login::step(language.words(), step)
}

/// Asks who logs in for a passkey. `binding` is a token by which the browser is known again that answers the challenge.
pub fn asks_for_passkey(language: Language, challenge: &str, binding: (&str, bool), denial: Option<Denial>) -> Reply {
    let mut reply = login::passkey(language.words(), challenge, denial);
    let (token, is_secure) = binding;
    reply.set("Set-Cookie", call::set_named(call::passkey_cookie_name(is_secure), token, is_secure, "; Max-Age=300"));
    reply
}

/// A page about a request that is refused.
pub fn refusal(language: Language, why: Refusal) -> Reply {
    login::refusal(language.words(), why)
}

/// Refuses what no page of this site sends.
pub fn refused(call: &Call) -> Option<Reply> {
    if !call.is_known {
        return Some(refusal(call.language, Refusal::Method));
    }
    call.is_foreign.then(|| refusal(call.language, Refusal::OtherSite))
}
