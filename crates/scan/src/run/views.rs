//! Which views of an object a database asks for.

use stream::FileType;

use crate::normal::{Normaliser, View, has_tag};
use crate::table::database::Database;

/// The views that are to be made of an object which begins with `head`: those of its type for whose targets the database
/// has signatures.
///
/// ClamAV takes any text for HTML that has one of a few tags anywhere. Where the head has none of them the views of HTML
/// are begun when one comes; and what is HTML by other tags is a text as well.
pub fn views(database: &Database, file_type: FileType, head: &[u8]) -> Vec<Normaliser> {
    let wanted = |view: &View| view.own_targets().into_iter().flatten().any(|target| database.has_target(target));
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
