//! The machine: all that needs `unsafe`.
#![deny(clippy::undocumented_unsafe_blocks)]

mod boot;
pub mod clock;
mod fault;
pub mod frames;
mod functions;
pub mod interrupt;
mod memory;
mod paging;
pub mod pci;
mod port;
pub mod random;
pub mod serial;

pub use memory::Free;

/// Prints a line on the console.
macro_rules! say {
    ($($part:tt)*) => {{
        use core::fmt::Write as _;
        let _ = writeln!($crate::machine::serial::Serial, $($part)*);
    }};
}
pub(crate) use say;

/// Restarts the machine.
pub fn restart() -> ! {
    // SAFETY: port 0x64 is the keyboard controller's; this command pulls the reset line.
    unsafe { port::write(0x64, 0xfeu8) };
    // SAFETY: an empty table of interrupts and a fault: the processor resets itself where the controller has not.
    unsafe { core::arch::asm!("lidt [{}]", "ud2", in(reg) &[0u64; 2], options(noreturn)) }
}

#[panic_handler]
fn panicked(info: &core::panic::PanicInfo<'_>) -> ! {
    say!("{info}");
    restart()
}
