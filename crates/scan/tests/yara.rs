//! Rules of YARA, generated, over generated files: the same names as YARA where it is installed, and clamscan for what it
//! knows of them.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use crate::peer::{Random, hex};
use scan::{Aligned, Builder, Database, Scan};
use stream::law;
use stream::{Event, FileType, Fuel, Stage};

fn database(rules: &str) -> Arc<Database> {
    let mut builder = Builder::new();
    builder.add("t.yar", rules.as_bytes()).unwrap_or_else(|error| panic!("{error}"));
    let database = builder.build();
    assert_eq!(database.census().refused, [], "{rules}");
    Arc::new(database)
}

fn ours(database: &Arc<Database>, bytes: &[u8]) -> BTreeSet<String> {
    let told = crate::peer::names(&law::tell(Scan::new(database.clone(), file_type(bytes), None), bytes));
    told.iter().map(|name| name.trim_start_matches("YARA.").trim_end_matches(".UNOFFICIAL").to_owned()).collect()
}

fn file_type(bytes: &[u8]) -> FileType {
    match bytes {
        [b'M', b'Z', ..] => FileType::Pe,
        [0x7f, b'E', b'L', b'F', ..] => FileType::Elf,
        _ => FileType::Binary,
    }
}

/// Matches of YARA, if it is installed.
fn yara(rules: &Path, file: &Path) -> Option<BTreeSet<String>> {
    let output = Command::new("timeout").args(["60", "yara", "-w"]).arg(rules).arg(file).output().ok()?;
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.code() != Some(127) || errors.contains("No such file"), "{errors}");
    if output.status.code() == Some(127) {
        return None;
    }
    assert!(!errors.contains("error"), "{errors}");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    Some(text.lines().filter_map(|line| line.split(' ').next()).map(str::to_owned).collect())
}

/// A string: its definition.
fn string(random: &mut Random) -> String {
    let word = |random: &mut Random| String::from_utf8(random.word(3, 5)).expect("letters");
    match random.below(9) {
        0 | 1 => format!("\"{}\"", word(random)),
        2 => format!(
            "\"{}\" {}",
            word(random),
            random.one(&["nocase", "wide", "wide ascii", "fullword", "nocase fullword"])
        ),
        3 => format!("\"{}\" {}", word(random), random.one(&["xor", "xor(1-32)", "xor wide", "base64", "base64wide"])),
        4 => format!("{{ {} ?? {} }}", hex(&random.word(2, 3)), hex(&random.word(2, 3))),
        5 => {
            let jump = random.one(&["[1-3]", "[2]", "[0-40]", "[4-]", "[-]", "[150-400]"]);
            format!("{{ {} {jump} {} }}", hex(&random.word(2, 3)), hex(&random.word(2, 3)))
        }
        6 => format!("{{ {} ( 61 | 62 6? | ?3 63 ) {} }}", hex(&random.word(2, 2)), hex(&random.word(2, 2))),
        7 => {
            let middle = random.one(&["[ab]", ".", "c?", "(a|bc)", "[^a]{2,4}", "b*", "x*?"]);
            format!("/{}{middle}{}/{}", word(random), word(random), random.one(&["", "", "i", "s"]))
        }
        _ => {
            let middle = random.one(&[".*", "[a-c]{3,40}", "(ab|.c)+", ".{10,60}", "\\W+", "\\b.*\\b"]);
            format!("/{}{middle}{}/ {}", word(random), word(random), random.one(&["", "ascii", "fullword", "nocase"]))
        }
    }
}

fn number(random: &mut Random) -> String {
    match random.below(9) {
        0 => "filesize".to_owned(),
        1 => format!("#s{}", random.below(3)),
        2 => format!("@s{}[{}]", random.below(3), 1 + random.below(3)),
        3 => format!("uint16({})", random.below(20)),
        4 => format!("{}(filesize - {})", random.one(&["uint32be", "int8", "uint8", "int16"]), random.below(9)),
        5 => format!("!s{}", random.below(3)),
        6 => format!("({} + {} * 2)", random.below(9), random.below(9)),
        _ => format!("{}", random.below(200)),
    }
}

fn condition(random: &mut Random, depth: usize) -> String {
    if depth > 0 && random.below(3) > 0 {
        let (left, right) = (condition(random, depth - 1), condition(random, depth - 1));
        return match random.below(5) {
            0 => format!("not ({left})"),
            1 | 2 => format!("({left} or {right})"),
            _ => format!("({left} and {right})"),
        };
    }
    let sub = random.below(3);
    match random.below(11) {
        0 | 1 => format!("$s{sub}"),
        2 => format!("$s{sub} at {}", random.below(40)),
        3 => format!("$s{sub} in ({}..{})", random.below(60), 60 + random.below(300)),
        4 => format!("{} of them", random.one(&["all", "any", "1", "2", "none"])),
        5 => format!("any of ($s0, $s{sub})"),
        6 => format!("#s{sub} {} {}", random.one(&[">", "==", "<", ">="]), random.below(4)),
        7 => format!("for {} of them : ( $ in (0..{}) )", random.one(&["all", "any", "2"]), random.below(300)),
        8 => format!("for any i in (1..#s{sub}) : ( @s{sub}[i] > {} )", random.below(200)),
        9 => format!("for all i in (1, 2, 3) : ( uint8(i * {}) < 128 )", random.below(50)),
        _ => {
            let operator = random.one(&["<", ">", "==", "!=", "<=", ">="]);
            format!("{} {operator} {}", number(random), number(random))
        }
    }
}

fn rules(random: &mut Random) -> String {
    let mut text = String::new();
    for number in 0..60 {
        let kind = if number % 10 == 9 { "private " } else { "" };
        let _ = writeln!(text, "{kind}rule R{number} : tag {{ meta: a = \"x\" b = true\n strings:");
        for sub in 0..3 {
            let _ = writeln!(text, "  $s{sub} = {}", string(random));
        }
        let other = number / 2;
        let refers = if number % 7 == 6 { format!(" and (R{other} or $s1)") } else { String::new() };
        let used = "(#s0 + #s1 + #s2 >= 0)";
        let _ = writeln!(text, " condition: {used} and {}{refers} }}", condition(random, 2));
    }
    text
}

fn file(random: &mut Random) -> Vec<u8> {
    let mut bytes = random.word(3, 60);
    for _ in 0..random.below(60) {
        let word = random.word(3, 12);
        match random.below(8) {
            0 => bytes.extend(word.to_ascii_uppercase()),
            1 => bytes.extend(word.iter().flat_map(|&byte| [byte, 0])),
            2 => bytes.extend(b" "),
            3 => bytes.extend(b".\n"),
            4 => bytes.extend(word.iter().map(|byte| byte ^ 7)),
            5 => bytes.extend(b"YWJjYWJiYWNj"),
            _ => bytes.extend(word),
        }
    }
    bytes
}

#[test]
fn the_names_are_those_of_yara() {
    let folder = crate::peer::scratch("yara");
    let rounds = std::env::var("SLUICE_ROUNDS").ok().and_then(|rounds| rounds.parse().ok()).unwrap_or(12);
    let (mut matches, mut wrong) = (0, String::new());
    for round in 0..rounds {
        let mut random = Random(round);
        let text = rules(&mut random);
        let (rules, path) = (folder.join("t.yar"), folder.join("file"));
        fs::write(&rules, &text).expect("rules");
        let database = database(&text);
        for _ in 0..6 {
            let bytes = file(&mut random);
            fs::write(&path, &bytes).expect("a file");
            let Some(theirs) = yara(&rules, &path) else {
                eprintln!("skipped: YARA is not installed");
                return;
            };
            let ours = ours(&database, &bytes);
            matches += theirs.len();
            for name in theirs.symmetric_difference(&ours) {
                let whose = if ours.contains(name) { "only ours" } else { "only theirs" };
                let at = text.find(&format!("rule {name} ")).unwrap_or(0);
                let rule = text[at..].lines().take(6).collect::<Vec<_>>().join("\n");
                let _ =
                    writeln!(wrong, "{whose} in round {round}: {rule}\n over {:?}\n", String::from_utf8_lossy(&bytes));
            }
        }
    }
    fs::remove_dir_all(&folder).expect("the scratch folder goes");
    assert!(wrong.is_empty(), "{wrong}");
    assert!(matches > 100, "the generator hits too little: {matches}");
}

/// A condition over what an object is called, or over the head of a PE file.
fn about(random: &mut Random) -> String {
    let fields = ["filename", "filepath", "extension", "filetype", "pe.version_info[\"CompanyName\"]"];
    let field = random.one(&fields).to_owned();
    let word = random.one(&["made", "MADE.exe", ".exe", "folder/sub", "EXE", "Makers", "e", "Some Makers Ltd", ""]);
    match random.below(34) {
        0 => format!("{field} == \"{word}\""),
        1 => format!("{field} != \"{word}\""),
        2 => format!("{field} contains \"{word}\""),
        3 => format!("{field} icontains \"{word}\""),
        4 => format!("{field} {} \"{word}\"", random.one(&["startswith", "istartswith", "endswith", "iendswith"])),
        5 => format!("{field} iequals \"{word}\""),
        6 => format!("{field} matches /{}/{}", random.one(&["^mad", "a.e$", "M[a-e]{2}", "x"]), random.one(&["", "i"])),
        7 => format!("pe.{}()", random.one(&["is_dll", "is_32bit", "is_64bit"])),
        8 => format!("pe.is_pe == {}", random.below(2)),
        9 => format!("pe.machine == pe.MACHINE_{}", random.one(&["I386", "AMD64"])),
        10 => format!("pe.characteristics & pe.{}", random.one(&["DLL", "EXECUTABLE_IMAGE", "MACHINE_32BIT"])),
        11 => format!("pe.subsystem == {}", random.below(4)),
        12 => format!("pe.sections[{}].name {} \".ex\"", random.below(5), random.one(&["startswith", "=="])),
        13 => {
            let name = random.one(&["virtual_address", "virtual_size", "raw_data_size", "characteristics"]);
            format!("pe.sections[{}].{name} {} {}", random.below(5), random.one(&["==", "<"]), random.below(8) * 0x800)
        }
        14 => {
            let name = random.one(&["Sleep", "ExitProcess", "sleep", "Other"]);
            format!("pe.imports(\"{}\", \"{name}\")", random.one(&["kernel32.dll", "KERNEL32.dll", "other.dll"]))
        }
        15 => format!("pe.imports(\"{}\")", random.one(&["kernel32.dll", "ws2_32.dll", "user32.dll"])),
        16 => format!("pe.exports(\"{}\")", random.one(&["DoWork", "PrintF", "dowork", "Other"])),
        17 => format!("pe.number_of_exports {} {}", random.one(&["==", ">"]), random.below(5)),
        18 => format!("pe.imphash() == \"{}\"", random.one(&[IMPORTS, "0123456789abcdef0123456789abcdef"])),
        19 => format!("pe.timestamp < {}", random.below(2)),
        20 => format!("pe.image_base == {}", random.one(&["0x400000", "0"])),
        21 => format!("pe.overlay.{} {} {}", random.one(&["offset", "size"]), random.one(&["==", ">"]), random.one(&["0", "0x3000"])),
        22 => format!("pe.section_index(\"{}\") == {}", random.one(&[".tex", ".text", "x", ""]), random.below(3)),
        23 => format!("pe.section_index({}) == {}", random.one(&["pe.entry_point", "0x410", "0xc10", "0", "0x1e00"]), random.below(4)),
        24 => format!("pe.number_of_imports {} {}", random.one(&["==", ">"]), random.below(4)),
        25 => format!("pe.number_of_resources {} {}", random.one(&["==", ">"]), random.below(4)),
        26 => {
            let what = random.one(&["s.name contains \"ex\"", "s.raw_data_size == 0", "s.raw_data_offset == 0xc10", "s.virtual_address > 0x3000"]);
            format!("for {} s in pe.sections : ( {what} )", random.one(&["any", "2", "3"]))
        }
        27 => {
            let what = ["pe.imphash()", "pe.entry_point", "pe.overlay.offset", "pe.section_index(\"x\")", "pe.sections[1].name", "pe.sections[9].name", "pe.number_of_imports", "pe.number_of_resources", "uint8(filesize)", "pe.version_info[\"CompanyName\"]"];
            format!("{} {}", random.one(&["defined", "not defined"]), random.one(&what))
        }
        28 => format!("not pe.{} == {}", random.one(&["entry_point", "machine", "number_of_sections", "overlay.size"]), random.below(3)),
        29 => format!("pe.sections[{}].raw_data_offset {} {}", random.below(5), random.one(&["==", "<"]), random.one(&["0xc10", "0x400"])),
        30 => format!("pe.number_of_sections {} {}", random.one(&["==", ">", "<"]), random.below(5)),
        31 => format!("for any i in (1, pe.number_of_sections, 3) : ( i == {} )", random.below(5)),
        32 => format!("pe.{}", random.one(&["is_pe", "is_32bit()", "entry_point"])),
        _ => "for any i in (0..pe.number_of_sections) : (pe.sections[i].name == \".ex\" or pe.sections[i].name endswith \"x\")".to_owned(),
    }
}

/// The digest of what the executable that is made up imports.
const IMPORTS: &str = "8f5f4b9e00558c18ec3bcf26533c2e18";

#[test]
fn what_is_said_of_names_and_heads_is_what_yara_says() {
    let folder = crate::peer::scratch("yara-heads");
    let (rules, path) = (folder.join("t.yar"), folder.join("made.exe"));
    let (mut matches, mut wrong) = (0, String::new());
    let made = crate::peer::pe::made_up();
    // Cut off, damaged, and with something behind it.
    let cut = made[..0x98 + 0xe0 + 100].to_vec();
    let (mut none, mut many) = (made.clone(), made.clone());
    (none[0x86], many[0x86]) = (0, 97);
    let longer = [made.as_slice(), &[7; 300]].concat();
    let elf = fs::read("/bin/true").unwrap_or_default();
    let files = [made, b"abc made EXE".to_vec(), cut, none, many, longer, elf];
    for (round, bytes) in files.into_iter().enumerate() {
        let mut random = Random(round as u64);
        let mut text = "import \"pe\"\n".to_owned();
        for number in 0..400 {
            let (one, other) = (about(&mut random), about(&mut random));
            let operator = random.one(&["and", "or", "or not"]);
            let _ = writeln!(text, "rule R{number} {{ condition: ({one}) {operator} ({other}) }}");
        }
        fs::write(&rules, &text).expect("rules");
        fs::write(&path, &bytes).expect("a file");
        let external = ["filename=Made.exe", "filepath=a/folder/sub", "extension=.exe"];
        let type_name = match file_type(&bytes) {
            FileType::Pe => "filetype=EXE",
            FileType::Elf => "filetype=ELF",
            _ => "filetype=BINARY",
        };
        let mut command = Command::new("yara");
        external.iter().chain([&type_name]).for_each(|one| {
            command.args(["-d", one]);
        });
        let Ok(output) = command.arg("-w").arg(&rules).arg(&path).output() else {
            eprintln!("skipped: YARA is not installed");
            return;
        };
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let theirs = String::from_utf8_lossy(&output.stdout).into_owned();
        let theirs: BTreeSet<&str> = theirs.lines().filter_map(|line| line.split(' ').next()).collect();
        let scan = Scan::new(database(&text), file_type(&bytes), None).named(&["a"], "folder/sub/Made.exe");
        let told = crate::peer::names(&law::tell(scan, &bytes));
        let ours: BTreeSet<&str> =
            told.iter().map(|name| name.trim_start_matches("YARA.").trim_end_matches(".UNOFFICIAL")).collect();
        matches += theirs.len();
        for name in theirs.symmetric_difference(&ours) {
            let whose = if ours.contains(name) { "only ours" } else { "only theirs" };
            let rule = text.lines().find(|line| line.starts_with(&format!("rule {name} ")));
            let _ = writeln!(wrong, "{whose} of file {round}: {rule:?}");
        }
    }
    fs::remove_dir_all(&folder).expect("the scratch folder goes");
    assert!(wrong.is_empty(), "{wrong}");
    assert!(matches > 100, "the generator hits too little: {matches}");
}

#[test]
fn boundaries_of_wide_expressions_and_strings_without_a_hint_are_those_of_yara() {
    let folder = crate::peer::scratch("yara-wide");
    let (rules, path) = (folder.join("t.yar"), folder.join("file"));
    let mut text = String::new();
    let expressions = [
        r"/\bfoo\b/",
        r"/\bfoo/",
        r"/foo\b/",
        r"/foo\B/",
        r"/\Bfoo/",
        r"/^foo/",
        r"/foo$/",
        r"/foo\b\W+/",
        r"/\b-foo/",
        r"/foo-\b/",
        r"/\bfo{1,2}[a-z]{0,40}\b/",
        r"/[fg]o./",
        r"/o\W/",
        r"/.o/",
    ];
    for (number, expression) in expressions.iter().enumerate() {
        for modifiers in ["wide", "ascii", "wide ascii", "wide fullword", "wide nocase"] {
            // Without two fixed bytes in a row YARA 4.2 misses the wide form of some that are meant in both.
            if modifiers == "wide ascii" && !expression.contains("foo") {
                continue;
            }
            let name = format!("E{number}_{}", modifiers.replace(' ', "_"));
            let _ = writeln!(text, "rule {name} {{ strings: $a = {expression} {modifiers} condition: $a }}");
            let _ = writeln!(
                text,
                "rule C{name} {{ strings: $a = {expression} {modifiers} condition: #a == 2 or @a[1] == 1 }}"
            );
        }
    }
    for (number, body) in
        ["{ 6? 6? }", "{ 66 [0-3] 2d }", "{ 6? ?? 6f }", "{ ( 66 | 2d ) [1-] 6f }", "{ ?6 ?f }"].iter().enumerate()
    {
        let _ = writeln!(text, "rule H{number} {{ strings: $a = {body} condition: $a }}");
        let _ = writeln!(text, "rule N{number} {{ strings: $a = {body} condition: not $a and #a == 0 }}");
        let _ = writeln!(text, "rule O{number} {{ strings: $a = {body} $b = \"foo\" condition: 1 of them }}");
    }
    fs::write(&rules, &text).expect("rules");
    let database = database(&text);
    let wide = |text: &str| text.bytes().flat_map(|byte| [byte, 0]).collect::<Vec<u8>>();
    let mut files: Vec<Vec<u8>> = vec![Vec::new()];
    for word in ["foo", " foo ", "afooa", "-foo-", "a-foo-a", "foofoo", "FOO foo", "foo foo"] {
        files.extend([wide(word), word.as_bytes().to_vec()]);
        for (before, after) in
            [("xyz", "xyz"), ("a", ""), ("a\x01", "a\x01"), ("x", "\0"), ("z\x01", "\x01\x01"), ("\x01\x01", "a")]
        {
            files.push([before.as_bytes(), &wide(word), after.as_bytes()].concat());
        }
    }
    let mut wrong = String::new();
    for bytes in &files {
        fs::write(&path, bytes).expect("a file");
        let Some(theirs) = yara(&rules, &path) else {
            eprintln!("skipped: YARA is not installed");
            return;
        };
        for name in theirs.symmetric_difference(&ours(&database, bytes)) {
            let whose = if theirs.contains(name) { "only theirs" } else { "only ours" };
            let rule = text.lines().find(|line| line.starts_with(&format!("rule {name} ")));
            let _ = writeln!(wrong, "{whose}: {rule:?} over {:?}", String::from_utf8_lossy(bytes));
        }
    }
    fs::remove_dir_all(&folder).expect("the scratch folder goes");
    assert!(wrong.is_empty(), "{wrong}");
}

#[test]
fn a_start_counts_once_and_has_the_length_that_the_quantifiers_want() {
    let wanted = [
        ("/ab.{0,4}c/", "ababcc", "#a == 2 and !a[1] == 6 and !a[2] == 4"),
        ("/ab.{0,4}?c/", "ababcc", "#a == 2 and !a[1] == 5 and !a[2] == 3"),
        ("/AB.{0,4}c/ nocase", "ababcc", "#a == 2"),
        ("/ab.?.?.?c/", "ababcc", "#a == 2"),
        ("/MZ.{0,6}PE/s", "MZMZ\nPEPE", "#a == 2 and @a[2] == 2"),
        ("/a{2,4}/", "aaaaa", "#a == 4 and !a == 4 and !a[4] == 2"),
        ("/a{,3}b?/", "aaaa", "#a == 4 and !a == 3"),
        ("/a?/", "xaax", "#a == 2"),
        ("/b{0,2}/ fullword", "bbb bb", "#a == 1 and @a == 4"),
        ("/ab.{0,4}c/ fullword", "abc cd", "#a == 0"),
        ("{ 61 62 [0-4] 63 }", "ababcc", "#a == 2 and !a == 5"),
        ("\"b\" fullword nocase", "abB B", "#a == 1 and @a == 4"),
    ];
    for (string, content, condition) in wanted {
        let rule = |condition: &str| format!("rule A {{ strings: $a = {string} condition: {condition} }}");
        assert_eq!(ours(&database(&rule(condition)), content.as_bytes()).len(), 1, "{string}: {condition}");
    }
}

#[test]
fn fractions_are_equal_within_the_tolerance_of_yara() {
    for (condition, holds) in [
        ("0.1 + 0.2 == 0.3", true),
        ("0.1 + 0.2 != 0.3", false),
        ("0.1 + 0.2 <= 0.3", false),
        ("1.1 * 3 == 3.3", false),
        ("1.1 * 3 != 3.3", true),
        ("math.mean(0, 3) * 0.1 == 9.8", true),
        ("1.0 \\ 0.0 == 1.0 \\ 0.0", false),
        ("1.0 \\ 0.0 != 1.0 \\ 0.0", false),
    ] {
        let rule = format!("import \"math\"\nrule A {{ condition: {condition} }}");
        assert_eq!(!ours(&database(&rule), b"abc").is_empty(), holds, "{condition}");
    }
}

/// The right values are those of yara 4.2.3.
#[test]
fn fractions_are_compared_with_undefined_numbers_as_yara_does() {
    let undefined = ["!a[1]", "uint8(1000)", "0.5 + !a[1]", "uint8(1000) * 1.5", "-math.entropy(1000, 1)"];
    for number in undefined {
        for (operator, is_false) in
            [("<", true), ("<=", false), (">", false), (">=", false), ("==", false), ("!=", false)]
        {
            for comparison in [format!("{number} {operator} 0.5"), format!("0.5 {operator} {number}")] {
                for (condition, holds) in [
                    (comparison.clone(), false),
                    (format!("not ({comparison})"), is_false),
                    (format!("defined ({comparison})"), is_false),
                ] {
                    let rule = "import \"math\"\nrule A { strings: $a = \"zz\" condition: ";
                    let rule = format!("{rule}({condition}) or #a < 0 }}");
                    assert_eq!(!ours(&database(&rule), b"abcabc").is_empty(), holds, "{condition}");
                }
            }
        }
    }
    for (condition, holds) in [
        ("not (0.0 \\ 0.0 != 1.0)", true),
        ("not (0.0 \\ 0.0 >= 1.0)", true),
        ("not math.in_range(0.5 + uint8(1000), 0.0, 1.0)", false),
        ("for any i in (1, 2) : (not (0.5 * i < uint8(1000)))", true),
    ] {
        let rule = format!("import \"math\"\nrule A {{ condition: {condition} }}");
        assert_eq!(!ours(&database(&rule), b"abcabc").is_empty(), holds, "{condition}");
    }
}

#[test]
fn conditions_that_yara_refuses_are_refused() {
    for condition in [
        "1 \\ 0 == 1",
        "filesize % 0 == 1",
        "1 < 2 == true",
        "(1 < 2) + 1 == 2",
        "true == 1",
        "-true == 1",
        "9223372036854775807 + 1 > 0",
        "-9223372036854775807 - 5 < 0",
        "0x8000000000000000 == 0",
        "1 << -1 == 0",
        "for 50% i in (1..4) : (i > 1)",
    ] {
        let mut builder = Builder::new();
        builder.add("t.yar", format!("rule A {{ condition: {condition} }}").as_bytes()).expect("rules");
        assert_eq!(builder.build().census().refused.len(), 1, "{condition}");
    }
}

#[test]
fn rules_come_back_from_a_file() {
    let mut random = Random(7);
    let database = database(&rules(&mut random));
    let mut bytes = Vec::new();
    database.store("", &mut bytes).expect("memory takes it");
    let loaded = Arc::new(Database::load(Arc::new(Aligned::new(&bytes))).expect("what was stored"));
    assert_eq!(loaded.census(), database.census());
    let files: Vec<Vec<u8>> = (0..9).map(|_| file(&mut random)).collect();
    let found: Vec<_> = files.iter().map(|file| ours(&database, file)).collect();
    assert!(found.iter().any(|names| names.len() > 3));
    assert_eq!(files.iter().map(|file| ours(&loaded, file)).collect::<Vec<_>>(), found);
}

#[test]
fn the_law_holds() {
    for round in 100..104 {
        let mut random = Random(round);
        let database = database(&rules(&mut random));
        let bytes = file(&mut random);
        law::holds(|| Scan::new(database.clone(), FileType::Binary, None), &bytes);
    }
}

/// Clamscan reads rules by a parser of YARA 2 and keeps some of its bounds; what it takes says the same.
#[test]
fn the_names_are_those_of_clamscan() {
    if crate::peer::is_missing() {
        return;
    }
    let folder = crate::peer::scratch("yara-clamscan");
    let mut text = String::new();
    for (number, (strings, condition)) in [
        ("$a = \"abcabc\"", "$a"),
        ("$a = \"ABCABC\" nocase $b = \"cab\" wide", "$a and $b"),
        ("$a = \"abcab\" $b = \"nothing\"", "any of them"),
        ("$a = \"abcab\" $b = \"nothing\"", "all of them"),
        ("$a = { 61 62 ?? 61 } $b = { 6361 [2-4] 6263 }", "$a and $b"),
        ("$a = \"abc\"", "#a > 2"),
        ("$a = \"abc\"", "$a at 0"),
        ("$a = \"cab\"", "$a in (1..4)"),
        ("$a = \"abc\"", "$a and filesize < 20"),
        ("$a = \"abc\"", "$a and filesize > 20 and uint16(0) == 0x6261"),
        ("$a = \"abc\" $b = \"bca\"", "@b[1] > @a[1]"),
        ("$a = /ab[a-c]{3,9}z/", "$a"),
    ]
    .into_iter()
    .enumerate()
    {
        let _ = writeln!(text, "rule C{number} {{ strings: {strings} condition: {condition} }}");
    }
    let contents: [&[u8]; 3] = [b"abcabcabc c\0a\0b\0 abcaaz", b"abcabxxx", b"xxabcabcxxcabbcaabcabc....abcc"];
    let paths = contents.iter().zip(0..).map(|(bytes, number)| {
        let path = folder.join(format!("{number}.bin"));
        fs::write(&path, bytes).expect("a file");
        (FileType::Binary, path)
    });
    let paths: Vec<_> = paths.collect();
    let mut wrong = String::new();
    let matches = crate::peer::compare(&folder, &[("t.yar", text)], &paths, &[], &mut wrong);
    fs::remove_dir_all(&folder).expect("the scratch folder goes");
    assert!(wrong.is_empty(), "{wrong}");
    assert!(matches > 10, "{matches}");
}

#[test]
fn what_is_not_supported_is_refused_by_name_and_the_rest_is_read() {
    let text = "import \"pe\"\ninclude \"x.yar\"\nrule A { strings: $a = \"}abc\" condition: $a }\n\
                rule B { condition: cuckoo.sync.mutex(/x/) }\nrule C { condition: A and B }\nrule D { condition: x }\n\
                rule E { strings: $a = /[a-z]+.*/ condition: $a }\nrule F { strings: $a = \"ab condition: $a }\n\
                rule G { condition: A and not false }";
    let mut builder = Builder::new();
    let loaded = builder.add("t.yar", text.as_bytes()).expect("rules");
    assert_eq!((loaded.rules, loaded.left_out), (3, 5));
    let database = builder.build();
    let refused: Vec<String> =
        database.census().refused.iter().map(|one| format!("{}: {}", one.name, one.reason)).collect();
    assert_eq!(
        refused,
        [
            "YARA.include.UNOFFICIAL: other files are not included",
            "YARA.B.UNOFFICIAL: the module cuckoo",
            "YARA.C.UNOFFICIAL: it speaks of the rule B, which is refused",
            "YARA.D.UNOFFICIAL: the external variable x",
            "YARA.F.UNOFFICIAL: $a: a text without an end",
        ]
    );
    assert_eq!(ours(&Arc::new(database), b"x}abc"), ["A", "E", "G"].map(str::to_owned).into());
}

/// Questions to the module `math`, with numbers between which its answers lie.
fn measures(random: &mut Random) -> Vec<(String, Vec<String>)> {
    let mut range = || match random.below(8) {
        0 => "0, filesize".to_owned(),
        1 => format!("filesize - {}, {}", random.below(90), random.below(200)),
        2 => format!("{}, 0", random.below(9)),
        3 => format!("{} * 100 - 50, 9", random.below(5)),
        4 => "\"some text, of a rule\"".to_owned(),
        _ => format!("{}, {}", random.below(3_000), random.below(3_000)),
    };
    let grid = |from: i32, to: i32, parts: i32| -> Vec<String> {
        (from * parts..=to * parts).map(|step| format!("{:.4}", f64::from(step) / f64::from(parts))).collect()
    };
    let mut all = Vec::new();
    for _ in 0..12 {
        let at = range();
        all.push((format!("math.entropy({at})"), grid(0, 8, 8)));
        all.push((format!("math.mean({at})"), grid(0, 255, 1)));
        all.push((format!("math.deviation({at}, math.mean({at}))"), grid(0, 128, 1)));
        all.push((format!("math.deviation({at}, math.MEAN_BYTES)"), grid(0, 128, 1)));
        all.push((format!("math.serial_correlation({at})"), grid(-1, 1, 64)));
        all.push((format!("math.monte_carlo_pi({at})"), grid(0, 1, 64)));
        if !at.starts_with('"') {
            all.push((
                format!("math.count({}, {at})", random_byte(&at)),
                (0..40).map(|count| count.to_string()).collect(),
            ));
            all.push((format!("math.percentage({}, {at})", random_byte(&at)), grid(0, 1, 128)));
            all.push((format!("math.mode({at})"), (0..=255).map(|byte| byte.to_string()).collect()));
        }
    }
    all.push(("math.mode()".into(), (0..=255).map(|byte| byte.to_string()).collect()));
    all.push(("math.count(0x41)".into(), (0..40).map(|count| count.to_string()).collect()));
    all.push(("math.percentage(0x41)".into(), grid(0, 1, 128)));
    all
}

fn random_byte(of: &str) -> usize {
    0x40 + of.len() % 7
}

#[test]
fn what_is_measured_is_what_yara_measures() {
    let folder = crate::peer::scratch("yara-math");
    let path = folder.join("t.yar");
    let mut random = Random(77);
    let mut text = "import \"math\"\n".to_owned();
    let mut conditions: Vec<String> = Vec::new();
    for (measure, numbers) in measures(&mut random) {
        conditions.push(format!("defined {measure}"));
        conditions
            .extend(numbers.iter().step_by(1 + numbers.len() / 40).map(|number| format!("{measure} >= {number}")));
    }
    for condition in [
        "math.in_range(math.entropy(0, filesize), 1.5, 4.0)",
        "math.in_range(math.mean(0, filesize), 1.0, 98.5)",
        "math.min(filesize, 300) == 300",
        "math.max(-1, 5) == 5",
        "math.min(-1, 5) == 5",
        "math.abs(filesize - 500) < 400",
        "math.to_number(filesize > 100) + math.to_number(filesize > 1000) == 1",
        "not math.entropy(filesize, 5) > 1.0",
        "math.mean(0, filesize) * 2 - 1.5 > 100",
        "-math.mean(0, filesize) < -97.25",
        "math.mean(0, filesize) \\ 2.0 > 49 and 7.5 > 7",
        "math.entropy(0, 5) == math.entropy(0, 5)",
        "for any i in (0..9) : ( math.entropy(i * 100, 100) > 2.5 )",
        "math.entropy(uint8(0), uint8(1)) > 1.0",
    ] {
        conditions.push(condition.to_owned());
    }
    for (number, condition) in conditions.iter().enumerate() {
        let _ = writeln!(text, "rule M{number} {{ condition: {condition} }}");
    }
    fs::write(&path, &text).expect("rules");
    let database = database(&text);
    let mut files: Vec<Vec<u8>> = (0..20).map(|_| file(&mut random)).collect();
    files.push((0..3_000u32).map(|at| (at.wrapping_mul(2_654_435_761) >> 13) as u8).collect());
    files.extend([Vec::new(), b"A".to_vec(), vec![b'A'; 700], (0..=255).cycle().take(9_000).collect()]);
    let (mut wrong, mut held) = (String::new(), 0);
    for bytes in &files {
        let (file, ours) = (folder.join("file"), ours(&database, bytes));
        fs::write(&file, bytes).expect("a file");
        let Some(theirs) = yara(&path, &file) else { return };
        held += theirs.len();
        for name in ours.symmetric_difference(&theirs) {
            let condition = name[1..].parse::<usize>().ok().and_then(|number| conditions.get(number));
            let _ = writeln!(wrong, "{} bytes: {condition:?} is {}", bytes.len(), ours.contains(name));
        }
    }
    fs::remove_dir_all(&folder).expect("the scratch folder goes");
    assert!(wrong.is_empty(), "{}", wrong.lines().take(60).collect::<Vec<_>>().join("\n"));
    assert!(held > 10_000, "{held}");
}

#[test]
fn what_math_cannot_measure_is_refused_or_a_limit() {
    let refused = |condition: &str| {
        let mut builder = Builder::new();
        builder.add("t.yar", format!("import \"math\" rule A {{ condition: {condition} }}").as_bytes()).expect("rules");
        builder.build().census().refused.first().map(|one| one.reason.to_string())
    };
    for (condition, reason) in [
        ("math.to_string(5) == \"5\"", "math.to_string"),
        ("uint8(math.mean(0, 5)) == 1", "a number with a fraction where none can be"),
        ("math.mean(0, 5) & 1 == 1", "a number with a fraction where none can be"),
        ("math.entropy(0.5, 5) > 1", "a number with a fraction where none can be"),
        ("math.entropy(0 5) > 1", "\",\" is missing in the condition"),
    ] {
        assert_eq!(refused(condition).as_deref(), Some(reason), "{condition}");
    }
    // What is not kept, and what takes too long.
    let all = database("import \"math\" rule All { condition: math.entropy(0, filesize) < 1 and uint8(0) == 0x78 }");
    let early = database(
        "import \"math\" rule Early { condition: math.entropy(0, 4MB) < 1 and math.mean(filesize - 9, 99) == 120 }",
    );
    let often = database(
        "import \"math\" rule Often { condition: for all i in (0..60000) : ( math.entropy(i, filesize) < 1 ) }",
    );
    let names = |database: &Arc<Database>, length: usize| {
        let told = law::tell(Scan::new(database.clone(), FileType::Binary, None), &vec![b'x'; length]);
        crate::peer::names(&told).into_iter().collect::<Vec<_>>()
    };
    assert_eq!(names(&all, 5 << 20), ["Heuristics.Limits.Exceeded.Signatures"]);
    assert_eq!(names(&all, 4 << 20), ["YARA.All.UNOFFICIAL"]);
    assert_eq!(names(&early, 9 << 20), ["YARA.Early.UNOFFICIAL"]);
    assert_eq!(names(&often, 1 << 20), ["Heuristics.Limits.Exceeded.Signatures"]);
}

/// All of an object, kept.
struct Kept<'a>(&'a [u8]);

impl stream::ReadAt for Kept<'_> {
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> usize {
        let from = self.0.get(offset as usize..).unwrap_or(&[]);
        let length = from.len().min(buffer.len());
        buffer[..length].copy_from_slice(&from[..length]);
        length
    }
}

#[test]
fn rules_are_decided_in_turns() {
    let loops = (0..40).map(|number| {
        format!("rule L{number} {{ condition: for all i in (1..9000) : ( i + {number} > uint8(i % 50) - 300 ) and filesize < 5 }}\n")
    });
    // Neither has a hint, so both are run over all that is kept.
    let searches =
        (0..20).map(|number| format!("rule S{number} {{ strings: $a = /[^x]q.*{number}/ condition: $a }}\n"));
    let database = database(&loops.chain(searches).collect::<String>());
    let bytes = vec![b'x'; 3 << 20];
    let mut scan = Scan::new(database, FileType::Binary, None);
    let mut window = stream::Window::with_capacity(16);
    let mut taken = 0;
    while taken < bytes.len() {
        taken += scan.step(&bytes[taken..], &mut window, &mut Fuel::unlimited()).taken;
    }
    let mut turns = 0;
    loop {
        match scan.finish(&Kept(&bytes), &mut window, &mut Fuel::new(1)) {
            Event::End => break,
            Event::Idle => turns += 1,
            event => panic!("{event:?}"),
        }
    }
    // A turn for each loop, and one for some megabytes that are searched.
    assert!(turns > 49, "{turns}");
}

#[test]
fn what_is_not_kept_is_a_limit_where_it_matters() {
    let database = database(
        "rule Late { strings: $a = /needle.*hay/ condition: $a }\n\
         rule Far { condition: uint32(filesize \\ 2) == 0 and uint8(0) == 0x78 }",
    );
    let mut bytes = vec![b'x'; 9 << 20];
    let names = |bytes: &[u8]| {
        crate::peer::names(&law::tell(Scan::new(database.clone(), FileType::Binary, None), bytes))
            .into_iter()
            .collect::<Vec<_>>()
    };
    assert_eq!(names(&bytes), ["Heuristics.Limits.Exceeded.Signatures"]);
    bytes[5 << 20..][..12].copy_from_slice(b"needle1hay!!");
    assert_eq!(names(&bytes), ["Heuristics.Limits.Exceeded.Pcre", "Heuristics.Limits.Exceeded.Signatures"]);
}
