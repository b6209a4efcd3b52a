//! The bodies of the fuzz targets of documents.

use crate::document::{cms, download, html, lines, ole2, onenote, pdf, rtf, runs, script, tnef, utf16};
use crate::frame::cuts::{compare, passwords};
use crate::frame::reader::Reading;

/// Fuzz body: reads a PDF document, and an object stream.
pub fn fuzz_pdf(data: &[u8]) {
    compare(data, |limits| Box::new(Reading::new(pdf::Pdf::new(limits, &passwords(limits)))));
    compare(data, |limits| Box::new(Reading::new(pdf::Pdf::objects(limits))));
}

/// Fuzz body: reads a compound file.
pub fn fuzz_ole2(data: &[u8]) {
    compare(data, |limits| Box::new(Reading::new(ole2::Ole2::new(limits, &passwords(limits)))));
}

/// Fuzz body: reads RTF, and an object in it.
pub fn fuzz_rtf(data: &[u8]) {
    compare(data, |_| Box::new(Reading::new(rtf::Rtf::new())));
    compare(data, |limits| Box::new(Reading::new(rtf::ole1::Ole1::new(limits))));
}

/// Fuzz body: reads TNEF.
pub fn fuzz_tnef(data: &[u8]) {
    compare(data, |limits| Box::new(Reading::new(tnef::Tnef::new(limits))));
}

/// Fuzz body: reads a OneNote section.
pub fn fuzz_onenote(data: &[u8]) {
    compare(data, |_| Box::new(Reading::new(onenote::OneNote::new())));
}

/// Fuzz body: reads a cryptographic message.
pub fn fuzz_cms(data: &[u8]) {
    compare(data, |_| Box::new(Reading::new(cms::Cms::new())));
}

/// Fuzz body: reads text with encoded content.
pub fn fuzz_html(data: &[u8]) {
    compare(data, |_| Box::new(Reading::new(html::Html::new())));
}

/// Fuzz body: looks for runs in text, strings of scripts and files in lines.
pub fn fuzz_runs(data: &[u8]) {
    compare(data, |_| Box::new(Reading::new(runs::Runs::new())));
    compare(data, |_| Box::new(Reading::new(lines::Lines::new())));
    compare(data, |_| Box::new(Reading::new(script::Script::new())));
    compare(data, |_| Box::new(Reading::new(utf16::Utf16::default())));
    compare(data, |_| Box::new(Reading::new(download::Download::new())));
}
