//! Which stages open an object: by its content, and by what its container says of it.

use scan::Database;
use stream::{Coding, FileType, Limits, Object, Stage};
use unpack::Passwords;

/// A stage to be set on a node, and how the driver treats it.
pub(crate) struct Opener {
    pub stage: Box<dyn Stage>,
    pub name: &'static str,
    /// It has one output that it does not open itself.
    pub unnamed: bool,
    /// It makes more out of its input than it is given.
    pub expands: bool,
}

/// What `head` is. A mail is one by declaration too: any text can be its body.
pub(crate) fn recognise(object: &Object, head: &[u8], first: bool) -> FileType {
    if first && declared_mail(object) {
        return FileType::Mail;
    }
    match unpack::recognise(head) {
        FileType::Text | FileType::Html | FileType::Binary if declared_mail(object) || mime::looks_like_mail(head) => {
            FileType::Mail
        }
        file_type => file_type,
    }
}

/// What an object is, that is this by content, if a database has magic of its own. It changes which signatures are
/// looked for, and opens the object as that type, too; a mail stays one.
pub(crate) fn with_magic(database: &Database, head: &[u8], by_content: FileType) -> FileType {
    match by_content {
        FileType::Mail | FileType::Empty => by_content,
        _ => database.recognise(head, by_content).unwrap_or(by_content),
    }
}

/// The stages that open an object which is of a type by content, and of another by a database's magic.
pub(crate) fn openers(
    object: &Object,
    [file_type, by_magic]: [FileType; 2],
    head: &[u8],
    limits: &Limits,
    passwords: &Passwords,
) -> Vec<Opener> {
    let mut openers = Vec::new();
    let mut add = |name, stage, unnamed, expands| openers.push(Opener { stage, name, unnamed, expands });
    if file_type == FileType::Mail || declared_mail(object) {
        add("mime", Box::new(mime::Parser::new(limits)), false, false);
    }
    if file_type == FileType::Mail {
        if let Some(stage) = unpack::mailbox_opener(head) {
            add("mbox", stage, false, false);
        }
        return openers;
    }
    if by_magic == FileType::Mail {
        add("mime", Box::new(mime::Parser::new(limits)), false, false);
    }
    if by_magic != file_type
        && let Some(stage) = unpack::keyed_opener(by_magic, limits, passwords)
    {
        add(by_magic.name(), stage, false, true);
    }
    // A container that is itself encoded: forbidden, and opened by some readers all the same.
    if object.coding != Coding::Identity
        && object.media_type.as_deref().is_some_and(|media| media.starts_with("multipart/"))
    {
        add("mime", Box::new(mime::Parser::of_multipart(limits)), false, false);
    }
    if let Some(stage) = object.media_type.as_deref().and_then(|media| unpack::part_opener(media, limits)) {
        add("part", stage, false, true);
    }
    if let Some(stage) = unpack::keyed_opener(file_type, limits, passwords) {
        add(file_type.name(), stage, false, true);
    }
    if let Some(second) = unpack::recognise_second(head, file_type)
        && let Some(stage) = unpack::keyed_opener(second, limits, passwords)
    {
        add(second.name(), stage, false, true);
    }
    if let Some(stage) = unpack::searcher(file_type, limits, passwords) {
        add("search", stage, false, true);
    }
    if let Some(stage) = object.name.as_deref().and_then(|name| unpack::named_opener(name, file_type, limits)) {
        add("named", stage, false, true);
    }
    if let Some(stage) = unpack::relationships(object.name.as_deref().unwrap_or(""), file_type) {
        add("relationships", stage, false, false);
    }
    if let Some(stage) = unpack::image_watcher(file_type, limits) {
        add("image", stage, false, true);
    }
    if let Some(stage) = unpack::stowaway_searcher(file_type) {
        add("stowaway", stage, false, true);
    }
    if let Some(stage) = unpack::unpacker(file_type, limits) {
        add("packed", stage, false, true);
    }
    if let Some(stage) = unpack::carried_searcher(file_type) {
        add("carried", stage, false, true);
    }
    if matches!(file_type, FileType::Text | FileType::Html | FileType::Xml | FileType::Binary) {
        match utf16(object, head) {
            Some(stage) => add("utf-16", Box::new(stage), true, false),
            None if file_type == FileType::Binary => {}
            None => add("embedded", Box::new(mime::Embedded::new(limits)), false, false),
        }
    }
    openers
}

fn declared_mail(object: &Object) -> bool {
    matches!(object.media_type.as_deref(), Some("message/rfc822" | "message/global" | "message/news"))
}

/// The converter of a text in UTF-16, told by its byte order mark or by its label.
fn utf16(object: &Object, head: &[u8]) -> Option<mime::Utf16> {
    let marked = head.starts_with(&[0xff, 0xfe]) || head.starts_with(&[0xfe, 0xff]);
    let label = object.charset.as_deref().filter(|label| label.starts_with("utf-16"));
    (marked || label.is_some()).then(|| mime::Utf16::new(label.unwrap_or("utf-16")))
}
