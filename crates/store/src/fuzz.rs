//! Fuzz bodies.

use alloc::vec::Vec;

use crate::error::Error;
use crate::memory::Memory;
use crate::recovery::Options;
use crate::volume::Volume;

/// The largest volume that is tried.
const DEVICE_BYTES: usize = 8192 + 12 * (16 << 10);

/// Fuzz body: a device that begins with these bytes. Opening ends whatever they are, and an open volume can be read,
/// verified and written.
pub fn fuzz_open(data: &[u8]) {
    let mut bytes = data.get(..data.len().min(DEVICE_BYTES)).unwrap_or_default().to_vec();
    bytes.resize(DEVICE_BYTES, 0);
    for (read_only, salvage) in [(true, false), (false, true)] {
        let options = Options { read_only, salvage, ..Options::default() };
        let Ok(mut volume) = Volume::open(Memory::from_bytes(bytes.clone()), options) else { continue };
        let numbers: Vec<u64> = volume.state().messages().map(|(number, _)| number).take(100).collect();
        for number in numbers {
            // Stated sizes may be wrong; reads return the bytes that exist.
            let _ = volume.read(number, 0, &mut [0; 100]);
            let _ = volume.digest(number);
        }
        if read_only {
            continue;
        }
        match deliver(&mut volume) {
            Ok(()) => assert!(Volume::open(volume.abandon(), Options { salvage, ..options }).is_ok()),
            Err(Error::Full | Error::Refused(_) | Error::Damaged(_) | Error::Moved) => {}
            Err(error) => panic!("{error}"),
        }
    }
}

fn deliver(volume: &mut Volume<Memory>) -> Result<(), Error> {
    let mailboxes: Vec<u32> = volume.state().mailboxes().map(|(number, _)| number).take(3).collect();
    let mut append = volume.append(None)?;
    volume.write(&mut append, &[b'x'; 700])?;
    let sealed = volume.seal(append, b"digest", 1)?;
    let mut transaction = volume.transaction()?;
    for mailbox in mailboxes {
        transaction.deliver(&sealed, mailbox, &Default::default())?;
    }
    transaction.stage()?;
    volume.commit()
}
