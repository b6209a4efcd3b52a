//! The network device, a frame at a time: what has come is taken when there is time, what is sent is not waited for.

use alloc::boxed::Box;
use alloc::vec;
use alloc::vec::Vec;

use virtio_drivers::device::net::VirtIONetRaw;
use virtio_drivers::transport::pci::PciTransport;

use super::memory::Identity;

/// Frames at the device, each way.
const FRAMES: usize = 256;
/// Bytes of a buffer: a frame, with the header of virtio.
const BUFFER_BYTES: usize = 1_600;
/// Bytes at the beginning of a frame to be sent that are zero before it is filled: more than all headers have.
const HEADER_BYTES: usize = 128;

type Buffer = Box<[u8]>;

/// The device, with the buffers that it has and those for the next frames.
pub struct Network {
    device: VirtIONetRaw<Identity, PciTransport, FRAMES>,
    /// By token: buffers that the device fills.
    receiving: Vec<Option<Buffer>>,
    /// By token: frames that the device sends, and their lengths.
    sending: Vec<Option<(Buffer, usize)>>,
    spare: Vec<Buffer>,
}

/// A frame that has come.
pub struct Frame {
    buffer: Buffer,
    from: usize,
    until: usize,
}

impl Frame {
    pub fn bytes(&self) -> &[u8] {
        self.buffer.get(self.from..self.until).unwrap_or_default()
    }
}

impl Network {
    pub fn new(transport: PciTransport) -> Option<Network> {
        let mut network = Network {
            device: VirtIONetRaw::new(transport).ok()?,
            receiving: (0..FRAMES).map(|_| None).collect(),
            sending: (0..FRAMES).map(|_| None).collect(),
            spare: (0..FRAMES).map(|_| buffer()).collect(),
        };
        for _ in 0..FRAMES {
            network.recycle(buffer());
        }
        Some(network)
    }

    pub fn mac_address(&self) -> [u8; 6] {
        self.device.mac_address()
    }

    /// Takes back the device's interrupt. Frames that come afterwards interrupt again.
    pub fn hush(&mut self) {
        let _ = self.device.ack_interrupt();
    }

    /// The next frame that has come. Its buffer has to come back by [`recycle`](Network::recycle_frame).
    pub fn receive(&mut self) -> Option<Frame> {
        let token = self.device.poll_receive()?;
        let mut buffer = self.receiving.get_mut(usize::from(token))?.take()?;
        // SAFETY: the buffer that was handed over for this token.
        match unsafe { self.device.receive_complete(token, &mut buffer) } {
            Ok((from, bytes)) => Some(Frame { buffer, from, until: from.saturating_add(bytes) }),
            Err(_) => {
                self.recycle(buffer);
                None
            }
        }
    }

    /// Gives the device the buffer of a frame that has been read.
    pub fn recycle_frame(&mut self, frame: Frame) {
        self.recycle(frame.buffer);
    }

    fn recycle(&mut self, mut buffer: Buffer) {
        // SAFETY: the buffer is kept, and not touched, until the device is done with it.
        if let Ok(token) = unsafe { self.device.receive_begin(&mut buffer) }
            && let Some(place) = self.receiving.get_mut(usize::from(token))
        {
            *place = Some(buffer);
        }
    }

    /// Whether a frame can be sent.
    pub fn can_send(&mut self) -> bool {
        while let Some(token) = self.device.poll_transmit() {
            let Some((buffer, bytes)) = self.sending.get_mut(usize::from(token)).and_then(Option::take) else { break };
            // SAFETY: what was handed over for this token.
            let _ = unsafe { self.device.transmit_complete(token, buffer.get(..bytes).unwrap_or_default()) };
            self.spare.push(buffer);
        }
        !self.spare.is_empty() && self.device.can_send()
    }

    /// Sends a frame that `fill` writes. One that cannot be sent is lost, as frames are.
    pub fn send<R>(&mut self, bytes: usize, fill: impl FnOnce(&mut [u8]) -> R) -> R {
        let mut buffer = self.spare.pop().unwrap_or_else(buffer);
        let header = self.device.fill_buffer_header(&mut buffer).unwrap_or_default();
        let until = header.saturating_add(bytes).min(buffer.len());
        let frame = buffer.get_mut(header..until).unwrap_or_default();
        let headers = frame.len().min(HEADER_BYTES);
        frame.get_mut(..headers).unwrap_or_default().fill(0);
        let filled = fill(frame);
        // SAFETY: the buffer is kept, and not touched, until the device is done with it.
        let token = unsafe { self.device.transmit_begin(buffer.get(..until).unwrap_or_default()) };
        match token.ok().and_then(|token| self.sending.get_mut(usize::from(token))) {
            Some(place) => *place = Some((buffer, until)),
            None => self.spare.push(buffer),
        }
        filled
    }
}

fn buffer() -> Buffer {
    vec![0; BUFFER_BYTES].into()
}
