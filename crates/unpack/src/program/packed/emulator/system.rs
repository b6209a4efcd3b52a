//! The few functions of Windows that stubs call: memory, and the addresses of the program's imports.
//!
//! Every function that a stub asks for has an address of its own, up to [`FUNCTIONS_MAX`]; those that are not in [`CALLS`] end
//! the run when they are called, which is how a program's own first call is seen.

use std::collections::BTreeMap;

use super::memory::{Memory, SYSTEM_AT};
use super::processor::{EAX, ESP, Processor};

const FUNCTION_BYTES: u32 = 16;
const FUNCTIONS_MAX: u32 = 2048;
const LIBRARY: u32 = SYSTEM_AT + FUNCTIONS_MAX * FUNCTION_BYTES;
/// The thread's and the process's blocks, as old systems place them.
pub(super) const THREAD: u32 = SYSTEM_AT + 0xf000;
const PROCESS: u32 = SYSTEM_AT + 0xe000;
/// Where a handler of faults returns to.
pub(super) const HANDLED: u32 = SYSTEM_AT + 0xd000;

/// Effect of a function.
#[derive(Clone, Copy)]
enum Call {
    /// Memory, of as many bytes as this argument says.
    Allocate(u32),
    /// Memory, where the first argument has it if that is in the image.
    AllocateAt,
    Protect,
    Library,
    Address,
    Value(u32),
}

/// Functions by name: their number of arguments, and their effect.
const CALLS: &[(&[u8], u32, Call)] = &[
    (b"GetModuleHandleA", 1, Call::Library),
    (b"GetModuleHandleW", 1, Call::Library),
    (b"GetProcAddress", 2, Call::Address),
    (b"GetProcessHeap", 0, Call::Value(1)),
    (b"GetTickCount", 0, Call::Value(1 << 20)),
    (b"GlobalAlloc", 2, Call::Allocate(1)),
    (b"GlobalFree", 1, Call::Value(0)),
    (b"HeapAlloc", 3, Call::Allocate(2)),
    (b"HeapFree", 3, Call::Value(1)),
    (b"IsDebuggerPresent", 0, Call::Value(0)),
    (b"LoadLibraryA", 1, Call::Library),
    (b"LoadLibraryExA", 3, Call::Library),
    (b"LoadLibraryW", 1, Call::Library),
    (b"LocalAlloc", 2, Call::Allocate(1)),
    (b"LocalFree", 1, Call::Value(0)),
    (b"VirtualAlloc", 4, Call::AllocateAt),
    (b"VirtualFree", 3, Call::Value(1)),
    (b"VirtualProtect", 4, Call::Protect),
];

/// The functions that were asked for.
#[derive(Default)]
pub(super) struct System {
    by_name: BTreeMap<Vec<u8>, u32>,
    calls: Vec<Option<(u32, Call)>>,
}

impl System {
    /// Sets up the blocks of the thread and the process.
    pub fn prepare(memory: &mut Memory) {
        const NO_HANDLER: u32 = u32::MAX;
        for (at, value) in
            [(THREAD, NO_HANDLER), (THREAD + 0x18, THREAD), (THREAD + 0x30, PROCESS), (PROCESS + 8, memory.base)]
        {
            memory.write(at, value.to_le_bytes());
        }
    }

    /// Whether every further function gets the address of the last.
    pub fn is_full(&self) -> bool {
        self.calls.len() >= FUNCTIONS_MAX as usize
    }

    /// The address of a function.
    pub fn function(&mut self, name: Vec<u8>, memory: &mut Memory) -> u32 {
        // Typical first bytes of a system function.
        const BEGIN: [u8; 8] = *b"\x8b\xff\x55\x8b\xec\x5d\xc3\x90";
        let at = match self.by_name.get(&name) {
            Some(at) => *at,
            None if self.is_full() => FUNCTIONS_MAX - 1,
            None => {
                let call = CALLS.iter().find(|(known, ..)| *known == name);
                self.calls.push(call.map(|(_, arguments, call)| (*arguments, *call)));
                let at = self.calls.len() as u32 - 1;
                self.by_name.insert(name, at);
                at
            }
        };
        let address = SYSTEM_AT + at * FUNCTION_BYTES;
        memory.write(address, BEGIN);
        address
    }

    /// Executes the function at the processor's place, and returns from it. Returns whether it is known.
    pub fn call(&mut self, processor: &mut Processor, memory: &mut Memory) -> bool {
        let at = processor.ip.wrapping_sub(SYSTEM_AT);
        if !at.is_multiple_of(FUNCTION_BYTES) {
            return false;
        }
        let Some(Some((arguments, call))) = self.calls.get((at / FUNCTION_BYTES) as usize).copied() else {
            return false;
        };
        let stack = processor.general[ESP];
        let word = |index: u32| memory.read(stack.wrapping_add(4 * index)).map(u32::from_le_bytes);
        let Some(back) = word(0) else { return false };
        let told = [1, 2, 3, 4].map(|index| word(index).unwrap_or(0));
        let value = match call {
            Call::Allocate(index) => memory.allocate(told[index as usize & 3]).unwrap_or(0),
            Call::AllocateAt => {
                let is_in_image = ((told[0].wrapping_sub(memory.base)) as usize) < memory.image.len();
                if is_in_image { told[0] } else { memory.allocate(told[1]).unwrap_or(0) }
            }
            Call::Protect => {
                const READ_WRITE_EXECUTE: u32 = 0x40;
                /// Read and write, a copy of one's own, and both of code.
                const IS_WRITABLE: u32 = 0x4 | 0x8 | 0x40 | 0x80;
                memory.protect(told[0], told[2] & IS_WRITABLE != 0);
                memory.write(told[3], READ_WRITE_EXECUTE.to_le_bytes());
                1
            }
            Call::Library => {
                if told[0] == 0 {
                    memory.base
                } else {
                    LIBRARY
                }
            }
            Call::Address => {
                let name = match told[1] {
                    ordinal @ ..=0xffff => format!("#{ordinal}").into_bytes(),
                    at => memory.text(at),
                };
                if name.is_empty() { 0 } else { self.function(name, memory) }
            }
            Call::Value(value) => value,
        };
        processor.general[EAX] = value;
        processor.general[ESP] = stack.wrapping_add(4 + 4 * arguments);
        processor.ip = back;
        true
    }
}
