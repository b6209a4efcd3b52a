//! Stages that open an object: by its content, and by its container's description.

use scan::Database;
use stream::{Coding, ContentCoding, FileType, Kind, Limits, Object, Stage};
use unpack::{Claim, Doubt, Due, Opener, Passwords};

/// Recognises `head`. A mail is one by declaration too: any text can be its body; and what begins like one is one, whatever
/// other type stands further behind, as the marks of PDF and tar may.
pub(crate) fn recognise(object: &Object, head: &[u8], first: bool) -> FileType {
    if first && declared_mail(object) {
        return FileType::Mail;
    }
    match unpack::recognise(head) {
        FileType::Text | FileType::Html | FileType::Binary if declared_mail(object) => FileType::Mail,
        FileType::Empty => FileType::Empty,
        _ if mime::looks_like_mail(head) => FileType::Mail,
        file_type => file_type,
    }
}

/// Type of an object of this type by content, if a database has magic of its own. It selects signatures and the reader;
/// a mail stays a mail.
pub(crate) fn with_magic(database: &Database, head: &[u8], by_content: FileType) -> FileType {
    match by_content {
        FileType::Mail | FileType::Empty => by_content,
        _ => database.recognise(head, by_content).unwrap_or(by_content),
    }
}

/// The stages that open an object which is of a type by content, and of another by a database's magic; and whether each
/// has one output that it does not open itself.
pub(crate) fn openers(
    object: &Object,
    [content, magic]: [FileType; 2],
    head: &[u8],
    limits: &Limits,
    passwords: &Passwords,
) -> Vec<(Opener, bool)> {
    let (name, media_type) = (object.name.as_deref(), object.media_type.as_deref());
    let is_rest = object.kind == Kind::Rest;
    let claim = Claim { content, magic, name, media_type, is_rest, head, is_guess: object.is_guess };
    let read = unpack::open(&claim, limits, passwords);
    let (by_magic, by_claim): (Vec<Opener>, Vec<Opener>) = read.into_iter().partition(|one| one.due == Due::Magic);
    let mail = || of_mail("mime", Box::new(mime::Parser::new(limits)));
    let is_mail = content == FileType::Mail;
    // A container that is itself encoded: forbidden, and opened by some readers all the same.
    let is_encoded = !is_mail
        && object.coding != Coding::Identity
        && media_type.is_some_and(|media_type| media_type.starts_with("multipart/"));
    let declared = (is_mail || declared_mail(object)).then(mail);
    let found = (!is_mail && magic == FileType::Mail).then(mail);
    let behind = (is_mail && !declared_mail(object)).then(|| behind_mail(head, limits, passwords)).flatten();
    let encoded = is_encoded.then(|| of_mail("mime", Box::new(mime::Parser::of_multipart(limits))));
    let coded = unpack::undo(object, head, limits);
    let is_undone = |opener: &Opener| !coded.is_empty() && undoes(object, content) && opener.name == content.name();
    // A page in a content coding is read as one where the coding is undone.
    let is_coded_page = |opener: &Opener| opener.name == "page" && !object.content_codings.is_empty();
    let by_claim = by_claim.into_iter().filter(|opener| !is_undone(opener) && !is_coded_page(opener));
    let by_claim = by_claim.collect::<Vec<_>>();
    let openers = coded.into_iter().chain(declared).chain(found).chain(behind).chain(by_magic).chain(encoded);
    let openers = openers.chain(by_claim);
    openers.map(|opener| (opener, false)).chain(of_text(object, content, head, limits)).collect()
}

/// Whether what is of this type is what its last content coding says: then it is not read by its type once more.
fn undoes(object: &Object, content: FileType) -> bool {
    matches!(
        (object.content_codings.last(), content),
        (Some(ContentCoding::Gzip), FileType::Gzip)
            | (Some(ContentCoding::Deflate), FileType::Zlib)
            | (Some(ContentCoding::Zstd), FileType::Zstd)
    )
}

/// The reader of the other type of what begins like a mail.
fn behind_mail(head: &[u8], limits: &Limits, passwords: &Passwords) -> Option<Opener> {
    let other = match unpack::recognise(head) {
        FileType::Empty | FileType::Mail | FileType::Text | FileType::Html | FileType::Xml | FileType::Binary => {
            return None;
        }
        other => other,
    };
    let stage = unpack::reader(other, limits, passwords)?;
    Some(Opener { name: other.name(), due: Due::Claim, expands: true, doubt: Doubt::None, stage })
}

fn of_mail(name: &'static str, stage: Box<dyn Stage>) -> Opener {
    Opener { name, due: Due::Claim, expands: false, doubt: Doubt::None, stage }
}

/// Reader of text of any kind: a converter to UTF-8, or the reader of the files that are encoded in it.
fn of_text(object: &Object, content: FileType, head: &[u8], limits: &Limits) -> Option<(Opener, bool)> {
    let is_text = matches!(content, FileType::Text | FileType::Html | FileType::Xml);
    if (is_text || content == FileType::Binary)
        && let Some(stage) = utf16(object, head)
    {
        return Some((of_mail("utf-16", Box::new(stage)), true));
    }
    let is_searched = match content {
        FileType::Mail => false,
        FileType::Binary if mime::announces_yenc(head) => true,
        _ => is_text || is_text_of_mail(object),
    };
    is_searched.then(|| (of_mail("embedded", Box::new(mime::Embedded::new(limits))), false))
}

/// Whether programs show a part of a mail as text, whatever its first bytes are.
fn is_text_of_mail(object: &Object) -> bool {
    match object.media_type.as_deref() {
        Some(media_type) => object.kind == Kind::Part && media_type.starts_with("text/"),
        // What is scanned by itself has no place in a mail.
        None => object.kind == Kind::Part && object.raw_offset.is_some(),
    }
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
