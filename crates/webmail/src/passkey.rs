//! The parts of forms by which our script asks a browser for passkeys. Without script, or without passkeys in the browser, a form says so,
//! and its button does nothing.

use crate::html::{Html, Text, put};

/// The script of pages with passkeys.
pub const SCRIPT: &str = include_str!("passkey.js");

/// The place of the script.
const LINK: &str = "<script src=\"/passkey.js\" defer></script>";

/// Sentences of a form.
#[derive(Debug, Clone, Copy)]
pub struct Texts {
    /// The browser does not know passkeys, or runs no script.
    pub lack: &'static str,
    /// The browser has used no passkey.
    pub failed: &'static str,
}

/// A user, as authenticators know one.
#[derive(Debug, Clone, Copy)]
pub struct User<'a> {
    /// The name in the answers of authenticators.
    pub id: &'a str,
    /// The name that is shown.
    pub name: &'a str,
}

/// Has a form make a passkey, which is none of the credentials that are known. Fields: `client` and `attestation`.
pub fn create<'a>(
    page: &mut Html,
    challenge: &str,
    user: User<'_>,
    known: impl Iterator<Item = &'a str>,
    texts: Texts,
) {
    put!(page, "<p class=\"soft\" data-passkey=\"create\" data-user=\"", Text(user.id), "\" data-name=\"");
    put!(page, Text(user.name), "\"");
    rest(page, challenge, known, texts);
    fields(page, &["client", "attestation"]);
}

/// Has a form ask for a passkey: one of the credentials that are known, or any. If it counts alone, without a password, the authenticator
/// verifies the user. Fields: `credential`, `client`, `data`, `signature` and `user`.
pub fn get<'a>(page: &mut Html, challenge: &str, known: impl Iterator<Item = &'a str>, is_alone: bool, texts: Texts) {
    let verification = if is_alone { "required\"" } else { "discouraged\"" };
    put!(page, "<p class=\"soft\" data-passkey=\"get\" data-verification=\"", verification);
    rest(page, challenge, known, texts);
    fields(page, &["credential", "client", "data", "signature", "user"]);
}

fn rest<'a>(page: &mut Html, challenge: &str, known: impl Iterator<Item = &'a str>, texts: Texts) {
    put!(page, " data-challenge=\"", Text(challenge), "\" data-known=\"");
    known.for_each(|id| put!(page, Text(id), " "));
    put!(page, "\">", texts.lack, "</p><p class=\"told wrong\" role=\"alert\" data-failed hidden>", texts.failed);
    put!(page, "</p>", LINK);
}

fn fields(page: &mut Html, names: &[&'static str]) {
    names.iter().for_each(|name| put!(page, "<input type=\"hidden\" name=\"", *name, "\">"));
}
