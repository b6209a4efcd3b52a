//! Ports of devices.

use core::arch::asm;

/// A width that a port has.
pub trait Width: Copy {
    /// Reads a port.
    ///
    /// # Safety
    /// Reading must have no effect on memory.
    unsafe fn read(port: u16) -> Self;
    /// Writes to a port.
    ///
    /// # Safety
    /// As what the device does on it.
    unsafe fn write(port: u16, value: Self);
}

macro_rules! width {
    ($type:ty, $register:tt) => {
        impl Width for $type {
            unsafe fn read(port: u16) -> $type {
                let value;
                // SAFETY: the caller's.
                unsafe {
                    asm!(concat!("in ", $register, ", dx"), in("dx") port, out($register) value, options(nomem, nostack))
                };
                value
            }

            unsafe fn write(port: u16, value: $type) {
                // SAFETY: the caller's.
                unsafe {
                    asm!(concat!("out dx, ", $register), in("dx") port, in($register) value, options(nostack))
                };
            }
        }
    };
}

width!(u8, "al");
width!(u32, "eax");

/// Reads a port.
///
/// # Safety
/// As [`Width::read`].
pub unsafe fn read<W: Width>(port: u16) -> W {
    // SAFETY: the caller's.
    unsafe { W::read(port) }
}

/// Writes to a port.
///
/// # Safety
/// As [`Width::write`].
pub unsafe fn write<W: Width>(port: u16, value: W) {
    // SAFETY: the caller's.
    unsafe { W::write(port, value) }
}
