//! Views of an object that a database asks for.

use stream::FileType;

use crate::normal::{Normaliser, View, has_tag};
use crate::table::database::Database;

/// The views that are to be made of an object which begins with `head`: those of its type for whose targets the database
/// has signatures.
///
/// ClamAV takes any text for HTML that has one of a few tags anywhere. Where the head has none of them the views of HTML
/// are begun when one comes; and what is HTML by other tags is a text as well. It takes for text, too, whatever is of no known
/// type and has no NUL before a control character at certain places: interpreters of scripts pass over a NUL, too.
pub fn views(database: &Database, file_type: FileType, head: &[u8]) -> Vec<Normaliser> {
    let wanted = |view: &View| view.own_targets().into_iter().flatten().any(|target| database.has_target(target));
    if file_type == FileType::Binary && is_text(head) && wanted(&View::Text) {
        return vec![Normaliser::new(View::Text)];
    }
    if !matches!(file_type, FileType::Html | FileType::Text | FileType::Xml) || !wanted(&View::Scripts) {
        // Scripts have the targets of all views.
        return Vec::new();
    }
    let is_html = file_type == FileType::Html;
    let mut all = Vec::new();
    if wanted(&View::Text) && !(is_html && has_tag(head)) {
        all.push(Normaliser::new(View::Text));
    }
    for view in [View::NoComment, View::NoTags, View::Scripts].into_iter().filter(wanted) {
        all.push(if is_html { Normaliser::new(view) } else { Normaliser::late(view) });
    }
    all
}

/// Whether ClamAV takes data of no known type for text: with a mark of the byte order, or if none of the big-endian two-byte units
/// of its first kilobyte, but the first one, is a control character that has no place in a text. Read off clamscan 1.4.
fn is_text(head: &[u8]) -> bool {
    const HEAD_BYTES: usize = 1024;
    let is_control = |byte: u8| matches!(byte, 0..=6 | 0x0b | 0x0e..=0x1a | 0x1c..=0x1f | 0x7f);
    let mut units = head[..head.len().min(HEAD_BYTES)].chunks_exact(2);
    let first = units.next();
    matches!(first, Some([0xff, 0xfe] | [0xfe, 0xff])) || !units.any(|unit| unit[0] == 0 && is_control(unit[1]))
}
