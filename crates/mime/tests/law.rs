//! The law over mails made of hostile pieces: every stage tells the same however its input is cut.

use mime::{Decoder, Embedded, Parser, Utf16, fuzz_parser};
use proptest::prelude::*;
use stream::law::{holds, holds_at_every_cut};
use stream::{Coding, Limits};

/// Pieces of mails, valid and invalid.
const PIECES: [&str; 50] = [
    "\r\n",
    "\r\n",
    "\r\n",
    "\n",
    "\r",
    "\r\n\r\n",
    "\r\r\n",
    " ",
    " \r\n",
    "\t",
    ":",
    "x",
    "-",
    "--",
    "--B",
    "--B",
    "--B--",
    "--B1",
    "--B1--",
    "--B ",
    "--Bx",
    "--C",
    "\r\n--B\r\n",
    "\r\n--B1\r\n",
    "\r\n--B--\r\n",
    "From ",
    ">From ",
    "Subject: hello",
    "Content-Type: multipart/mixed; boundary=B\r\n",
    "Content-Type: multipart/mixed; boundary=B1\r\n\r\n",
    "Content-Type: multipart/digest; boundary=\"B\"; boundary=B1\r\n",
    "Content-Type: multipart/mixed\r\n\r\n",
    "Content-Type: multipart/mixed; boundary=\"\"\r\n\r\n",
    "Content-Type: message/rfc822\r\n\r\n",
    "Content-Type: text/plain; name=\"a\"\r\n",
    "Content-Transfer-Encoding: base64\r\n",
    "Content-Transfer-Encoding: unheard-of\r\n",
    "Content-Disposition: attachment; filename=x\r\n",
    "boundary=B",
    "begin 644 x\n#86)C\n",
    "`\nend\n",
    "=ybegin line=1 name=x\n",
    "=yend\n",
    "(This file must be converted with BinHex 4.0)\n",
    "YWJj=",
    "=41=\r\n",
    "==\r\n",
    "41=4=\n",
    "\nContent-T",
    "cOnTeNt",
];

fn limits() -> Limits {
    Limits { multipart_depth_max: 3, fields_max: 4, field_bytes_max: 60, ..Limits::default() }
}

fn mail() -> impl Strategy<Value = String> {
    let pieces = proptest::collection::vec(proptest::sample::select(&PIECES[..]), 0..24);
    pieces.prop_map(|pieces| pieces.concat())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: CASES, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_parser_holds(mail in mail()) {
        holds(|| Parser::new(&limits()), mail.as_bytes());
        holds_at_every_cut(|| Parser::new(&limits()), mail.as_bytes());
        fuzz_parser(mail.as_bytes());
    }

    #[test]
    fn embedded_holds(text in mail()) {
        holds(|| Embedded::new(&limits()), text.as_bytes());
        holds_at_every_cut(|| Embedded::new(&limits()), text.as_bytes());
    }

    #[test]
    fn the_decoders_hold(text in mail()) {
        for coding in [Coding::Base64, Coding::QuotedPrintable, Coding::Uuencode, Coding::BinHex, Coding::Yenc] {
            holds(|| Decoder::new(coding), text.as_bytes());
        }
        holds(|| Utf16::new(""), text.as_bytes());
    }
}

const CASES: u32 = 150;
