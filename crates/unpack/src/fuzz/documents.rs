//! The bodies of the fuzz targets of documents.

use super::compare;
use crate::pdf;
use crate::reader::Reading;

/// Fuzz body: reads a PDF document, and an object stream.
pub fn fuzz_pdf(data: &[u8]) {
    compare(data, |limits| Box::new(Reading::new(pdf::Pdf::new(limits))));
    compare(data, |limits| Box::new(Reading::new(pdf::Pdf::objects(limits))));
}
