//! Interrupts: they end the processor's sleep and do nothing else. They are taken only while it sleeps.

use core::arch::{asm, naked_asm};

use super::port;

/// Interrupts of the two controllers.
pub const LINES: usize = 16;
/// Vector of the first, behind those of the faults.
const FIRST: u8 = 32;

/// Commands and masks of the controllers.
const MAIN: u16 = 0x20;
const SECOND: u16 = 0xa0;
/// The timer's interrupt, and the one that the second controller comes by.
const TIMER: u8 = 0;
const CASCADE: u8 = 2;
/// A hundredth of a second, in ticks of the timer.
const TICK: u16 = 11_932;

/// Lets the timer and the device with this line end the sleep.
pub fn start(line: u8) {
    let line = if usize::from(line) < LINES { line } else { TIMER };
    let masks = !(1u16 << TIMER | 1 << CASCADE | 1 << line);
    let ([main, second], [low, high]) = (masks.to_le_bytes(), TICK.to_le_bytes());
    // SAFETY: the controllers are told their vectors and who is heard, the timer how often it comes. No interrupt is taken before `sleep`.
    unsafe {
        for (controller, vector, wiring, mask) in
            [(MAIN, FIRST, 1 << CASCADE, main), (SECOND, FIRST + 8, CASCADE, second)]
        {
            port::write(controller, 0x11u8);
            for byte in [vector, wiring, 1, mask] {
                port::write(controller + 1, byte);
            }
        }
        port::write(0x43, 0x34u8);
        port::write(0x40, low);
        port::write(0x40, high);
    }
}

/// Sleeps until something comes, at most until the next tick. What has come before is not slept through.
pub fn sleep() {
    // SAFETY: the handler changes no register, and returns with interrupts off.
    unsafe { asm!("sti", "hlt", "cli") };
}

/// The handler of all: says that it was seen, and lets nothing else come after it.
#[unsafe(naked)]
pub extern "C" fn taken() {
    naked_asm!(
        "push rax",
        "mov al, 0x20",
        "out 0xa0, al",
        "out 0x20, al",
        "pop rax",
        "and dword ptr [rsp + 16], 0xfffffdff",
        "iretq",
    )
}
