//! The views of pages that a configuration asks for, as far as they are the same for all pages.

use pattern::words::{Classes, Words};

use super::fold::{self, Fold};
use super::view::{Head, Text};
use super::{Dialect, Settings};

/// Part of a page that a view shows.
#[derive(Debug, Clone)]
pub(super) enum Cut {
    Bytes,
    Text(Text),
    Head(Head),
}

/// A view: the part of a page that it shows, and how its bytes are folded.
#[derive(Debug)]
pub(super) struct Lens {
    pub cut: Cut,
    pub fold: Fold,
    pub classes: Classes,
}

impl Lens {
    /// Those of pages under these settings.
    pub fn all(words: &Words, settings: &Settings) -> Vec<Lens> {
        let text: fn() -> Cut = match settings.dialect {
            Dialect::Sluice => || Cut::Text(Text::watched()),
            Dialect::E2guardian535 | Dialect::E2guardian558 => || Cut::Text(Text::new()),
        };
        let cuts: &[fn() -> Cut] = match settings.views {
            0 => &[|| Cut::Bytes],
            1 => &[text],
            3 => &[|| Cut::Head(Head::default())],
            _ => &[text, || Cut::Bytes],
        };
        let is_535 = settings.dialect == Dialect::E2guardian535;
        let cases: &[bool] = match settings.case {
            // It ends with the first of both where it does not search the bytes.
            2.. if is_535 && matches!(settings.views, 1 | 3) => &[false],
            0 => &[false],
            1 => &[true],
            _ => &[false, true],
        };
        let of_case = |&case| cuts.iter().map(move |cut| Lens::new(words, settings, case, cut()));
        cases.iter().flat_map(of_case).collect()
    }

    fn new(words: &Words, settings: &Settings, keeps_case: bool, cut: Cut) -> Lens {
        let mut fold = fold::of_page(settings.dialect, keeps_case);
        let blanks: &[u8] = match cut {
            Cut::Bytes if settings.dialect == Dialect::E2guardian535 && settings.views == 0 => b"<>=@",
            // What stands in a tag is words, too.
            Cut::Bytes => b"<>",
            Cut::Text(_) => b">",
            Cut::Head(_) => b"",
        };
        blanks.iter().for_each(|&byte| fold[usize::from(byte)] = b' ');
        let is_folded = !matches!(cut, Cut::Bytes);
        let classes = words.classes(|byte| if is_folded { byte } else { fold[usize::from(byte)] });
        Lens { cut, fold, classes }
    }
}
