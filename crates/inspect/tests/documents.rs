//! Whole mails with a document attached: what is inside of it is found.

use std::path::Path;
use std::sync::Arc;

use flow::Policy;
use inspect::Engine;
use scan::Builder;
use stream::Limits;

/// Seeds of the document readers of which the first line of the text inside stands nowhere in the clear.
const DOCUMENTS: &[&str] = &[
    "pdf/filters.pdf",
    "pdf/names.pdf",
    "pdf/lengths.pdf",
    "pdf/hidden.pdf",
    "pdf/junk-in-front.pdf",
    "pdf/no-version.pdf",
    "pdf/encrypted-r2.pdf",
    "pdf/encrypted-r3.pdf",
    "pdf/encrypted-r4.pdf",
    "pdf/encrypted-r6.pdf",
    "ole2/macro.xls",
    "ole2/objects.ppt",
    "ole2/message.msg",
    "rtf/package.rtf",
    "rtf/compound.rtf",
    "rtf/between.rtf",
    "rtf/binary.rtf",
    "rtf/escape.rtf",
    "tnef/winmail.dat",
    "tnef/inner.dat",
    "html/image.html",
    "html/smuggling.html",
    "html/pieces.html",
    "html/percent.svg",
    "onenote/files.one",
    "cms/signed.p7m",
    "cms/pieces.p7m",
];

const LINE: &[u8] = b"line 0 of the text of this stream";

fn engine() -> Arc<Engine> {
    let mut builder = Builder::new();
    let hex: String = LINE.iter().map(|byte| format!("{byte:02x}")).collect();
    builder.add("line.ndb", format!("Line:0:*:{hex}\n").as_bytes()).unwrap();
    Arc::new(Engine { database: Arc::new(builder.build()), limits: Limits::default() })
}

#[test]
fn the_text_in_every_document_is_found() {
    let engine = engine();
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus");
    for seed in DOCUMENTS {
        let bytes = std::fs::read(corpus.join(format!("unpack_{seed}"))).expect("the seed is there");
        let content = &bytes[1..];
        assert!(!content.windows(LINE.len()).any(|window| window == LINE), "{seed} has it in the clear");
        let seen = crate::pipeline::inspect(&engine, Policy::default(), &crate::build::mail(seed, content, 0));
        assert!(seen.names().contains(&"Line.UNOFFICIAL"), "{seed}: {:?}", seen.names());
    }
}
