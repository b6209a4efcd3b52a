//! Normalised views: what ClamAV makes of HTML and of text before it looks for the signatures of these targets.
//!
//! A view is a second reading of an object beside its bytes. [`views`](crate::views) says which ones a database asks for, a
//! [`Normaliser`] makes one while the object streams by, and [`Scan::of_view`](crate::Scan::of_view) reads it. They live
//! here and not beside the readers of `unpack`, because they open nothing: what they are is defined by the signatures alone.
//!
//! What the views are was learned from the manual ("Writing signatures for special files") and by comparing with
//! `sigtool --html-normalise` and `--ascii-normalise` of ClamAV 1.4; the differences that are left are listed in
//! `docs/engine/signatures.md`. There is no size up to which views are made, as clamscan has it: nothing of an object is
//! held but a script, and of that [`script::SOURCE_BYTES_MAX`].

mod html;
mod late;
mod lines;
mod page;
mod reference;
mod script;
mod text;

use stream::{Class, Event, FileType, Finding, Fuel, ReadAt, Stage, Step, Window};

use crate::target::{HTML, TEXT};
use html::Html;
use late::Late;
pub(crate) use late::has_tag;
use lines::Lines;
use reference::Reference;
use text::Text;

/// A text with its references resolved.
pub(crate) fn resolved(text: &[u8]) -> Vec<u8> {
    let (mut out, mut open) = (Vec::with_capacity(text.len()), None::<Reference>);
    for &byte in text {
        if let Some(mut reference) = open.take() {
            match reference.read(byte) {
                None => {
                    open = Some(reference);
                    continue;
                }
                Some((text, took_byte)) => {
                    out.extend(text);
                    if took_byte {
                        continue;
                    }
                }
            }
        }
        match byte {
            b'&' => open = Some(Reference::default()),
            byte => out.push(byte),
        }
    }
    out.extend(open.map(Reference::end).unwrap_or_default());
    out
}

/// A view of an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum View {
    /// Text in lower case, blanks folded.
    Text,
    /// HTML in lower case without comments, blanks folded.
    NoComment,
    /// The text of HTML, and the addresses of its links and pictures.
    NoTags,
    /// The scripts of HTML.
    Scripts,
    /// Text whose lines end in LF.
    Lines,
}

impl View {
    /// The view's name, as ClamAV has it.
    pub const fn name(self) -> &'static str {
        match self {
            View::Text => "text",
            View::NoComment => "nocomment",
            View::NoTags => "notags",
            View::Scripts => "javascript",
            View::Lines => "lines",
        }
    }

    /// Type of the view's original.
    pub(crate) const fn file_type(self) -> FileType {
        match self {
            View::Text | View::Lines => FileType::Text,
            _ => FileType::Html,
        }
    }

    /// The target types whose signatures are looked for in it, besides 0.
    pub(crate) const fn own_targets(self) -> [Option<u8>; 2] {
        match self {
            View::Text => [None, Some(TEXT)],
            View::NoComment | View::NoTags => [Some(HTML), None],
            View::Scripts => [Some(HTML), Some(TEXT)],
            View::Lines => [None, None],
        }
    }

    /// The target types whose signatures are looked for in it.
    pub(crate) const fn targets(self) -> [Option<u8>; 3] {
        let [html, text] = self.own_targets();
        [Some(0), html, text]
    }
}

/// Bytes that are read at most before their output is emitted.
const PIECE: usize = 4096;

/// A stage that writes a view of what it reads, as its one unnamed output.
#[derive(Debug, Clone)]
pub struct Normaliser {
    view: View,
    reading: Reading,
    out: Vec<u8>,
    /// How much of `out` has been told.
    told: usize,
    ended: bool,
}

#[derive(Debug, Clone)]
enum Reading {
    Text(Text),
    Lines(Lines),
    Html(Box<Html>),
    /// In text that is not HTML so far.
    Late(Late),
}

impl Normaliser {
    /// A stage that makes that view.
    pub fn new(view: View) -> Normaliser {
        let reading = match view {
            View::Text => Reading::Text(Text::default()),
            View::Lines => Reading::Lines(Lines::default()),
            _ => Reading::Html(Box::new(Html::new(view))),
        };
        Normaliser { view, reading, out: Vec::new(), told: 0, ended: false }
    }

    /// A stage that makes that view of HTML from the first tag on by which ClamAV tells HTML.
    pub(crate) fn late(view: View) -> Normaliser {
        Normaliser { reading: Reading::Late(Late::default()), ..Normaliser::new(view) }
    }

    /// The view that it makes.
    pub fn view(&self) -> View {
        self.view
    }

    fn read(&mut self, input: &[u8]) -> usize {
        match &mut self.reading {
            Reading::Text(text) => text.read(input, &mut self.out),
            Reading::Lines(lines) => lines.read(input, &mut self.out),
            Reading::Html(html) => html.read(input, &mut self.out),
            Reading::Late(late) => {
                let (taken, tag) = late.read(input);
                if let Some(tag) = tag {
                    let mut html = Html::new(self.view);
                    html.read(tag, &mut self.out);
                    self.reading = Reading::Html(Box::new(html));
                }
                return taken;
            }
        }
        input.len()
    }

    fn end(&mut self) {
        match &mut self.reading {
            Reading::Html(html) => html.end(&mut self.out),
            Reading::Lines(lines) => lines.end(&mut self.out),
            Reading::Text(_) | Reading::Late(_) => {}
        }
    }

    /// Writes what waits; how much that was.
    fn tell(&mut self, output: &mut Window) -> usize {
        let written = output.push(&self.out[self.told..]);
        self.told += written;
        if self.told == self.out.len() {
            self.out.clear();
            self.told = 0;
        }
        written
    }

    /// Whether a script was too long to be read at once; asked once.
    fn take_cut(&mut self) -> bool {
        match &mut self.reading {
            Reading::Html(html) => html.take_cut(),
            _ => false,
        }
    }
}

const SCRIPT_CUT: Finding = Finding::new(Class::Partial, "Heuristics.Limits.Exceeded.Script", 0);

impl Stage for Normaliser {
    fn step(&mut self, input: &[u8], output: &mut Window, fuel: &mut Fuel) -> Step {
        if fuel.is_empty() {
            return Step::idle(0);
        }
        let mut taken = 0;
        let allowed = fuel.allows(input.len());
        while taken < allowed && self.out.is_empty() {
            taken += self.read(&input[taken..allowed.min(taken + PIECE)]);
        }
        let written = self.tell(output);
        fuel.burn(taken + written);
        if written > 0 { Step::tell(taken, Event::Wrote) } else { Step::idle(taken) }
    }

    fn finish(&mut self, _kept: &dyn ReadAt, output: &mut Window, fuel: &mut Fuel) -> Event {
        if fuel.is_empty() {
            return Event::Idle;
        }
        if self.out.is_empty() && !std::mem::replace(&mut self.ended, true) {
            self.end();
        }
        let written = self.tell(output);
        fuel.burn(written + 1);
        match written {
            0 if self.take_cut() => Event::finding(SCRIPT_CUT),
            0 => Event::End,
            _ => Event::Wrote,
        }
    }
}
