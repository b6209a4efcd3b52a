//! Pages that are junk, cut by our reader and by Perl's `HTML::Parser`: the same pieces.

use std::fmt::Write as _;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

use text::lenient::{Reader, Token};

/// Pieces for generated pages.
const PIECES: [&str; 64] = [
    "<",
    ">",
    "</",
    "<!",
    "<!--",
    "-->",
    "--",
    "<?",
    "\"",
    "'",
    "=",
    " ",
    "\n",
    "/",
    "a",
    "b c",
    "<a ",
    "<b>",
    "</a>",
    "</b >",
    "<br/>",
    "<p class=x>",
    "href=\"u&amp;v\"",
    "&amp;",
    "&lt",
    "&copy;x",
    "&#65;",
    "&#x20ac;",
    "&rarr;",
    "&nbsp;",
    "<script>",
    "</script>",
    "<style>",
    "</style >",
    "<title>",
    "</title>",
    "<textarea>",
    "</TEXTAREA>",
    "<xmp>",
    "</xmp>",
    "<!DOCTYPE html>",
    "<!DOCTYPE ",
    "<!x>",
    "<![if !mso]>",
    "<![endif]>",
    "<![CDATA[",
    "]]>",
    "é",
    "word ",
    " two words",
    "\t",
    "<td bgcolor='#fff' width=5%>",
    "<1>",
    "<_x:y>",
    "<font color",
    "=red>",
    "x=y/>",
    "<a/b=c>",
    "--!>",
    "<!-- c -->",
    "text",
    ".",
    "\r\n",
    "<iframe src=x>",
];

struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % sides as u64) as usize
    }
}

fn hex(text: &str) -> String {
    text.bytes().fold(String::new(), |mut out, byte| {
        write!(out, "{byte:02x}").unwrap();
        out
    })
}

fn ours(page: &str) -> String {
    let mut out = Vec::new();
    let mut tell = |token: Token<'_>| {
        out.push(match token {
            Token::Open { name, attributes } => {
                let mut all: Vec<String> =
                    attributes.iter().map(|(name, value)| format!(" {}={}", hex(name), hex(value))).collect();
                all.sort();
                format!("S {}{}", hex(name), all.concat())
            }
            Token::Close(name) => format!("E {}", hex(name)),
            Token::Text(text) => format!("T {}", hex(&text)),
            Token::Comment(text) => format!("C {}", hex(text)),
            Token::Declaration(text) => format!("D {}", hex(text)),
        });
    };
    let mut reader = Reader::new();
    reader.read(page, &mut tell);
    reader.end(&mut tell);
    out.join("|")
}

#[test]
fn pages_are_cut_as_perl_cuts_them() {
    let mut dice = Dice(0x5eed);
    let rounds = std::env::var("SLUICE_ROUNDS").ok().and_then(|text| text.parse().ok()).unwrap_or(3000);
    let pages: Vec<String> =
        (0..rounds).map(|_| (0..1 + dice.roll(14)).map(|_| PIECES[dice.roll(PIECES.len())]).collect()).collect();
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/lenient.pl");
    let spawned = Command::new("perl").arg(script).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
    let Ok(mut child) = spawned else {
        eprintln!("skipped: perl is not installed");
        return;
    };
    let mut input = child.stdin.take().unwrap();
    let lines: String = pages.iter().map(|page| hex(page) + "\n").collect();
    let writer = std::thread::spawn(move || input.write_all(lines.as_bytes()));
    let output = child.wait_with_output().unwrap();
    if !output.status.success() || writer.join().unwrap().is_err() {
        eprintln!("skipped: HTML::Parser is not installed");
        return;
    }
    let theirs = String::from_utf8(output.stdout).unwrap();
    let mut differences = Vec::new();
    for (page, theirs) in pages.iter().zip(theirs.lines()) {
        let ours = ours(page);
        if ours != theirs {
            differences.push(format!("{page:?}\n  ours   {}\n  theirs {}", readable(&ours), readable(theirs)));
        }
    }
    differences.sort_by_key(String::len);
    let shown = &differences[..differences.len().min(12)];
    assert!(differences.is_empty(), "{} of {} differ:\n{}", differences.len(), pages.len(), shown.join("\n"));
}

/// Hexadecimal undone, for a reader of the failure.
fn readable(pieces: &str) -> String {
    let undo = |word: &str| {
        let bytes: Vec<u8> =
            (0..word.len() / 2).filter_map(|at| u8::from_str_radix(&word[at * 2..at * 2 + 2], 16).ok()).collect();
        format!("{:?}", String::from_utf8_lossy(&bytes))
    };
    let one = |piece: &str| {
        piece
            .split(' ')
            .enumerate()
            .map(|(at, word)| match at {
                0 => word.to_owned(),
                _ => word.split('=').map(undo).collect::<Vec<_>>().join("="),
            })
            .collect::<Vec<_>>()
            .join(" ")
    };
    pieces.split('|').map(one).collect::<Vec<_>>().join(" | ")
}
