//! An executable for Windows that is made up.

use super::Random;

/// Texts of its version information.
pub const VERSION: [(&str, &str); 4] = [
    ("CompanyName", "Some Makers Ltd"),
    ("FileVersion", "4.80.0.1"),
    ("InternalName", "made.exe"),
    ("LegalCopyright", "Nobody 2026"),
];

/// A PE file of four sections, one of them at an odd offset and one empty; what they hold is noise.
pub fn made_up() -> Vec<u8> {
    let mut random = Random(99);
    let mut file: Vec<u8> = (0..0x3000).map(|_| random.next() as u8).collect();
    file[..0x400].fill(0);
    file[..2].copy_from_slice(b"MZ");
    file[0x3c] = 0x80;
    file[0x80..0x84].copy_from_slice(b"PE\0\0");
    let mut put = |at: usize, value: u32, length: usize| {
        file[at..at + length].copy_from_slice(&value.to_le_bytes()[..length]);
    };
    for (at, value) in [(0x84, 0x14c), (0x86, 4), (0x94, 0xe0), (0x96, 0x102), (0x98, 0x10b)] {
        put(at, value, 2);
    }
    let optional = [
        (16, 0x2034),
        (20, 0x1000),
        (28, 0x40_0000),
        (32, 0x1000),
        (36, 0x200),
        (40, 4),
        (48, 4),
        (56, 0x6000),
        (60, 0x400),
        (92, 16),
    ];
    for (at, value) in optional {
        put(0x98 + at, value, 4);
    }
    put(0x98 + 68, 3, 2);
    let sections = [
        (0x1000, 0x800, 0x400, 0x800),
        (0x2000, 0x1000, 0xc10, 0x1000),
        (0x3000, 0x1000, 0, 0),
        (0x4000, 0x1200, 0x1e00, 0x1200),
    ];
    for (index, (address, memory, raw, length)) in sections.into_iter().enumerate() {
        let at = 0x98 + 0xe0 + index * 40;
        for (field, value) in [(0, 0x7865_742e), (8, memory), (12, address), (16, length), (20, raw), (36, 0x6000_0020)]
        {
            put(at + field, value, 4);
        }
    }
    import(&mut file);
    export(&mut file);
    resources(&mut file);
    file
}

/// A list of imports at the start of the last section: two functions by name, and two by number.
fn import(file: &mut [u8]) {
    let mut put = |address: usize, bytes: &[u8]| put(file, address, bytes);
    put(0x4000, &[0; 0x200]);
    put(0x4000, &words(&[0x4080, 0, 0, 0x4100, 0x40a0]));
    put(0x4014, &words(&[0, 0, 0, 0x4110, 0x40c0]));
    for table in [0x4080, 0x40a0] {
        put(table, &words(&[0x4120, 0x4140, 0]));
    }
    put(0x40c0, &words(&[0x8000_0001, 0x8000_ea60, 0]));
    for (at, name) in [(0x4100, "KERNEL32.dll"), (0x4110, "WS2_32.dll"), (0x4122, "ExitProcess"), (0x4142, "Sleep")] {
        put(at, name.as_bytes());
    }
    file[0x98 + 104..0x98 + 112].copy_from_slice(&words(&[0x4000, 60]));
}

fn words(all: &[u32]) -> Vec<u8> {
    all.iter().flat_map(|word| word.to_le_bytes()).collect()
}

/// Puts bytes at an address of the last section.
fn put(file: &mut [u8], address: usize, bytes: &[u8]) {
    let at = address - 0x4000 + 0x1e00;
    file[at..at + bytes.len()].copy_from_slice(bytes);
}

/// A table of exports: three functions, two of them with names.
fn export(file: &mut [u8]) {
    put(file, 0x4200, &[0; 0x100]);
    put(file, 0x4200, &words(&[0, 0, 0, 0x4280, 1, 3, 2, 0x4240, 0x4250, 0x4260]));
    put(file, 0x4240, &words(&[0x2040, 0x2050, 0x2060]));
    put(file, 0x4250, &words(&[0x42a0, 0x42b0]));
    put(file, 0x4260, &words(&[0x1_0000]));
    for (at, name) in [(0x4280, "made.dll"), (0x42a0, "DoWork"), (0x42b0, "PrintF")] {
        put(file, at, name.as_bytes());
    }
    file[0x98 + 96..0x98 + 104].copy_from_slice(&words(&[0x4200, 0x100]));
}

/// Resources: an empty directory of icons, and version information.
fn resources(file: &mut [u8]) {
    put(file, 0x4400, &[0; 0x600]);
    let directory = |entries: &[[u32; 2]]| {
        let mut bytes = words(&[0, 0, 0, (entries.len() as u32) << 16]);
        entries.iter().for_each(|entry| bytes.extend(words(entry)));
        bytes
    };
    put(file, 0x4400, &directory(&[[3, 0x8000_0080], [16, 0x8000_0020]]));
    put(file, 0x4420, &directory(&[[1, 0x8000_0040]]));
    put(file, 0x4440, &directory(&[[0x409, 0x60]]));
    let version = version();
    put(file, 0x4460, &words(&[0x4500, version.len() as u32, 0, 0]));
    put(file, 0x4500, &version);
    file[0x98 + 112..0x98 + 120].copy_from_slice(&words(&[0x4400, 0x600]));
}

fn version() -> Vec<u8> {
    let texts: Vec<u8> = VERSION.iter().fold(Vec::new(), |all, (name, value)| {
        let value: Vec<u8> = value.encode_utf16().chain([0]).flat_map(u16::to_le_bytes).collect();
        aligned(all, &block(name, value.len() / 2, 1, &value))
    });
    let language = block("040904b0", 0, 1, &texts);
    let kinds = block("StringFileInfo", 0, 1, &language);
    let mut fixed = words(&[0xfeef_04bd, 0x1_0000]);
    fixed.resize(52, 0);
    block("VS_VERSION_INFO", 52, 0, &aligned(fixed, &kinds))
}

/// A structure of the version information.
fn block(name: &str, value_length: usize, kind: u16, inside: &[u8]) -> Vec<u8> {
    let mut head = vec![0, 0];
    head.extend((value_length as u16).to_le_bytes());
    head.extend(kind.to_le_bytes());
    head.extend(name.encode_utf16().chain([0]).flat_map(u16::to_le_bytes));
    let mut all = aligned(head, inside);
    let length = all.len() as u16;
    all[..2].copy_from_slice(&length.to_le_bytes());
    all
}

/// Bytes behind others, at a multiple of four.
fn aligned(mut all: Vec<u8>, more: &[u8]) -> Vec<u8> {
    all.resize(all.len().next_multiple_of(4), 0);
    all.extend(more);
    all
}
