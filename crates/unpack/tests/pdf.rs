//! Documents in PDF that are written in unusual ways: readers of PDF find the stream, and so does this one.

use crate::driver::Node;

const MEMBER: &[u8] = b"the member that a document holds, in two rows of 30 bytes...";

/// Columns of the rows that [`predicted`] makes.
const COLUMNS: usize = 30;

/// Zlib with stored data; a reader of PDF does not look at the checksum.
fn flate(data: &[u8]) -> Vec<u8> {
    let length = data.len() as u16;
    [&b"\x78\x01\x01"[..], &length.to_le_bytes(), &(!length).to_le_bytes(), data, &[0; 4]].concat()
}

/// Rows of PNG, each with the difference to the one above.
fn predicted(data: &[u8]) -> Vec<u8> {
    let mut above = [0; COLUMNS];
    let mut rows = Vec::new();
    for row in data.chunks(COLUMNS) {
        rows.push(2);
        rows.extend(row.iter().zip(above).map(|(byte, up)| byte.wrapping_sub(up)));
        above.copy_from_slice(row);
    }
    rows
}

/// The document with `text` as its objects, in which `$` is the stream of an object with these data.
fn reaches(text: &str, data: &[u8]) -> bool {
    let (before, behind) = text.split_once('$').expect("it has a stream");
    let length = data.len();
    let head = format!("%PDF-1.7\n{before}/Length {length}>>\nstream\n");
    let tail = format!("\nendstream\nendobj\n{behind}\ntrailer <</Root 1 0 R/Size 9>>\nstartxref\n0\n%%EOF\n");
    let document = [head.as_bytes(), data, tail.as_bytes()].concat();
    Node::open(Default::default(), document, 1).children.iter().any(|child| child.content == MEMBER)
}

#[test]
fn parameters_of_filters_may_be_references_one_by_one() {
    let data = flate(&predicted(MEMBER));
    let missed: Vec<_> = [
        "4 0 obj <</Filter/FlateDecode/DecodeParms<</Predictor 5 0 R/Columns 30>>$5 0 obj 12 endobj",
        "4 0 obj <</Filter/FlateDecode/DecodeParms<</Predictor 12/Columns 5 0 R>>$5 0 obj 30 endobj",
        "5 0 obj 30 endobj 4 0 obj <</Filter/FlateDecode/DecodeParms<</Predictor 12/Columns 5 0 R>>$",
        "4 0 obj <</Filter/FlateDecode/DP<</Predictor 12/Columns 5 0 R/Colors 6 0 R/BitsPerComponent 7 0 R>>$\
         5 0 obj 15 endobj 6 0 obj 2 endobj 7 0 obj 8 0 R endobj 8 0 obj 8 endobj",
        "4 0 obj <</Filter[/FlateDecode]/DecodeParms[<</Columns 5 0 R/Predictor 15>>]$5 0 obj 30 endobj",
        "4 0 obj <</Filter[/Crypt/FlateDecode]/DecodeParms[null<</Columns 5 0 R/Predictor 15>>]$5 0 obj 30 endobj",
        "4 0 obj <</Filter/FlateDecode/DecodeParms 6 0 R$6 0 obj<</Predictor 12/Columns 5 0 R>>endobj 5 0 obj 30 endobj",
        "4 0 obj <</Filter[/FlateDecode]/DecodeParms[6 0 R]$\
         5 0 obj 30 endobj 6 0 obj<</Predictor 5 0 R/Columns 5 0 R>>endobj",
        "4 0 obj <</Filter/FlateDecode/DecodeParms<</Predictor 12/Columns 5 0 R/Columns 30>>$5 0 obj 7 endobj",
        "4 0 obj <</Filter/FlateDecode/DecodeParms<</Predictor 12/Columns 30/Colors 5 0 R>>$",
    ]
    .into_iter()
    .filter(|text| !reaches(text, &data))
    .collect();
    assert!(missed.is_empty(), "{missed:#?}");
}

#[test]
fn heads_of_objects_may_hold_comments() {
    let data = flate(MEMBER);
    let long = format!("4 0 %{}\nobj", "x".repeat(9_000));
    let mut missed = Vec::new();
    for head in ["4 0%x\nobj", "4 %x\n0 obj", "4%x\r0%5 0\n%\nobj", &long] {
        for before in ["", "7 0 obj (", "7 0 obj ((((((\n", "7 0 obj <41 ", "7 0 obj <</Length 9000>>\nstream\n"] {
            let text = format!("{before}{head} <</Filter/FlateDecode$)>\nendstream endobj\n");
            if !reaches(&text, &data) {
                missed.push((before, &head[..5]));
            }
        }
    }
    assert!(missed.is_empty(), "{missed:#?}");
}

#[test]
fn object_streams_are_read_though_their_entries_are_references() {
    let data = flate(MEMBER);
    let objects = "stream\n5 0 /FlateDecode \nendstream endobj ";
    let behind = "6 0 obj /ObjStm endobj 7 0 obj 1 endobj 8 0 obj 4 endobj ";
    let mut missed = Vec::new();
    for entries in [
        "/Type/ObjStm/N 1/First 4",
        "/Type 6 0 R/N 1/First 4",
        "/Type/ObjStm/N 7 0 R/First 8 0 R",
        "/Type 6 0 R/N 7 0 R/First 8 0 R",
        "/Type/Other/First 4/N 1",
        "/N 1/First 4",
    ] {
        let text = format!("3 0 obj <<{entries}/Length 17>>\n{objects}{behind}4 0 obj <</Filter 5 0 R$");
        if !reaches(&text, &data) {
            missed.push(entries);
        }
    }
    assert!(missed.is_empty(), "{missed:#?}");
    // A stream with one of the entries alone, as those of profiles of colours, is none.
    let text = format!("3 0 obj <</N 1/Length 17>>\n{objects}4 0 obj <</Filter/FlateDecode$");
    assert!(reaches(&text, &data));
}
