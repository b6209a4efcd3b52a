//! Submissions (RFC 8621, section 7). A mail that is submitted goes into the queue at once; nothing of it can be undone, and it is not
//! listed later: a submission whose `undoStatus` is `final` may be forgotten at any time.

use alloc::string::String;
use alloc::vec::Vec;

use mime::address::{Entry, addresses};

use crate::arguments::Arguments;
use crate::changes::{self, Changes, Page};
use crate::date::Date;
use crate::email;
use crate::engine::{Engine, got};
use crate::error::Error;
use crate::header::Header;
use crate::host::Sending;
use crate::identity;
use crate::limits::{HEADER_BYTES_MAX, RECIPIENTS_MAX, SET_MAX};
use crate::outcome::Set;
use crate::references::created;
use crate::source::{Blob, Source};
use crate::{Map, Value, json};

pub(crate) fn get(engine: &mut Engine<'_>, mut arguments: Arguments) -> Result<Value, Error> {
    let account = engine.account(&mut arguments)?;
    let ids = arguments.ids()?.unwrap_or_default();
    arguments.strings("properties")?;
    arguments.end()?;
    Ok(got(account, engine.state(), Vec::new(), ids))
}

pub(crate) fn changes(engine: &mut Engine<'_>, arguments: Arguments) -> Result<Value, Error> {
    changes::changes(engine, arguments, |_, _| Changes::default())
}

pub(crate) fn query(engine: &mut Engine<'_>, mut arguments: Arguments) -> Result<Value, Error> {
    let account = engine.account(&mut arguments)?;
    let page = Page::read(&mut arguments)?;
    arguments.object("filter")?;
    arguments.array("sort")?;
    arguments.end()?;
    let state = engine.state();
    page.reply(account, state, Vec::new(), false)
}

pub(crate) fn query_changes(_: &mut Engine<'_>, _: Arguments) -> Result<Value, Error> {
    Err(Error::new("cannotCalculateChanges"))
}

pub(crate) fn set(engine: &mut Engine<'_>, mut arguments: Arguments) -> Result<Value, Error> {
    let Set { account, old_state, create, update, destroy } = Set::read(engine, &mut arguments)?;
    let on_success = arguments.object("onSuccessUpdateEmail")?;
    let to_destroy = arguments.strings("onSuccessDestroyEmail")?.unwrap_or_default();
    arguments.end()?;
    if create.len().saturating_add(on_success.len()).saturating_add(to_destroy.len()) > SET_MAX {
        return Err(Error::new("requestTooLarge"));
    }
    let (mut made, mut not_made, mut sent) = (Map::new(), Map::new(), Vec::new());
    for (creation, object) in create {
        match submit(engine, object) {
            Ok((value, email)) => {
                sent.push((alloc::format!("#{creation}"), email));
                made.insert(creation, value);
            }
            Err(error) => _ = not_made.insert(creation, error.value()),
        }
    }
    let missing = |id: String| (id, Error::new("notFound").value());
    let not_updated: Map<String, Value> = update.into_iter().map(|(id, _)| missing(id)).collect();
    let not_destroyed: Map<String, Value> = destroy.into_iter().map(missing).collect();
    follow(engine, &account, &sent, on_success, to_destroy);
    Ok(json!({
        "accountId": account, "oldState": old_state, "newState": engine.state(), "created": made, "notCreated": not_made,
        "updated": null, "notUpdated": not_updated, "destroyed": null, "notDestroyed": not_destroyed,
    }))
}

/// Changes the Emails of submissions that succeeded, by an implied `Email/set`.
fn follow(
    engine: &mut Engine<'_>,
    account: &str,
    sent: &[(String, String)],
    on_success: Map<String, Value>,
    to_destroy: Vec<String>,
) {
    let of = |name: &str| sent.iter().find(|(known, _)| known == name).map(|(_, email)| email.clone());
    let update: Map<String, Value> =
        on_success.into_iter().filter_map(|(name, patch)| Some((of(&name)?, patch))).collect();
    let destroy: Vec<String> = to_destroy.iter().filter_map(|name| of(name)).collect();
    if update.is_empty() && destroy.is_empty() {
        return;
    }
    let arguments = json!({ "accountId": account, "update": update, "destroy": destroy });
    let Value::Object(arguments) = arguments else { return };
    let (name, value) = match email::set(engine, Arguments(arguments)) {
        Ok(value) => ("Email/set", value),
        Err(error) => ("error", error.value()),
    };
    engine.implied.push((name, value));
}

/// Queues a mail; returns the submission and the id of its Email.
fn submit(engine: &mut Engine<'_>, object: Value) -> Result<(Value, String), Error> {
    let Value::Object(object) = object else { return Err(Error::new("invalidProperties")) };
    let known = ["identityId", "emailId", "envelope"];
    if let Some(unknown) = object.keys().find(|name| !known.contains(&name.as_str())) {
        return Err(Error::property(unknown));
    }
    let text = |name: &str| object.get(name).and_then(Value::as_str).ok_or_else(|| Error::property(name));
    let own = identity::address(engine, text("identityId")?).ok_or_else(|| Error::property("identityId"))?;
    let wrong = || Error::property("emailId");
    let index = engine.index();
    let id = created(text("emailId")?, &engine.created).ok_or_else(wrong)?;
    let message = index.message_of(id).ok_or_else(wrong)?;
    let email = index.email(message).ok_or_else(wrong)?;
    let most = engine.host.sent_bytes_max();
    let mut blob = Blob::new(Source::Stored(message), 0, email.size, stream::Coding::Identity);
    let (content, is_whole) = blob.bytes(engine.host, usize::try_from(most).unwrap_or(usize::MAX));
    if !is_whole {
        return Err(Error::new("tooLarge").with("maxSize", most));
    }
    if blob.is_broken() {
        return Err(Error::new("serverFail"));
    }
    let layout = engine.host.layout_of(&content);
    let head_end = usize::try_from(layout.body).unwrap_or(0).min(content.len());
    if layout.body.saturating_sub(layout.header) > HEADER_BYTES_MAX {
        return Err(Error::new("invalidEmail"));
    }
    let (head, body) = content.split_at_checked(head_end).unwrap_or_default();
    let header = Header::read(head);
    let may_send = |address: &str| {
        let plain = without_detail(address);
        engine
            .host
            .account()
            .addresses
            .iter()
            .any(|own| [address, &plain].iter().any(|one| own.eq_ignore_ascii_case(one)))
    };
    let senders = mailboxes(&header, &["from"]);
    if senders.is_empty() || !senders.iter().all(|sender| may_send(sender)) {
        return Err(Error::new("forbiddenFrom"));
    }
    let (from, to) = envelope(&object, own, &header)?;
    if !may_send(&from) {
        return Err(Error::new("forbiddenMailFrom"));
    }
    if to.is_empty() {
        return Err(Error::new("noRecipients"));
    }
    if to.len() > RECIPIENTS_MAX {
        return Err(Error::new("tooManyRecipients").with("maxRecipients", RECIPIENTS_MAX));
    }
    let invalid: Vec<String> = to.iter().filter(|address| !is_address(address)).cloned().collect();
    if !invalid.is_empty() {
        return Err(Error::new("invalidRecipients").with("invalidRecipients", invalid));
    }
    let content = [without_bcc(head), body.to_vec()].concat();
    let told = json!({
        "id": alloc::format!("S{}", text::hex::encode(&engine.host.random())),
        "threadId": email.thread,
        "sendAt": Date::utc(engine.host.now()),
        "undoStatus": "final",
        "deliveryStatus": null,
        "dsnBlobIds": [],
        "mdnBlobIds": [],
        "envelope": {
            "mailFrom": { "email": from, "parameters": null },
            "rcptTo": to.iter().map(|to| json!({ "email": to, "parameters": null })).collect::<Vec<_>>(),
        },
    });
    engine.host.send(Sending { from, to, content })?;
    engine.changed();
    Ok((told, email.id))
}

/// Sender and recipients: as the client says, or as the header does.
fn envelope(object: &Map<String, Value>, own: String, header: &Header) -> Result<(String, Vec<String>), Error> {
    let wrong = || Error::property("envelope");
    let Some(envelope) = object.get("envelope").filter(|envelope| !envelope.is_null()) else {
        return Ok((own, mailboxes(header, &["to", "cc", "bcc"])));
    };
    let address = |value: &Value| match value["parameters"].as_object().is_none_or(Map::is_empty) {
        true => value["email"].as_str().map(String::from).ok_or_else(wrong),
        // No extension of SMTP is offered.
        false => Err(wrong()),
    };
    let from = address(&envelope["mailFrom"])?;
    let to = envelope["rcptTo"].as_array().ok_or_else(wrong)?;
    let mut unique: Vec<String> = Vec::new();
    for to in to.iter().take(RECIPIENTS_MAX.saturating_mul(10)) {
        let to = address(to)?;
        if !unique.contains(&to) {
            unique.push(to);
        }
    }
    Ok((from, unique))
}

/// The addresses of fields, each once.
fn mailboxes(header: &Header, names: &[&str]) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    for value in names.iter().flat_map(|name| header.all(name)) {
        for entry in addresses(&mime::unfolded(value), RECIPIENTS_MAX.saturating_mul(10)) {
            let Entry::Address(address) = entry else { continue };
            let written = [&address.local[..], b"@", &address.domain].concat();
            let written = String::from_utf8_lossy(&written).into_owned();
            if !found.contains(&written) {
                found.push(written);
            }
        }
    }
    found
}

/// An address without the detail that each account may have behind its name: `ann@x` of `ann+lists@x`.
fn without_detail(address: &str) -> String {
    let parts = address.split_once('@').and_then(|(local, domain)| Some((local.split_once('+')?, domain)));
    match parts {
        Some(((name, detail), domain)) if !name.is_empty() && !detail.is_empty() => alloc::format!("{name}@{domain}"),
        _ => address.into(),
    }
}

/// Whether SMTP has such an address.
fn is_address(address: &str) -> bool {
    let Some((local, domain)) = address.rsplit_once('@') else { return false };
    let is_host = |c: char| c.is_ascii_alphanumeric() || ".-".contains(c);
    let is_local = |c: char| c.is_ascii_alphanumeric() || ".!#$%&'*+-/=?^_`{|}~".contains(c);
    address.len() <= 254
        && !local.is_empty()
        && !domain.is_empty()
        && local.chars().all(is_local)
        && domain.chars().all(is_host)
}

/// A header without its blind copies.
fn without_bcc(head: &[u8]) -> Vec<u8> {
    let (mut kept, mut is_bcc) = (Vec::new(), false);
    for line in head.split_inclusive(|&byte| byte == b'\n') {
        if !line.first().is_some_and(|byte| b" \t".contains(byte)) {
            let name = line.split(|&byte| byte == b':').next().unwrap_or_default().trim_ascii_end();
            is_bcc = name.eq_ignore_ascii_case(b"bcc") || name.eq_ignore_ascii_case(b"resent-bcc");
        }
        if !is_bcc {
            kept.extend_from_slice(line);
        }
    }
    kept
}
