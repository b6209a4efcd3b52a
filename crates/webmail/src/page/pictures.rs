//! Pictures of mails that lie on other servers: shown once, or always for a sender, when the user says so; never in junk.
//!
//! The host fetches them while it makes the frame of a message, and they stand in it as `data:` URLs: a browser asks no other server, and
//! the policy of the frame has no exception. A sender is the address of `From`, which anybody can write: with its pictures a forger learns
//! that a mail was read. Bounds: [`PICTURES_MAX`] of a message, with those of the mail as many bytes as a frame may have, [`SENDERS_MAX`].

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use crate::call::Call;
use crate::envelope::Envelope;
use crate::html::{Html, Text, put};
use crate::mail::Purpose;
use crate::reply::Reply;
use crate::sanitise::{Picture, sanitise};

use super::listing::Listing;
use super::{Pages, Place};

/// Pictures of a message that are fetched.
const PICTURES_MAX: usize = 100;

/// Senders whose pictures are always shown; the first to come is the first to go.
pub(super) const SENDERS_MAX: usize = 200;

/// Bytes of an address of a sender.
const SENDER_BYTES_MAX: usize = 254;

impl Pages<'_> {
    /// Whether pictures of a message in this folder may be fetched.
    pub fn may_fetch(&self, folder: u32) -> bool {
        self.mail.fetches() && self.folder(folder).is_some_and(|folder| folder.purpose != Purpose::Junk)
    }

    /// Whether pictures of a message are shown: as the request says, else as the user has said of the sender.
    pub fn shows_pictures(&self, folder: u32, envelope: &Envelope, call: &Call) -> bool {
        let is_asked = match call.query.get("pictures") {
            "1" => true,
            "0" => false,
            _ => sender(envelope).is_some_and(|sender| self.settings.pictures.contains(&sender)),
        };
        is_asked && self.may_fetch(folder)
    }

    /// The link that shows or hides the pictures of a message, and the button that shows those of its sender from now on.
    pub fn picture_choices(&self, main: &mut Html, place: Place, back: &Listing, envelope: &Envelope, are_shown: bool) {
        if !self.may_fetch(place.folder) {
            return;
        }
        put!(main, "<div class=\"bar\"><a href=\"/m/", place.folder, "/", place.uid);
        let words = &self.words.read;
        main.put(if are_shown { "?pictures=0" } else { "?pictures=1" });
        back.query(main, place.folder, "&amp;");
        put!(main, "\">", if are_shown { words.pictures_hide } else { words.pictures_show }, "</a></div>");
        let Some(sender) = sender(envelope).filter(|sender| are_shown && !self.settings.pictures.contains(sender))
        else {
            return;
        };
        self.form(main, "action=\"/pictures\" class=\"bar\"");
        put!(main, "<input type=\"hidden\" name=\"at\" value=\"", place.folder, ".", place.uid, "\">");
        main.put("<button name=\"do\" value=\"always\">");
        main.say(words.pictures_always, &[&sender]);
        main.put("</button></form>");
    }

    /// The pictures of other servers that a page names, as far as they are to be had.
    pub fn fetched(&mut self, page: &str, bytes_max: usize) -> BTreeMap<String, Vec<u8>> {
        let mut urls: Vec<String> = Vec::new();
        let mut known = BTreeMap::new();
        sanitise(page, &mut |picture| {
            if let Picture::Remote(url) = picture
                && urls.len() < PICTURES_MAX
                && known.insert(url.to_string(), ()).is_none()
            {
                urls.push(url.into());
            }
            None
        });
        let found = if urls.is_empty() { Vec::new() } else { self.mail.pictures(&urls, bytes_max) };
        urls.into_iter().zip(found).filter_map(|(url, bytes)| Some((url, bytes?))).collect()
    }

    /// The page of senders whose pictures are shown.
    pub fn pictures(&mut self, call: &Call) -> Reply {
        let (words, mut main) = (&self.words.read, Html::default());
        put!(main, "<h1>", words.pictures, "</h1><p>", words.pictures_note, "</p><ul>");
        for sender in &self.settings.pictures {
            put!(main, "<li><bdi>", Text(sender), "</bdi> ");
            self.form(&mut main, "action=\"/pictures\" class=\"inline\"");
            put!(main, "<input type=\"hidden\" name=\"sender\" value=\"", Text(sender), "\">");
            put!(
                main,
                "<button name=\"do\" value=\"forget\">",
                words.pictures_forget,
                "<span class=\"skip\">: ",
                Text(sender)
            );
            put!(main, "</span></button></form></li>");
        }
        put!(main, "</ul>");
        self.page(words.pictures, None, self.told(call), main)
    }

    /// Shows the pictures of a sender from now on, or does so no longer.
    pub fn change_pictures(&mut self, call: &Call) -> Reply {
        let mut settings = self.settings.clone();
        let back = match call.form.get("do") {
            "always" => {
                let place = Place::parse(call.form.get("at"));
                let found = place.and_then(|place| self.found(place.folder, place.uid));
                let Some(message) = found.filter(|message| self.may_fetch(message.row.folder)) else {
                    return self.missing();
                };
                let Some(sender) = sender(&self.envelope(&message)) else { return self.missing() };
                settings.pictures.retain(|known| *known != sender);
                settings.pictures.push(sender);
                let over = settings.pictures.len().saturating_sub(SENDERS_MAX);
                settings.pictures.drain(..over);
                format!("/m/{}/{}?told=kept", message.row.folder, message.row.uid)
            }
            "forget" => {
                settings.pictures.retain(|known| known != call.form.get("sender"));
                "/pictures?told=kept".into()
            }
            _ => return self.missing(),
        };
        match self.mail.set_settings(&settings.encode()) {
            Ok(()) => Reply::see(&back),
            Err(failure) => self.failed(failure),
        }
    }
}

/// The sender of a message, if it is one address that can be noted.
fn sender(envelope: &Envelope) -> Option<String> {
    match &envelope.from[..] {
        [one] => Some(one.address.to_lowercase()).filter(|address| is_sender(address)),
        _ => None,
    }
}

/// Whether an address can stand among others in the settings.
pub(super) fn is_sender(address: &str) -> bool {
    let is_plain = |c: char| !c.is_whitespace() && !c.is_control() && c != ',';
    address.contains('@') && address.len() <= SENDER_BYTES_MAX && address.chars().all(is_plain)
}
