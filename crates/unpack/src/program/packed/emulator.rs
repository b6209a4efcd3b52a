//! Windows executables packed by any packer: their stub runs in an emulated processor, and the resulting image is
//! emitted.
//!
//! ```text
//! lay the image out in memory, and give each imported function an address
//! run the stub; it unpacks the image, asks for the addresses of the program's imports, and jumps to the program
//! at the program's own first call of the system, or once nothing is unpacked any more: the image is the program
//! ```
//! The entry of the program is the last jump into a section other than the stub's that had been written before. The
//! image is emitted as an executable with the sections of the image. Nothing of it runs on the machine: the emulated
//! one has no files, no network and no other threads, and its time stands still.
//!
//! Bounds: the image and the heap together, `spool_bytes_max`; instructions in proportion to that, the image and the
//! file, [`TURN_STEPS`] of them a turn, and far fewer while nothing is written. A run that ends at a bound is judged
//! like any other.
//!
//! Left out: the gaps of the emulated processor and system (see there), libraries that are walked by hand, 64-bit
//! programs, tables of imports, which are not restored.

mod memory;
mod processor;
mod system;

use std::ops::Range;

use super::source::Whole;
use super::{Turn, Unpacked, Unpacker};
use crate::frame::codec::{le16, le32};
use crate::program::executable::head::{Head, SECTION_BYTES};
use memory::{HEAP_AT, Memory, STACK_AT, STACK_BYTES, SYSTEM_AT};
use processor::{EAX, EBX, ESP, Fault, Processor};
use system::{HANDLED, System, THREAD};

/// Instructions of a run: for each byte that may be kept, and beyond [`IDLE_MAX`] for each byte of the image and of the file.
const STEPS_FOR_KEPT: u64 = 4;
const STEPS_FOR_IMAGE: u64 = 256;
const STEPS_FOR_FILE: u64 = 1024;
/// Instructions of a turn, about a millisecond.
const TURN_STEPS: u32 = 64 << 10;
/// Cost of a call of the system and of a fault, in instructions.
const CALL_STEPS: u32 = 256;
/// Instructions that a stub may go on for without writing [`IDLE_BYTES`] anew, at most; less where less may be kept.
const IDLE_MAX: u64 = 4 << 20;
const IDLE_FOR_KEPT: u64 = 8;
/// The same once the program's entry is known.
const IDLE_BEHIND_ENTRY: u64 = 1 << 20;
const IDLE_BYTES: usize = 1 << 10;
/// Bytes of the file that are loaded in one turn, and of the image that are emitted.
const PIECE_BYTES: usize = 1 << 20;
/// Bytes that have to be unpacked for it to be worth a file.
const WRITTEN_MIN: usize = 512;
/// Faults that handlers of the stub may take over.
const FAULTS_MAX: u32 = 1024;
const HEADERS_MAX: usize = 4096;
const OPTIONAL_AT: usize = 24;
/// How the executable that is made is aligned.
const ALIGNMENT: usize = 512;
const IS_WRITABLE: u32 = 0x8000_0000;

/// A run of a stub.
pub(super) struct Emulator {
    /// Addresses of the sections, with their bytes of the file.
    sections: Vec<Loaded>,
    base: u32,
    next_section: usize,
    /// How much of the section has been loaded.
    loaded: usize,
    /// How much of the file has been seen.
    file_bytes: u64,
    steps_max: u64,
    idle_max: u64,
    /// The section, and how much of it has been put into the executable that is made, once one is.
    making: Option<(usize, usize)>,
    machine: Option<Machine>,
    imports_at: u32,
    entry: u32,
    resources: [u8; 8],
}

struct Loaded {
    image: Range<usize>,
    file: Range<u64>,
}

struct Machine {
    memory: Memory,
    processor: Processor,
    system: System,
    /// The part of the image that is being executed.
    here: Range<u32>,
    stub: Range<u32>,
    steps: u64,
    /// The program's entry as far as it is known, and the step when it was reached.
    entry: Option<(u32, u64)>,
    /// The step since which less than [`IDLE_BYTES`] have been written, and the number written by then.
    idle: (u64, usize),
    faults: u32,
}

/// Result of a part of a run.
#[derive(PartialEq)]
enum Ran {
    On,
    /// The stub has gone as far as it can be followed.
    Stopped,
}

/// Whether the entry of an executable looks like a stub's: in code that changes itself, in the headers, or at the place that
/// its first instruction loads.
pub(super) fn is_candidate(head: &[u8]) -> bool {
    const PE32: u16 = 0x10b;
    const I386: u16 = 0x14c;
    let Some(read) = Head::read(head) else { return false };
    if le16(head, read.at + 4) != I386 || le16(head, read.at + OPTIONAL_AT) != PE32 || read.entry == 0 {
        return false;
    }
    let table = read.end - SECTION_BYTES * read.sections.len();
    let flags = |index: usize| le32(head, table + SECTION_BYTES * index + 36);
    let Some(first) = read.sections.first() else { return false };
    let within = read.sections.iter().position(|section| {
        let bytes = u64::from(section.memory_bytes).max(section.file.end - section.file.start);
        u64::from(read.entry.wrapping_sub(section.address)) < bytes
    });
    match within {
        None => read.entry < first.address,
        Some(index) => {
            flags(index) & IS_WRITABLE != 0 || (0..read.sections.len()).any(|index| is_petite(head, table, index))
        }
    }
}

/// Petite leaves its sections read-only, and unlocks them itself; the last has its name.
fn is_petite(head: &[u8], table: usize, index: usize) -> bool {
    let name = head.get(table + SECTION_BYTES * index..).unwrap_or_default();
    name.starts_with(b"petite") || name.starts_with(b".petite")
}

impl Emulator {
    pub fn find(head: &Head, file: &Whole, bytes_max: usize) -> Option<Emulator> {
        const PAGE: usize = 4096;
        /// Section data begin at whole sectors, whatever the table says.
        const SECTOR: u64 = 512;
        if !is_candidate(file.head) {
            return None;
        }
        let optional = file.head.get(head.at + OPTIONAL_AT..)?;
        let bytes = le32(optional, 56) as usize;
        let headers = (le32(optional, 60) as usize).min(HEADERS_MAX);
        let mut sections = vec![Loaded { image: 0..headers, file: 0..headers as u64 }];
        let mut end = bytes;
        for section in &head.sections {
            let start = section.address as usize;
            let count = (section.memory_bytes as usize).max((section.file.end - section.file.start) as usize);
            let from = section.file.start / SECTOR * SECTOR;
            let stored = section.file.end.checked_sub(section.file.start)?;
            let stored = stored.next_multiple_of(SECTOR);
            let in_memory = match section.memory_bytes {
                0 => stored,
                bytes => stored.min(u64::from(bytes).next_multiple_of(PAGE as u64)),
            };
            sections.push(Loaded { image: start..start.checked_add(count)?, file: from..from.checked_add(in_memory)? });
            end = end.max(start.checked_add(count)?);
        }
        let end = end.checked_next_multiple_of(PAGE)?;
        let fits =
            end <= bytes_max && head.base.checked_add(u32::try_from(end).ok()?).is_some_and(|end| end < SYSTEM_AT);
        let resources = file.bytes((head.at + OPTIONAL_AT + 96 + 16) as u64);
        fits.then(|| Emulator {
            sections,
            base: head.base,
            next_section: 0,
            loaded: 0,
            file_bytes: 0,
            steps_max: (bytes_max as u64 * STEPS_FOR_KEPT).min(IDLE_MAX + end as u64 * STEPS_FOR_IMAGE),
            idle_max: (bytes_max as u64 / IDLE_FOR_KEPT).min(IDLE_MAX),
            making: None,
            machine: Some(Machine::new(Memory::new(head.base, vec![0; end], headers, bytes_max - end), head.entry)),
            imports_at: le32(optional, 96 + 8),
            entry: head.entry,
            resources,
        })
    }

    /// Loads one more piece of a section; whether there was one.
    fn load(&mut self, file: &Whole, machine: &mut Machine, unpacked: &mut Unpacked) -> bool {
        let Some(section) = self.sections.get(self.next_section) else { return false };
        let stored = usize::try_from(section.file.end - section.file.start).unwrap_or(usize::MAX);
        let count = stored.saturating_sub(self.loaded).min(PIECE_BYTES);
        let target =
            machine.memory.image.get_mut(section.image.start.saturating_add(self.loaded)..).unwrap_or_default();
        let count = count.min(target.len());
        let read = file.read(section.file.start.saturating_add(self.loaded as u64), &mut target[..count]);
        unpacked.work += read;
        self.loaded += read;
        if read > 0 {
            self.file_bytes = self.file_bytes.max(section.file.start.saturating_add(self.loaded as u64));
        }
        if read == PIECE_BYTES {
            return true;
        }
        (self.next_section, self.loaded) = (self.next_section + 1, 0);
        if self.next_section == self.sections.len() {
            machine.import(self.imports_at);
            machine.stub = self.section_of(self.entry);
        }
        true
    }

    /// The addresses of the section with this one in it.
    fn section_of(&self, place: u32) -> Range<u32> {
        let within = self.sections[1..].iter().find(|section| section.image.contains(&(place as usize)));
        let image = within.map_or(0..self.sections.get(1).map_or(HEADERS_MAX, |first| first.image.start), |section| {
            section.image.clone()
        });
        let address = |at: usize| self.base.saturating_add(u32::try_from(at).unwrap_or(u32::MAX));
        address(image.start)..address(image.end)
    }

    fn run(&self, machine: &mut Machine) -> Ran {
        let mut steps = 0;
        while steps < TURN_STEPS {
            steps += 1;
            let ip = machine.processor.ip;
            if !machine.here.contains(&ip) {
                steps += self.sections.len() as u32;
                match self.moved(machine, ip) {
                    Some(Ran::Stopped) => return Ran::Stopped,
                    Some(Ran::On) => {
                        steps += CALL_STEPS;
                        continue;
                    }
                    None => {}
                }
            }
            if let Err(fault) = machine.processor.step(&mut machine.memory) {
                steps += CALL_STEPS;
                let at = if fault == Fault::SingleStep { machine.processor.ip } else { ip };
                if !machine.fault(fault, at) {
                    return Ran::Stopped;
                }
            }
            steps += std::mem::take(&mut machine.processor.rounds);
        }
        machine.steps += u64::from(steps);
        self.judge(machine)
    }

    /// Whether it is worth going on.
    fn judge(&self, machine: &mut Machine) -> Ran {
        let done = machine.memory.bytes_done();
        if done >= machine.idle.1 + IDLE_BYTES {
            machine.idle = (machine.steps, done);
        }
        let idle_for = machine.steps - machine.idle.0;
        let reached = machine.entry.map(|(_, at)| machine.steps.saturating_sub(at).min(idle_for));
        let steps_max = self.steps_max.min(IDLE_MAX + self.file_bytes.saturating_mul(STEPS_FOR_FILE));
        let is_over = machine.steps > steps_max || idle_for > self.idle_max;
        if is_over || reached.is_some_and(|steps| steps > IDLE_BEHIND_ENTRY) { Ran::Stopped } else { Ran::On }
    }

    /// The processor is elsewhere: in another section, in the system, or on the heap. Something if no instruction is to be done.
    fn moved(&self, machine: &mut Machine, ip: u32) -> Option<Ran> {
        if ip == HANDLED {
            return Some(if machine.handled() { Ran::On } else { Ran::Stopped });
        }
        if ip >= SYSTEM_AT {
            let is_known = machine.system.call(&mut machine.processor, &mut machine.memory);
            return Some(if is_known { Ran::On } else { Ran::Stopped });
        }
        let place = ip.wrapping_sub(self.base);
        if place as usize >= machine.memory.image.len() {
            machine.here = if ip >= HEAP_AT { HEAP_AT..SYSTEM_AT } else { 0..0 };
            return None;
        }
        machine.here = self.section_of(place);
        if machine.here != machine.stub && machine.memory.is_written(ip) {
            machine.entry = Some((place, machine.steps));
        }
        None
    }

    /// The headers of the image as an executable, with room for the image behind them.
    fn headers(&self, machine: &Machine) -> Vec<u8> {
        const PE_AT: usize = 0x40;
        const OPTIONAL_BYTES: usize = 0xe0;
        const EXECUTABLE_32: u16 = 0x10f;
        const CODE_AND_DATA: u32 = 0xe000_0060;
        let image = &machine.memory.image;
        let sections = &self.sections[1..];
        let table = PE_AT + OPTIONAL_AT + OPTIONAL_BYTES;
        let headers = (table + SECTION_BYTES * sections.len()).next_multiple_of(ALIGNMENT);
        let mut made = vec![0; headers];
        let mut put = |at: usize, bytes: &[u8]| made[at..at + bytes.len()].copy_from_slice(bytes);
        put(0, b"MZ");
        put(0x3c, &(PE_AT as u32).to_le_bytes());
        put(PE_AT, b"PE\0\0");
        put(PE_AT + 4, &0x14cu16.to_le_bytes());
        put(PE_AT + 6, &(sections.len() as u16).to_le_bytes());
        put(PE_AT + 20, &(OPTIONAL_BYTES as u16).to_le_bytes());
        put(PE_AT + 22, &EXECUTABLE_32.to_le_bytes());
        let optional = PE_AT + OPTIONAL_AT;
        put(optional, &0x10bu16.to_le_bytes());
        let entry = machine.entry.map_or(self.entry, |(entry, _)| entry);
        let words = [(16, entry), (28, self.base), (32, 4096), (36, ALIGNMENT as u32), (40, 4), (48, 4)];
        let sizes = [(56, image.len() as u32), (60, headers as u32), (68, 2), (92, 16)];
        for (at, value) in words.into_iter().chain(sizes) {
            put(optional + at, &value.to_le_bytes());
        }
        put(optional + 96 + 16, &self.resources);
        let mut at = headers;
        for (index, section) in sections.iter().enumerate() {
            let bytes = section.image.len();
            let header = table + SECTION_BYTES * index;
            put(header, format!(".s{index:02}").as_bytes());
            let stored = bytes.next_multiple_of(ALIGNMENT);
            for (field, value) in [(8, bytes), (12, section.image.start), (16, stored), (20, at)] {
                put(header + field, &(value as u32).to_le_bytes());
            }
            put(header + 36, &CODE_AND_DATA.to_le_bytes());
            at += stored;
        }
        made.reserve_exact(at - headers);
        made
    }

    /// Puts a piece of the image behind the headers, from the given place of the given section on.
    fn make(&mut self, (index, at): (usize, usize), machine: &Machine, unpacked: &mut Unpacked) -> Turn {
        let Some(section) = self.sections.get(index) else { return Turn::Done };
        let image = machine.memory.image.get(section.image.clone()).unwrap_or_default();
        let end = image.len().min(at + PIECE_BYTES);
        unpacked.bytes.extend_from_slice(&image[at..end]);
        self.making = Some((index, end));
        if end == image.len() {
            unpacked.bytes.resize(unpacked.bytes.len().next_multiple_of(ALIGNMENT), 0);
            self.making = Some((index + 1, 0));
        }
        Turn::More
    }

    fn advance(&mut self, file: &Whole, machine: &mut Machine, unpacked: &mut Unpacked) -> Turn {
        if self.load(file, machine, unpacked) {
            return Turn::More;
        }
        if let Some(next) = self.making {
            return self.make(next, machine, unpacked);
        }
        unpacked.work += TURN_STEPS as usize / 2;
        if self.run(machine) == Ran::On {
            return Turn::More;
        }
        let bytes = self.sections.iter().map(|section| section.image.len() + ALIGNMENT).fold(0, usize::saturating_add);
        if machine.memory.bytes_written() < WRITTEN_MIN || bytes > unpacked.bytes_max {
            return Turn::Not;
        }
        unpacked.bytes = self.headers(machine);
        self.making = Some((1, 0));
        Turn::More
    }
}

impl Unpacker for Emulator {
    fn is_last(&self) -> bool {
        true
    }

    fn turn(&mut self, file: &Whole, unpacked: &mut Unpacked) -> Turn {
        let Some(mut machine) = self.machine.take() else { return Turn::Not };
        let turn = self.advance(file, &mut machine, unpacked);
        if matches!(turn, Turn::More) {
            self.machine = Some(machine);
        }
        turn
    }
}

impl Machine {
    fn new(mut memory: Memory, entry: u32) -> Machine {
        System::prepare(&mut memory);
        let mut processor = Processor::new(memory.base.wrapping_add(entry), THREAD);
        processor.general[ESP] = STACK_AT + STACK_BYTES - 4096;
        processor.general[EAX] = processor.ip;
        processor.general[EBX] = SYSTEM_AT + 0xe000;
        // Where the program would return to: no function that is known.
        let _ = processor.push(SYSTEM_AT + 0xc000, &mut memory);
        Machine {
            memory,
            processor,
            system: System::default(),
            here: 0..0,
            stub: 0..0,
            steps: 0,
            entry: None,
            idle: (0, 0),
            faults: 0,
        }
    }

    /// Puts the addresses of imported functions where the table of imports wants them.
    fn import(&mut self, table: u32) {
        const LIBRARIES_MAX: u32 = 64;
        const FUNCTIONS_MAX: u32 = 512;
        const DESCRIPTOR_BYTES: u32 = 20;
        const BY_ORDINAL: u32 = 0x8000_0000;
        let base = self.memory.base;
        let word = |memory: &Memory, place: u32| memory.read(base.wrapping_add(place)).map_or(0, u32::from_le_bytes);
        for library in 0..LIBRARIES_MAX {
            let descriptor = table.wrapping_add(DESCRIPTOR_BYTES * library);
            let [names, name, addresses] = [0, 12, 16].map(|at| word(&self.memory, descriptor.wrapping_add(at)));
            if table == 0 || name == 0 || addresses == 0 || self.system.is_full() {
                return;
            }
            for index in 0..FUNCTIONS_MAX {
                let at = addresses.wrapping_add(4 * index);
                let mut told = word(&self.memory, if names == 0 { at } else { names.wrapping_add(4 * index) });
                if told == 0 && index == 0 {
                    told = word(&self.memory, at);
                }
                if told == 0 {
                    break;
                }
                let name = match told & BY_ORDINAL {
                    0 => self.memory.text(base.wrapping_add(told).wrapping_add(2)),
                    _ => format!("#{}", told & 0xffff).into_bytes(),
                };
                let address = self.system.function(name, &mut self.memory);
                self.memory.write(base.wrapping_add(at), address.to_le_bytes());
            }
        }
    }

    /// Hands a fault to the stub's own handler, if there is one.
    fn fault(&mut self, fault: Fault, ip: u32) -> bool {
        const RECORD_BYTES: u32 = 80;
        const CONTEXT_BYTES: u32 = 0x2cc;
        let (code, address): (u32, u32) = match fault {
            Fault::Memory(at) => (0xc000_0005, at),
            Fault::Divide => (0xc000_0094, 0),
            Fault::Trap => (0x8000_0003, 0),
            Fault::SingleStep => (0x8000_0004, 0),
            Fault::Unknown => return false,
        };
        self.faults += 1;
        let frame = self.memory.read(THREAD).map_or(u32::MAX, u32::from_le_bytes);
        let Some(handler) = self.memory.read(frame.wrapping_add(4)).map(u32::from_le_bytes) else { return false };
        if self.faults > FAULTS_MAX {
            return false;
        }
        let stack = self.processor.general[ESP];
        let context = stack.wrapping_sub(CONTEXT_BYTES + 256) & !15;
        let record = context.wrapping_sub(RECORD_BYTES);
        let general = self.processor.general;
        let flags = self.processor.flags();
        let mut words = vec![(0, 0x1_0007u32), (0xb8, ip), (0xc0, flags)];
        words.iter_mut().for_each(|(at, _)| *at = context.wrapping_add(*at));
        words.extend(CONTEXT_REGISTERS.iter().zip(general).map(|(at, value)| (context.wrapping_add(*at), value)));
        words.extend([(0, code), (12, ip), (16, 2), (24, address)].map(|(at, value)| (record.wrapping_add(at), value)));
        // The system's own frame follows the handler's arguments, as the innermost frame.
        let told = [HANDLED, record, frame, context, 0, frame, HANDLED];
        let top = record.wrapping_sub(4 * told.len() as u32);
        words.push((THREAD, top.wrapping_add(20)));
        words.extend((0..).map(|index: u32| top.wrapping_add(4 * index)).zip(told));
        let is_there = words.into_iter().all(|(at, value)| self.memory.write(at, value.to_le_bytes()));
        self.processor.general[ESP] = top;
        self.processor.ip = handler;
        is_there
    }

    /// The handler has returned: the processor goes on as it says.
    fn handled(&mut self) -> bool {
        if self.processor.general[EAX] != 0 {
            return false;
        }
        let context = self.memory.read(self.processor.general[ESP].wrapping_add(8)).map_or(0, u32::from_le_bytes);
        let innermost: [u8; 4] = self.memory.read(THREAD).unwrap_or_default();
        let outer: [u8; 4] = self.memory.read(u32::from_le_bytes(innermost)).unwrap_or(innermost);
        self.memory.write(THREAD, outer);
        let word = |at: u32| self.memory.read(context.wrapping_add(at)).map_or(0, u32::from_le_bytes);
        let (ip, flags) = (word(0xb8), word(0xc0));
        let general = CONTEXT_REGISTERS.map(word);
        self.processor.general = general;
        self.processor.ip = ip;
        self.processor.set_flags(flags);
        true
    }
}

/// Offsets of the registers in a handler's context, by their numbers.
const CONTEXT_REGISTERS: [u32; 8] = [0xb0, 0xac, 0xa8, 0xa4, 0xc4, 0xb4, 0xa0, 0x9c];
