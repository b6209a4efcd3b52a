//! QR codes: a text as a picture that devices scan, written as SVG into the page. Black on white in every colour scheme, with the quiet
//! zone of four modules that scanners need. A text that does not fit into the largest code is not written.

use crate::html::{Html, put};

/// Modules around the code.
const QUIET: u32 = 4;

/// Pixels of a module.
const PIXELS: u32 = 4;

/// Writes a text as a QR code, with a name for who does not see it.
pub fn qr(page: &mut Html, text: &str, label: &'static str) {
    let Some(rows) = rows(text) else { return };
    let size = QUIET.saturating_mul(2).saturating_add(u32::try_from(rows.len()).unwrap_or(0));
    let pixels = size.saturating_mul(PIXELS);
    put!(page, "<svg role=\"img\" aria-label=\"", label, "\" width=\"", pixels, "\" height=\"", pixels);
    put!(page, "\" viewBox=\"0 0 ", size, " ", size, "\" shape-rendering=\"crispEdges\">");
    put!(page, "<path fill=\"#fff\" d=\"M0 0h", size, "v", size, "H0z\"/><path d=\"");
    for (y, row) in (QUIET..).zip(rows) {
        let mut at = 0;
        for run in row.chunk_by(|one, other| one == other) {
            let length = u32::try_from(run.len()).unwrap_or(0);
            if run.first() == Some(&true) {
                put!(page, "M", QUIET.saturating_add(at), " ", y, "h", length, "v1h-", length, "z");
            }
            at = at.saturating_add(length);
        }
    }
    page.put("\"/></svg>");
}

/// The modules of a code by rows, true for the dark ones.
#[cfg(feature = "second")]
fn rows(text: &str) -> Option<alloc::vec::Vec<alloc::vec::Vec<bool>>> {
    use qrcodegen_no_heap::{QrCode, QrCodeEcc, Version};

    let (mut code, mut work) = (alloc::vec![0; Version::MAX.buffer_len()], alloc::vec![0; Version::MAX.buffer_len()]);
    let made =
        QrCode::encode_text(text, &mut work, &mut code, QrCodeEcc::Low, Version::MIN, Version::MAX, None, true).ok()?;
    Some((0..made.size()).map(|y| (0..made.size()).map(|x| made.get_module(x, y)).collect()).collect())
}

#[cfg(not(feature = "second"))]
fn rows(_text: &str) -> Option<alloc::vec::Vec<alloc::vec::Vec<bool>>> {
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Draws the SVG's path again: text of `#` and blanks, without the quiet zone.
    fn drawn(text: &str) -> Vec<String> {
        let mut page = Html::default();
        qr(&mut page, text, "x");
        let svg = page.into_string();
        let path = svg.split("d=\"").nth(2).unwrap_or_default().split('"').next().unwrap_or_default();
        let size: usize =
            svg.split("viewBox=\"0 0 ").nth(1).and_then(|rest| rest.split(' ').next()?.parse().ok()).unwrap();
        let mut rows = vec![vec![' '; size]; size];
        for run in path.split('M').skip(1) {
            let number = |text: &str| text.parse::<usize>().unwrap();
            let (place, rest) = run.split_once('h').unwrap();
            let ((x, y), length) = (place.split_once(' ').unwrap(), number(rest.split('v').next().unwrap()));
            rows[number(y)][number(x)..][..length].fill('#');
        }
        rows[4..size - 4].iter().map(|row| row[4..size - 4].iter().collect()).collect()
    }

    #[test]
    fn a_code_has_its_finders_and_is_drawn_as_it_was_made() {
        let code = drawn("otpauth://totp/x?secret=ABC");
        let finder = ["#######", "#     #", "# ### #", "# ### #", "# ### #", "#     #", "#######"];
        let side = code.len();
        for (at, row) in finder.iter().enumerate() {
            assert_eq!(&code[at][..7], *row);
            assert_eq!(&code[at][side - 7..], *row);
            assert_eq!(&code[side - 7 + at][..7], *row);
        }
        let made: Vec<String> = rows("otpauth://totp/x?secret=ABC")
            .unwrap()
            .iter()
            .map(|row| row.iter().map(|&dark| if dark { '#' } else { ' ' }).collect())
            .collect();
        assert_eq!(code, made);
    }

    #[test]
    fn a_text_that_fits_into_no_code_is_not_written() {
        let mut page = Html::default();
        qr(&mut page, &"x".repeat(2_953), "x");
        assert!(page.clone().into_string().contains("viewBox=\"0 0 185 185\""));
        qr(&mut page, "", "x");
        let before = page.clone().into_string();
        qr(&mut page, &"x".repeat(2_954), "x");
        assert_eq!(page.into_string(), before);
    }
}
