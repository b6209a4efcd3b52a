//! Content of each view of a page.
//!
//! Bounds: an address ([`URL_BYTES_MAX`]) and a script (see `script`).

use super::View;
use super::script::Script;
use super::text::is_blank;
use super::text::{Folding, fold};

/// The longest address that is shown.
const URL_BYTES_MAX: usize = 1022;

/// How many bytes beyond ASCII are looked at together.
const WIDE_BYTES_MAX: usize = 3;
/// Full stops of other scripts in UTF-8, which become ours.
const FULL_STOPS: [&[u8]; 3] = ["\u{3002}".as_bytes(), "\u{ff0e}".as_bytes(), "\u{fe52}".as_bytes()];

/// Text as it is in the view without comments.
const LOWERED: Folding = {
    let mut table = [0; 256];
    let mut byte = 1;
    while byte < 128 {
        table[byte] = match byte as u8 {
            b'\r' => 0,
            blank if is_blank(blank) => b' ',
            other => other.to_ascii_lowercase(),
        };
        byte += 1;
    }
    table
};

/// Text as it is in the view without tags: control characters are blanks.
const SHOWN: Folding = {
    let mut table = LOWERED;
    let mut byte = 1;
    while byte < 32 {
        if byte != b'\r' as usize {
            table[byte] = b' ';
        }
        byte += 1;
    }
    table
};

/// Where bytes beyond ASCII stand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    /// In text or in a script.
    Content,
    /// In a value.
    Value,
}

/// A view in the making.
#[derive(Debug, Clone)]
pub(super) struct Page {
    view: View,
    /// A blank that waits for what follows it.
    blank: bool,
    /// Whether the view without tags ends with a space.
    after_blank: bool,
    url: Url,
    /// Bytes beyond ASCII that wait for what follows them, and where they stand.
    wide: [u8; WIDE_BYTES_MAX],
    wide_count: usize,
    wide_place: Place,
    script: Option<Script>,
    scripts: u64,
    cut: bool,
}

/// The address of a link or a picture.
#[derive(Debug, Clone, Default)]
struct Url {
    bytes: Vec<u8>,
    reading: bool,
    /// Length that counts if it turns out to be several words.
    kept: Option<usize>,
    /// Whether the tag has one already.
    taken: bool,
}

impl Url {
    fn push(&mut self, byte: u8) {
        if self.reading && self.bytes.len() < URL_BYTES_MAX {
            self.bytes.push(byte);
        }
    }
}

impl Page {
    pub(super) fn new(view: View) -> Page {
        Page {
            view,
            blank: false,
            after_blank: false,
            url: Url::default(),
            wide: [0; WIDE_BYTES_MAX],
            wide_count: 0,
            wide_place: Place::Content,
            script: None,
            scripts: 0,
            cut: false,
        }
    }

    pub(super) fn is_of_scripts(&self) -> bool {
        self.view == View::Scripts
    }

    /// Whether a script was too long to be read at once; asked once.
    pub(super) fn take_cut(&mut self) -> bool {
        std::mem::take(&mut self.cut)
    }

    /// Plain text in ASCII, `fresh` if it stands where blanks do not count; whether what follows it does.
    pub(super) fn run(&mut self, bytes: &[u8], fresh: bool, out: &mut Vec<u8>) -> bool {
        match self.view {
            View::NoComment => self.folded_run(bytes, fresh, out),
            View::NoTags => {
                self.show_url(out);
                let start = out.len();
                let after_blank = fold(bytes, &SHOWN, self.after_blank | fresh, out);
                let wrote = out.len() > start;
                if wrote {
                    self.after_blank = after_blank;
                }
                fresh && !wrote
            }
            _ => false,
        }
    }

    fn folded_run(&mut self, bytes: &[u8], fresh: bool, out: &mut Vec<u8>) -> bool {
        let start = out.len();
        self.settle_blank(out);
        let ends_blank = fold(bytes, &LOWERED, fresh | (out.len() > start), out);
        let wrote = out.len() > start;
        // A blank at the end waits for what follows it.
        self.blank = wrote && ends_blank;
        if self.blank {
            out.pop();
        }
        fresh && !wrote
    }

    /// Text begins with something else than a run.
    pub(super) fn text_begins(&mut self, out: &mut Vec<u8>) {
        match self.view {
            View::NoTags => self.show_url(out),
            _ => self.settle_blank(out),
        }
    }

    /// A blank in text, `fresh` if it stands where blanks do not count.
    pub(super) fn blank(&mut self, fresh: bool, out: &mut Vec<u8>) {
        match (self.view, fresh) {
            (View::NoTags, true) => self.show_url(out),
            (View::NoTags, false) => self.fold(out),
            (_, fresh) => self.blank |= !fresh,
        }
    }

    pub(super) fn reference_begins(&mut self, out: &mut Vec<u8>) {
        match self.view {
            View::NoTags => self.fold(out),
            _ => self.settle_blank(out),
        }
    }

    /// Writes the text of a resolved reference, unchanged.
    pub(super) fn reference(&mut self, text: &[u8], in_value: bool, out: &mut Vec<u8>) {
        if self.view == View::NoComment {
            out.extend_from_slice(text);
        }
        if in_value {
            text.iter().for_each(|&byte| self.url.push(byte));
        }
    }

    /// A byte beyond ASCII, of text, a script or a value. They are looked at in threes, as in the UTF-8 of most of the world.
    pub(super) fn wide(&mut self, byte: u8, place: Place, out: &mut Vec<u8>) {
        self.wide_place = place;
        self.wide[self.wide_count] = byte;
        self.wide_count += 1;
        if self.wide_count == WIDE_BYTES_MAX {
            self.settle(out);
        }
    }

    /// Whether bytes beyond ASCII wait for what follows them.
    pub(super) fn is_unsettled(&self) -> bool {
        self.wide_count > 0
    }

    /// Writes the bytes beyond ASCII that wait. In the view without tags ClamAV writes the second of three twice and not the
    /// third, the first of two twice, and NUL for a single one.
    pub(super) fn settle(&mut self, out: &mut Vec<u8>) {
        let (wide, count) = (self.wide, std::mem::take(&mut self.wide_count));
        let written: &[u8] = match (self.mangles(), &wide[..count]) {
            (_, []) => return,
            (_, stop) if FULL_STOPS.contains(&stop) => b".",
            (true, &[first, second, _]) => &[first, second, second],
            (true, &[first, _]) => &[first, first],
            (true, _) => &[0],
            (false, as_it_is) => as_it_is,
        };
        match (self.wide_place, self.view) {
            (Place::Value, _) => written.iter().for_each(|&byte| self.value(byte, out)),
            (Place::Content, View::NoComment | View::NoTags) => out.extend_from_slice(written),
            _ => {}
        }
    }

    fn mangles(&self) -> bool {
        self.view == View::NoTags && self.wide_place == Place::Content
    }

    pub(super) fn tag_begins(&mut self, out: &mut Vec<u8>) {
        match self.view {
            View::NoTags => self.fold(out),
            _ => self.settle_blank(out),
        }
        self.url.taken = false;
    }

    /// A byte of a tag.
    pub(super) fn mark(&mut self, byte: u8, out: &mut Vec<u8>) {
        if self.view == View::NoComment {
            out.push(byte.to_ascii_lowercase());
        }
    }

    pub(super) fn value_begins(&mut self, is_url: bool) {
        self.url.reading = is_url && self.view == View::NoTags && !self.url.taken;
        self.url.taken |= is_url;
        if self.url.reading {
            self.url.bytes.clear();
            self.url.kept = None;
        }
    }

    /// A byte of a value.
    pub(super) fn value(&mut self, byte: u8, out: &mut Vec<u8>) {
        let byte = if byte == b'\'' { b'"' } else { byte };
        self.url.push(byte);
        self.mark(byte, out);
    }

    /// A quoted value goes on without regard for its quotes.
    pub(super) fn value_loosens(&mut self) {
        self.url.kept = Some(self.url.bytes.len());
    }

    /// A value ended within its tag.
    pub(super) fn value_ends(&mut self) {
        if std::mem::take(&mut self.url.reading)
            && let Some(kept) = self.url.kept
        {
            self.url.bytes.truncate(kept);
        }
    }

    pub(super) fn tag_ends(&mut self) {
        // The last byte of such a value is taken for its quote, whatever it is.
        if std::mem::take(&mut self.url.reading) && self.url.kept.is_some() {
            self.url.bytes.pop();
        }
    }

    /// A byte of a script or a style sheet, `literal` if quotes are not made alike.
    pub(super) fn raw(&mut self, byte: u8, literal: bool, out: &mut Vec<u8>) {
        if self.view == View::NoComment && !is_blank(byte) {
            out.push(if byte == b'\'' && !literal { b'"' } else { byte.to_ascii_lowercase() });
        }
    }

    /// The blank behind the name of the tag that ends a script.
    pub(super) fn blank_ends_script(&mut self, out: &mut Vec<u8>) {
        if self.view == View::NoTags {
            self.fold(out);
        }
    }

    pub(super) fn script_begins(&mut self) {
        if self.view == View::Scripts {
            self.script = Some(Script::default());
        }
    }

    /// A byte of a script as it stands.
    pub(super) fn script(&mut self, byte: u8, out: &mut Vec<u8>) {
        let Some(script) = &mut self.script else { return };
        if !script.push(byte) {
            self.cut = true;
            self.script_ends(out);
            self.script_begins();
        }
    }

    /// Removes the beginning of the end tag from the script.
    pub(super) fn cut_tag(&mut self) {
        if let Some(script) = &mut self.script {
            script.cut_tag();
        }
    }

    pub(super) fn script_ends(&mut self, out: &mut Vec<u8>) {
        if let Some(script) = self.script.take() {
            if self.scripts > 0 {
                out.push(b'\n');
            }
            self.scripts += 1;
            script.write(out);
        }
    }

    /// Writes the address that waits.
    fn show_url(&mut self, out: &mut Vec<u8>) {
        if !self.url.reading && !self.url.bytes.is_empty() {
            out.append(&mut self.url.bytes);
            out.push(b' ');
            self.after_blank = true;
        }
    }

    /// Writes the blank that waits.
    fn settle_blank(&mut self, out: &mut Vec<u8>) {
        if std::mem::take(&mut self.blank) && self.view == View::NoComment {
            out.push(b' ');
        }
    }

    /// Writes a space, unless there is one already.
    fn fold(&mut self, out: &mut Vec<u8>) {
        self.show_url(out);
        if !std::mem::replace(&mut self.after_blank, true) {
            out.push(b' ');
        }
    }
}
