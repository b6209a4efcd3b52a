//! Numbers in the headers of PE and ELF files, and the modules' constants: the same values as in YARA, where it is installed.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;
use std::process::Command;
use std::sync::Arc;

use scan::{Builder, Scan};
use stream::{FileType, law};

const PE: [&str; 38] = [
    "pointer_to_symbol_table",
    "number_of_symbols",
    "size_of_optional_header",
    "opthdr_magic",
    "linker_version.major",
    "linker_version.minor",
    "size_of_code",
    "size_of_initialized_data",
    "size_of_uninitialized_data",
    "entry_point_raw",
    "base_of_code",
    "base_of_data",
    "section_alignment",
    "file_alignment",
    "os_version.major",
    "os_version.minor",
    "image_version.major",
    "image_version.minor",
    "subsystem_version.major",
    "subsystem_version.minor",
    "win32_version_value",
    "size_of_image",
    "size_of_headers",
    "dll_characteristics",
    "size_of_stack_reserve",
    "size_of_stack_commit",
    "size_of_heap_reserve",
    "size_of_heap_commit",
    "loader_flags",
    "number_of_rva_and_sizes",
    "number_of_imported_functions",
    "data_directories[0].virtual_address",
    "data_directories[1].size",
    "data_directories[pe.IMAGE_DIRECTORY_ENTRY_RESOURCE].virtual_address",
    "data_directories[15].size",
    "data_directories[16].size",
    "data_directories[-1].size",
    "data_directories[pe.number_of_rva_and_sizes].virtual_address",
];

const ELF: [&str; 28] = [
    "type",
    "machine",
    "entry_point",
    "number_of_sections",
    "number_of_segments",
    "sh_offset",
    "sh_entry_size",
    "ph_offset",
    "ph_entry_size",
    "sections[0].type",
    "sections[1].type",
    "sections[1].flags",
    "sections[1].address",
    "sections[2].offset",
    "sections[2].size",
    "sections[elf.number_of_sections - 1].offset",
    "sections[elf.number_of_sections].offset",
    "sections[-1].type",
    "segments[0].type",
    "segments[0].flags",
    "segments[0].offset",
    "segments[0].virtual_address",
    "segments[1].physical_address",
    "segments[1].file_size",
    "segments[2].memory_size",
    "segments[2].alignment",
    "segments[elf.number_of_segments].type",
    "segments[elf.number_of_segments - 1].flags",
];

/// A rule for each bit of a number, and one that it is there.
fn rules() -> String {
    let mut rules = "import \"pe\" import \"elf\"\n".to_owned();
    for (module, fields) in [("pe", &PE[..]), ("elf", &ELF)] {
        for (index, field) in fields.iter().enumerate() {
            writeln!(rules, "rule {module}_{index}_is {{ condition: defined {module}.{field} }}").unwrap();
            for bit in 0..64 {
                writeln!(rules, "rule {module}_{index}_{bit} {{ condition: {module}.{field} & (1 << {bit}) != 0 }}")
                    .unwrap();
            }
        }
    }
    for (index, name) in [".text", ".shstrtab", ".interp", "", ".te"].into_iter().enumerate() {
        for section in 0..32 {
            let field = format!("elf.sections[{section}].name");
            writeln!(
                rules,
                "rule name_{index}_{section} {{ condition: {field} == \"{name}\" or {field} endswith \"b\" }}"
            )
            .unwrap();
        }
    }
    rules
}

/// An ELF file of 32 bits in the other byte order, which is a program.
fn program() -> Vec<u8> {
    let mut file = vec![0; 0x400];
    file[..7].copy_from_slice(b"\x7fELF\x01\x02\x01");
    let mut put = |at: usize, value: u32, length: usize| {
        file[at..at + length].copy_from_slice(&value.to_be_bytes()[4 - length..]);
    };
    for (at, value) in [(16, 2), (18, 8), (40, 52), (42, 32), (44, 1), (46, 40), (48, 3)] {
        put(at, value, 2);
    }
    for (at, value) in [(20, 1), (24, 0x1_0123), (28, 52), (32, 0x200)] {
        put(at, value, 4);
    }
    // Sections: none, code, and their names, whose place lies behind the file in the last byte.
    for (section, fields) in [(1, [1, 1, 6, 0x1_0100, 0x100, 0x80]), (2, [7, 3, 0, 0, 0x300, 0x20])] {
        for (field, value) in fields.into_iter().enumerate() {
            put(0x200 + section * 40 + field * 4, value, 4);
        }
    }
    put(50, 2, 2);
    for (at, value) in [(0x301, 0x2e74_6578), (0x305, 0x7400_2e73), (0x309, 0x7472_7462)] {
        put(at, value, 4);
    }
    for (at, value) in [(0, 1), (4, 0x100), (8, 0x1_0000), (12, 0x1_0000), (16, 0x200), (20, 0x200), (24, 5)] {
        put(52 + at, value, 4);
    }
    file
}

#[test]
fn numbers_in_headers_are_those_of_yara() {
    let made_up = crate::peer::pe::made_up();
    let mut wide = made_up.clone();
    wide[0x98..0x9a].copy_from_slice(&0x20bu16.to_le_bytes());
    wide[0x98 + 108..0x98 + 112].copy_from_slice(&7u32.to_le_bytes());
    wide[0x98 + 96..0x98 + 104].copy_from_slice(&0x1234_5678_9abcu64.to_le_bytes());
    let mut many = made_up.clone();
    many[0x98 + 92..0x98 + 96].copy_from_slice(&99u32.to_le_bytes());
    let own = fs::read("/bin/true").unwrap_or_default();
    let mut library = program();
    library[17] = 3;
    let files = [made_up.clone(), wide, many, made_up[..0x500].to_vec(), own, program(), library, b"text".to_vec()];
    let text = rules();
    let mut builder = Builder::new();
    builder.add("t.yar", text.as_bytes()).unwrap();
    let database = builder.build();
    assert_eq!(database.census().refused, []);
    let database = Arc::new(database);
    let folder = crate::peer::scratch("yara-headers");
    fs::write(folder.join("t.yar"), &text).unwrap();
    for (number, bytes) in files.iter().enumerate() {
        let file_type = match bytes.as_slice() {
            [b'M', ..] => FileType::Pe,
            [0x7f, ..] => FileType::Elf,
            _ => FileType::Binary,
        };
        let told = crate::peer::names(&law::tell(Scan::new(database.clone(), file_type, None), bytes));
        let ours: BTreeSet<&str> =
            told.iter().map(|name| name.trim_start_matches("YARA.").trim_end_matches(".UNOFFICIAL")).collect();
        assert_eq!(ours.contains("pe_0_is"), number < 4, "{number}");
        assert_eq!(ours.contains("elf_0_is"), (4..7).contains(&number) && !bytes.is_empty(), "{number}");
        let file = folder.join("file");
        fs::write(&file, bytes).unwrap();
        let Ok(output) = Command::new("yara").arg("-w").arg(folder.join("t.yar")).arg(&file).output() else {
            return eprintln!("skipped: YARA is not installed");
        };
        let theirs = String::from_utf8_lossy(&output.stdout).into_owned();
        let theirs: BTreeSet<&str> = theirs.lines().filter_map(|line| line.split(' ').next()).collect();
        let other: Vec<_> = ours.symmetric_difference(&theirs).collect();
        assert!(other.is_empty(), "file {number}: {other:?}");
    }
    fs::remove_dir_all(&folder).expect("the scratch folder goes");
}
