//! The first serial port: the console.

use core::fmt;

use super::port;

const DATA: u16 = 0x3f8;
const LINE_STATUS: u16 = DATA + 5;
const HAS_INPUT: u8 = 1;
const MAY_SEND: u8 = 1 << 5;

/// The console.
pub struct Serial;

impl fmt::Write for Serial {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        for byte in text.bytes() {
            if byte == b'\n' {
                send(b'\r');
            }
            send(byte);
        }
        Ok(())
    }
}

fn send(byte: u8) {
    // A port that is not there reads as all ones; one that hangs is passed over.
    for _ in 0..100_000 {
        if status() & MAY_SEND != 0 {
            break;
        }
    }
    // SAFETY: the serial port sends it.
    unsafe { port::write(DATA, byte) };
}

fn status() -> u8 {
    // SAFETY: no effect.
    unsafe { port::read(LINE_STATUS) }
}

/// A byte that somebody has typed.
pub fn typed() -> Option<u8> {
    let status = status();
    // SAFETY: takes a byte out of the port.
    (status & HAS_INPUT != 0 && status != 0xff).then(|| unsafe { port::read(DATA) })
}
