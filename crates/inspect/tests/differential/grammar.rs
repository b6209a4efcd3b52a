//! Mails with oddities, made from a number: the same number makes the same mail.
//!
//! Each mail holds the mark in one attachment, encoded, in a structure that a strict reader opens; then oddities come in
//! wherever the grammar has a place for one. How many there are differs from mail to mail.

/// Content of the attachment.
pub const MARKS: [&[u8]; 2] = [
    b"X5O!P%@AP[4\\PZX54(P^)7CC)7}$EICAR-STANDARD-\
      ANTIVIRUS-TEST-FILE!$H+H*",
    b"MARK-0123456789-abcdef-KRAM =20 and some more of it",
];

/// The mail that a number stands for.
pub fn mail(seed: u64) -> Vec<u8> {
    let mut maker = Maker { state: seed.wrapping_mul(0x9e37_79b9_7f4a_7c15), rarity: 1 };
    maker.rarity = maker.pick(&[6, 10, 20, 40, 80]);
    maker.mail()
}

struct Maker {
    state: u64,
    /// One place in so many is odd.
    rarity: u64,
}

/// One way to write a boundary: the parameters, and what its delimiter lines hold.
struct Boundary {
    parameters: String,
    delimiter: String,
}

impl Maker {
    fn number(&mut self, below: u64) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.state;
        mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ mixed >> 31) % below
    }

    fn pick<T: Copy>(&mut self, all: &[T]) -> T {
        all[self.number(all.len() as u64) as usize]
    }

    fn odd(&mut self) -> bool {
        let rarity = self.rarity;
        self.number(rarity) == 0
    }

    /// At an odd place a number below this.
    fn odd_number(&mut self, below: u64) -> u64 {
        if self.odd() { self.number(below) } else { u64::MAX }
    }

    /// `usual`, or at an odd place one of the others.
    fn odd_one<'t>(&mut self, usual: &'t str, others: &[&'t str]) -> &'t str {
        if self.odd() { self.pick(others) } else { usual }
    }

    fn mail(&mut self) -> Vec<u8> {
        let mut head = String::new();
        if self.odd() {
            head +=
                self.pick(&["\r\n", "\u{feff}", "From a@b Mon Jan  1 00:00:00 2024\r\n", ">From a@b\r\n", " x\r\n"]);
        }
        head += "From: a@example.org\r\nTo: b@example.org\r\nSubject: t\r\n";
        head += &self.line_between();
        if !self.odd() {
            head += self.odd_one("MIME-Version: 1.0\r\n", &["MIME-Version: 2.0\r\n", "MIME-Version:\r\n"]);
        }
        let depth = self.pick(&[0, 1, 1, 1, 2, 2, 3]);
        let (fields, body) = self.entity(depth);
        let whole = [head.into_bytes(), fields, self.header_end(), body].concat();
        self.line_ends(whole)
    }

    fn header_end(&mut self) -> Vec<u8> {
        self.odd_one("\r\n", &["\r\n\r\n", " \r\n", "\t\r\n\r\n", "", "\r\n \r\n", "\n"]).as_bytes().to_vec()
    }

    /// Other ends of lines.
    fn line_ends(&mut self, mail: Vec<u8>) -> Vec<u8> {
        let style = self.number(20);
        let mut other = Vec::with_capacity(mail.len());
        for (at, &byte) in mail.iter().enumerate() {
            let in_pair = byte == b'\r' && mail.get(at + 1) == Some(&b'\n');
            match style {
                0..=3 if in_pair => {}
                4 if byte == b'\n' => {}
                5 if in_pair && self.number(8) == 0 => {}
                6 if in_pair && self.odd() => other.extend(b"\r\r"),
                _ => other.push(byte),
            }
        }
        other
    }

    /// A line between two fields.
    fn line_between(&mut self) -> String {
        if !self.odd() {
            return String::new();
        }
        self.pick(&[
            "no field at all\r\n",
            " \r\n",
            "\t \r\n",
            ": empty name\r\n",
            "X-Odd\r\n",
            "X Odd: y\r\n",
            "X-\u{e4}: y\r\n",
            "X-Nul\0: y\r\n",
            "X-Long: y\r\n z\r\n\t\r\n",
            "Content-Type\r\n",
            "From a@b Mon Jan  1 00:00:00 2024\r\n",
            "--B\r\n",
            "X-A: \"unclosed\r\n",
            "X-A: (unclosed\r\n",
            "\x0c: y\r\n",
        ])
        .into()
    }

    /// The fields and the body of an entity that holds the mark so many levels down.
    fn entity(&mut self, depth: u32) -> (Vec<u8>, Vec<u8>) {
        if depth == 0 {
            return self.attachment();
        }
        match self.number(5) {
            0 => self.message(depth),
            _ => self.multipart(depth),
        }
    }

    fn message(&mut self, depth: u32) -> (Vec<u8>, Vec<u8>) {
        let kind = self.odd_one(
            "message/rfc822",
            &[
                "message/global",
                "message/news",
                "Message/RFC822",
                "message",
                "message/other",
                "message/delivery-status",
            ],
        );
        let mut fields = self.field("Content-Type", kind);
        if self.odd() {
            fields += &self.field("Content-Transfer-Encoding", "8bit");
        }
        let (inner, body) = self.entity(depth - 1);
        let head =
            self.odd_one("Subject: inner\r\n", &["", "\r\n", "From a@b Mon Jan  1 00:00:00 2024\r\n", "odd\r\n"]);
        let whole = [head.as_bytes(), &inner, &self.header_end(), &body].concat();
        if self.odd() {
            fields += &self.field("Content-Transfer-Encoding", "base64");
            return (fields.into_bytes(), self.base64(&whole).into_bytes());
        }
        (fields.into_bytes(), whole)
    }

    fn multipart(&mut self, depth: u32) -> (Vec<u8>, Vec<u8>) {
        let Boundary { parameters, delimiter } = self.boundary();
        let kind = self.odd_one(
            "multipart/mixed",
            &[
                "multipart",
                "multipart/",
                "MULTIPART/x-odd",
                "multipart / mixed",
                "multipart(c)/(c)mixed",
                "mul(c)tipart/mixed",
                "\"multipart/mixed\"",
                "x-multipart/mixed",
                "text/plain",
                "message/rfc822",
                "multipart/digest",
                "multipart/signed",
                "application/octet-stream",
                "=?us-ascii?q?multipart/mixed?=",
                "multipart\u{a0}/mixed",
                ";multipart/mixed",
                "multipart/mixed/x",
            ],
        );
        let mut fields = self.typed(&format!("{kind}{parameters}"));
        if self.odd() {
            let coding = self.pick(&["7bit", "base64", "quoted-printable", "8bit"]);
            fields += &self.field("Content-Transfer-Encoding", coding);
        }
        fields += &self.line_between();
        let parts = 1 + self.number(2);
        let place = self.number(parts);
        let mut body = self
            .odd_one("", &["preamble\r\n", "--other\r\n", "\r\n", "--\r\n", "-- \r\n", "--B\r\n\r\n"])
            .as_bytes()
            .to_vec();
        // Some readers look for a part before the first delimiter, and for a header behind blank lines.
        let in_preamble = self.odd();
        let blank = self.odd_one("", &["\r\n", "\r\n\r\n", "\n", "\r\n \r\n"]).to_string();
        let (head, content) = self.entity(depth - 1);
        let part_of_mark = [blank.into_bytes(), self.line_between().into_bytes(), head, self.header_end(), content];
        if in_preamble {
            body.extend(part_of_mark.concat());
            body.extend(b"\r\n");
        }
        for part in 0..parts {
            body.extend(self.delimiter_line(&delimiter, ""));
            if part == place && !in_preamble {
                body.extend(part_of_mark.concat());
            } else {
                body.extend(b"Content-Type: text/plain\r\n\r\nhello\r\n");
            }
            if self.odd() {
                body.extend(self.delimiter_line(&delimiter, "--"));
            }
        }
        if !self.odd() {
            body.extend(self.delimiter_line(&delimiter, "--"));
        }
        if self.odd() {
            body.extend(b"epilogue\r\n");
        }
        (fields.into_bytes(), body)
    }

    fn delimiter_line(&mut self, delimiter: &str, close: &str) -> Vec<u8> {
        let before = self.odd_one("--", &["-", "---", " --", "\r\n--", "\t--", "--\r\n--", "\0--"]);
        let between = self.odd_one("", &[" ", "-", "\t", "x"]);
        let behind = self.odd_one(
            "\r\n",
            &[" \r\n", "\t \r\n", "x\r\n", "--x\r\n", "-\r\n", "\r\n\r\n", "\0\r\n", "(c)\r\n", "\n", "\r"],
        );
        let delimiter = match self.odd_number(3) {
            0 => delimiter.to_uppercase(),
            1 => delimiter.chars().take(delimiter.chars().count() / 2).collect(),
            2 => "other".into(),
            _ => delimiter.to_string(),
        };
        format!("{before}{delimiter}{between}{close}{behind}").into_bytes()
    }

    fn boundary(&mut self) -> Boundary {
        let bound = self.odd_one(
            "B1",
            &[
                "=_a",
                "b b",
                "a?b'c",
                "a\\b",
                "a\"b",
                "\u{e4}b",
                "a(c)b",
                "",
                "B1 ",
                "%42",
                "=?us-ascii?q?B?=",
                "a;b",
                "B1--",
                "-",
                "b,c",
                "<b>",
            ],
        );
        let bound = if self.odd() { bound.repeat(self.pick(&[20, 40, 130, 600])) } else { bound.to_string() };
        let separator = self.odd_one(
            "; ",
            &[
                ";",
                ";\r\n ",
                ";;",
                " ",
                ", ",
                ";\r\n\t\r\n ",
                ";(c)",
                "; x=y; ",
                ";\0",
                "; \"x; y\"; ",
                "; x=\"y; ",
                "; x=(; ",
            ],
        );
        let equals = self.odd_one("=", &[" = ", "=\r\n ", " =", "= ", "(c)=(c)", "==", ":"]);
        let name = self.odd_one(
            "boundary",
            &["BOUNDARY", "Boundary", "boun(c)dary", "(c)boundary", "boundary ", "x-boundary", "\"boundary\""],
        );
        let parameter = |name: &str, value: &str| format!("{separator}{name}{equals}{value}");
        let quoted = format!("\"{bound}\"");
        let (first, second) = bound.split_at(bound.char_indices().nth(1).map_or(0, |(at, _)| at));
        let plain = if self.number(2) == 0 { quoted.clone() } else { bound.clone() };
        let parameters = match self.odd_number(22) {
            0 => String::new(),
            1 => parameter("boundary*", &format!("us-ascii''{bound}")),
            2 => parameter("boundary*0", first) + &parameter("boundary*1", second),
            3 => parameter("boundary*1", second) + &parameter("boundary*0", first),
            4 => parameter("boundary*0*", &format!("''{first}")) + &parameter("boundary*1", second),
            5 => parameter("boundary*", &format!("utf-8''{}", percent(&bound))),
            6 => parameter(name, "other") + &parameter(name, &plain),
            7 => parameter(name, &plain) + &parameter(name, "other"),
            8 => parameter(name, "other") + &parameter("boundary*", &format!("''{bound}")),
            9 => parameter(name, &plain) + &parameter("boundary*0", "other"),
            10 => parameter(name, &format!("\"{bound}")),
            11 => parameter(name, &format!("{bound}\"")),
            12 => parameter(name, &format!("'{bound}'")),
            13 => parameter(name, &format!("\"{first}\\{second}\"")),
            14 => parameter(name, &format!("\"{first}\r\n {second}\"")),
            15 => parameter(name, &format!("{quoted}x")),
            16 => parameter(name, &format!("x{quoted}")),
            17 => parameter(name, &format!("{bound}(c)")),
            18 => parameter(name, &format!("(c){bound}")),
            19 => parameter(name, "never"),
            20 => parameter("boundary*0", first) + &parameter("boundary*2", second),
            21 => parameter(name, "\"\"") + &parameter(name, &plain),
            _ => parameter(name, &plain),
        };
        Boundary { parameters, delimiter: bound }
    }

    /// The `Content-Type` field, perhaps one of several.
    fn typed(&mut self, value: &str) -> String {
        let field = self.field("Content-Type", value);
        if !self.odd() {
            return field;
        }
        let other = self.pick(&[
            "text/plain",
            "multipart/mixed; boundary=other",
            "text/html",
            "",
            "application/x",
            "message/rfc822",
        ]);
        let other = self.field("Content-Type", other);
        if self.number(2) == 0 { field + &other } else { other + &field }
    }

    /// A field, its name and its value written in some way.
    fn field(&mut self, name: &str, value: &str) -> String {
        let name = match self.odd_number(14) {
            0 => name.to_uppercase(),
            1 => name.to_lowercase(),
            2 => format!("{name} "),
            3 => format!("{name}\t"),
            4 => format!("{name}(c)"),
            5 => format!("(c){name}"),
            6 => format!("{name} (a (b) c)"),
            7 => name.replacen('-', "(c)-", 1),
            8 => format!(" {name}"),
            9 => format!("X: y\r\n {name}"),
            10 => format!("\0{name}"),
            11 => name.replacen('-', "_", 1),
            12 => format!("{name}\r\n "),
            13 => format!("\u{e4}{name}"),
            _ => name.to_string(),
        };
        let colon = self.odd_one(
            ": ",
            &[":", ":\t", ":  \t ", ":\r\n ", ":\r\n\t\r\n ", ": (c)", ":\0 ", "::", " ", "=", ": \r\n "],
        );
        let end = self.odd_one(
            "\r\n",
            &[" \r\n", "\r\n \r\n", ";\r\n", "(c)\r\n", "\0\r\n", "\n", "\r", ";(c)\r\n", "\r\n x\r\n"],
        );
        format!("{name}{colon}{value}{end}")
    }

    fn attachment(&mut self) -> (Vec<u8>, Vec<u8>) {
        let mark = self.pick(&MARKS);
        let (coding, mut body) = match self.number(7) {
            0..=3 => ("base64", self.base64(mark)),
            4..=5 => ("quoted-printable", self.quoted_printable(mark)),
            _ => ("x-uuencode", self.uuencode(mark)),
        };
        let declared = match self.odd_number(16) {
            0 => format!("\"{coding}\""),
            1 => format!("{coding};"),
            2 => format!("{coding} (c)"),
            3 => format!("(c) {coding}"),
            4 => coding.to_uppercase(),
            5 => format!("x-{coding}"),
            6 => format!("{coding}\0"),
            7 => format!("7bit, {coding}"),
            8 => format!("{coding}, 7bit"),
            9 => format!("=?us-ascii?q?{coding}?="),
            10 => format!("{coding}; x=y"),
            11 => format!("{coding}."),
            12 => format!("'{coding}'"),
            13 => coding.replacen('-', "", 1),
            14 => format!("{}({}){}", &coding[..4], "c", &coding[4..]),
            15 => format!("7bit\r\n {coding}"),
            _ => coding.to_string(),
        };
        let kind = self.odd_one(
            "application/octet-stream",
            &[
                "application/x-msdownload; name=\"a(b).exe\"",
                "text/plain",
                "",
                "image/png",
                "octet",
                "/",
                "application/octet-stream; name=\"x",
                "message/external-body",
                "message/partial",
            ],
        );
        let mut fields = self.typed(kind);
        fields += &self.line_between();
        let field = self.field("Content-Transfer-Encoding", &declared);
        if self.odd() {
            let other = self.pick(&["7bit", "base64", "quoted-printable", "8bit", "x-uuencode", "", "unknown"]);
            let other = self.field("Content-Transfer-Encoding", other);
            fields += &if self.number(2) == 0 { format!("{field}{other}") } else { format!("{other}{field}") };
        } else {
            fields += &field;
        }
        if !self.odd() {
            let disposition = self.odd_one(
                "attachment; filename=a.exe",
                &["inline", "attachment; filename*=''a%2eexe", "attachment; filename=\"a", ""],
            );
            fields += &self.field("Content-Disposition", disposition);
        }
        if !body.ends_with('\n') && !self.odd() {
            body += "\r\n";
        }
        (fields.into_bytes(), body.into_bytes())
    }

    fn base64(&mut self, content: &[u8]) -> String {
        let split = match self.odd() {
            true => self.number(content.len() as u64) as usize,
            false => content.len(),
        };
        let mut text = base64(&content[..split]) + &base64(&content[split..]);
        if self.odd() {
            text = text.trim_end_matches('=').into();
        }
        if self.odd() {
            let junk = self.pick(&["!", " ", "\r\n", "\0", "=", "-", ".", "\u{e4}", "====", "\r\n\r\n", "_", "*"]);
            let at = self.number(text.len() as u64 + 1) as usize;
            text.insert_str(at, junk);
        }
        let width = if self.odd() { self.pick(&[1, 3, 4, 7, 61, 1000]) } else { 76 };
        let text: Vec<char> = text.chars().collect();
        let lines: Vec<String> = text.chunks(width).map(|line| line.iter().collect()).collect();
        let between = self.odd_one("\r\n", &["\n", " \r\n", "\r\n ", "\r", "\t"]);
        let before = self.odd_one("", &["\r\n", "junk line\r\n", "====\r\n", " "]);
        let behind = self.odd_one("\r\n", &["", "=\r\n", "\r\ntext behind it.\r\n", "====\r\n"]);
        format!("{before}{}{behind}", lines.join(between))
    }

    fn quoted_printable(&mut self, content: &[u8]) -> String {
        let mut text = String::new();
        let mut column = 0;
        let every = self.number(3) == 0;
        for &byte in content {
            let piece = match byte {
                b'=' | b'\r' | b'\n' => format!("={byte:02X}"),
                _ if every || self.number(6) == 0 => format!("={byte:02x}"),
                _ => char::from(byte).to_string(),
            };
            if column + piece.len() > 70 {
                text += self.odd_one("=\r\n", &["= \r\n", "=\n", "= \t \r\n", "=\r"]);
                column = 0;
            }
            if piece.len() == 3 && self.number(self.rarity * 3) == 0 {
                let at = self.pick(&[1, 2]);
                text += &format!("{}={}\r\n{}", &piece[..at], self.pick(&["", " "]), &piece[at..]);
            } else {
                text += &piece;
            }
            column += piece.len();
        }
        text + self.odd_one("=\r\n", &["\r\n", "", "=", "   \r\n"])
    }

    fn uuencode(&mut self, content: &[u8]) -> String {
        let begin = self.odd_one(
            "begin 644 a.exe\r\n",
            &[
                "begin 0644 a.exe\r\n",
                "text\r\nbegin 644 a.exe\r\n",
                "begin 644 \r\n",
                "begin 644 a b.exe \r\n",
                "BEGIN 644 a.exe\r\n",
                "begin  644 a.exe\r\n",
                "",
            ],
        );
        let lines: Vec<String> = content.chunks(45).map(uuencode_line).collect();
        let between = self.odd_one("\r\n", &["\n", " \r\n", "\r\n\r\n", "x\r\n"]);
        let end = self.odd_one("`\r\nend\r\n", &["end\r\n", "", " \r\nend\r\n", "`\r\n"]);
        format!("{begin}{}\r\n{end}", lines.join(between))
    }
}

fn percent(text: &str) -> String {
    text.bytes().map(|byte| format!("%{byte:02X}")).collect()
}

fn base64(bytes: &[u8]) -> String {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::new();
    for group in bytes.chunks(3) {
        let word = group.iter().enumerate().fold(0u32, |word, (at, &byte)| word | u32::from(byte) << (16 - 8 * at));
        for at in 0..4 {
            let digit = ALPHABET[(word >> (18 - 6 * at) & 63) as usize];
            text.push(if at <= group.len() { digit.into() } else { '=' });
        }
    }
    text
}

fn uuencode_line(bytes: &[u8]) -> String {
    let digit = |value: u32| char::from(if value & 63 == 0 { b'`' } else { b' ' + (value & 63) as u8 });
    let mut line = digit(bytes.len() as u32).to_string();
    for group in bytes.chunks(3) {
        let word = group.iter().enumerate().fold(0u32, |word, (at, &byte)| word | u32::from(byte) << (16 - 8 * at));
        line.extend((0..4).map(|at| digit(word >> (18 - 6 * at))));
    }
    line
}
