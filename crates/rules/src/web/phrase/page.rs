//! A page while it comes in.

use std::sync::Arc;

use pattern::words::Place;

use super::Dialect;
use super::lens::{Cut, Lens};
use super::load::Phrases;
use super::score::{Outcome, Score};
use super::view::Percent;
use crate::web::moment::Moment;

/// So much of a page is looked at at once.
const PIECE_BYTES: usize = 8192;

/// The text of a view is counted in blocks of so many bytes, and a page with a block of more occurrences than this is given up: sixteen for each byte,
/// where pages with all lists of Debian have one for 48. Blocks are those of the text, so that cuts do not matter.
const BLOCK_BYTES: usize = 64 << 10;
const OCCURRENCES_MAX: usize = 16 * BLOCK_BYTES;

/// A page that is looked through for phrases: its bytes are fed as they come, decoded but else as the server sent them.
///
/// However they are cut, the score is the same.
#[derive(Debug)]
pub struct Page {
    phrases: Arc<Phrases>,
    percent: Option<Percent>,
    decoded: Vec<u8>,
    views: Vec<View>,
    bytes: u64,
}

/// A view of a page, and what has occurred in it.
#[derive(Debug)]
struct View {
    cut: Cut,
    shown: Vec<u8>,
    /// The last byte of the text, which E2Guardian does not look at.
    held: Option<u8>,
    place: Place,
    /// How often each phrase has occurred, and those that have.
    counts: Vec<u32>,
    occurred: Vec<u32>,
    /// Bytes of the block under way, and occurrences in it.
    block: (usize, usize),
    /// A block had more than are counted.
    is_dense: bool,
}

impl Page {
    /// A page of which nothing has come.
    pub fn new(phrases: &Arc<Phrases>) -> Page {
        let settings = &phrases.settings;
        let views = phrases.lenses.iter().map(|lens| View::new(phrases, lens));
        Page {
            phrases: phrases.clone(),
            percent: settings.decodes_percent.then(Percent::default),
            decoded: Vec::new(),
            views: if phrases.is_empty() { Vec::new() } else { views.collect() },
            bytes: 0,
        }
    }

    /// Takes the next bytes.
    pub fn feed(&mut self, bytes: &[u8]) {
        self.bytes = self.bytes.saturating_add(bytes.len() as u64);
        for piece in bytes.chunks(PIECE_BYTES) {
            let piece = match &mut self.percent {
                None => piece,
                Some(percent) => {
                    self.decoded.clear();
                    percent.feed(piece, &mut self.decoded);
                    &self.decoded
                }
            };
            let lenses = self.views.iter_mut().zip(&self.phrases.lenses);
            lenses.for_each(|(view, lens)| view.feed(piece, lens, &self.phrases));
        }
    }

    /// Ends the page: its score at this moment.
    pub fn finish(mut self, now: Moment) -> Score {
        if let Some(mut percent) = self.percent.take() {
            self.decoded.clear();
            percent.finish(&mut self.decoded);
            let lenses = self.views.iter_mut().zip(&self.phrases.lenses);
            lenses.for_each(|(view, lens)| view.feed(&self.decoded, lens, &self.phrases));
        }
        let settings = &self.phrases.settings;
        if settings.dialect == Dialect::E2guardian535 && self.bytes > settings.page_bytes_max {
            return Score::default();
        }
        let lenses = self.views.iter_mut().zip(&self.phrases.lenses);
        lenses.for_each(|(view, lens)| view.finish(lens, &self.phrases));
        if self.views.iter().any(|view| view.is_dense) {
            return Score { outcome: Outcome::Dense, ..Score::default() };
        }
        let mut score: Option<Score> = None;
        for view in &self.views {
            let next = Score::of(&self.phrases, &view.occurred, &view.counts, now);
            let is_final = next.outcome.is_final();
            let is_better = is_final || score.as_ref().is_none_or(|score| score.points <= next.points.max(0));
            if is_better {
                score = Some(next);
            }
            if is_final {
                break;
            }
        }
        score.unwrap_or_default()
    }
}

impl View {
    fn new(phrases: &Phrases, lens: &Lens) -> View {
        let mut view = View {
            cut: lens.cut.clone(),
            shown: Vec::new(),
            held: None,
            place: Place::default(),
            counts: vec![0; phrases.texts.len()],
            occurred: Vec::new(),
            block: (0, 0),
            is_dense: false,
        };
        if phrases.settings.dialect == Dialect::Sluice || matches!(view.cut, Cut::Text(_)) {
            view.scan(phrases, lens, b" ");
        }
        view
    }

    fn feed(&mut self, piece: &[u8], lens: &Lens, phrases: &Phrases) {
        self.shown.clear();
        self.shown.extend(self.held.take());
        match &mut self.cut {
            Cut::Bytes => return self.scan(phrases, lens, piece),
            Cut::Text(text) => text.feed(piece, &lens.fold, &mut self.shown),
            Cut::Head(head) => head.feed(piece, &lens.fold, &mut self.shown),
        }
        if matches!(self.cut, Cut::Text(_)) && phrases.settings.dialect != Dialect::Sluice {
            self.held = self.shown.pop();
        }
        let shown = std::mem::take(&mut self.shown);
        self.scan(phrases, lens, &shown);
        self.shown = shown;
    }

    fn scan(&mut self, phrases: &Phrases, lens: &Lens, bytes: &[u8]) {
        let mut rest = bytes;
        while !rest.is_empty() && !self.is_dense {
            let (part, behind) = rest.split_at(rest.len().min(BLOCK_BYTES - self.block.0));
            self.scan_part(phrases, lens, part);
            rest = behind;
        }
    }

    /// Scans bytes of one block.
    fn scan_part(&mut self, phrases: &Phrases, lens: &Lens, bytes: &[u8]) {
        let (counts, occurred, block) = (&mut self.counts, &mut self.occurred, &mut self.block);
        phrases.words.scan(&lens.classes, &mut self.place, bytes, &mut |phrase| {
            let Some(count) = counts.get_mut(phrase as usize) else { return };
            if *count == 0 {
                occurred.push(phrase);
            }
            *count = count.saturating_add(1);
            block.1 += 1;
        });
        self.is_dense = self.block.1 > OCCURRENCES_MAX;
        self.block.0 += bytes.len();
        if self.block.0 == BLOCK_BYTES {
            self.block = (0, 0);
        }
    }

    fn finish(&mut self, lens: &Lens, phrases: &Phrases) {
        if phrases.settings.dialect == Dialect::Sluice {
            self.scan(phrases, lens, b" ");
        }
        self.occurred.sort_unstable();
    }
}
