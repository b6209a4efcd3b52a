//! The generators of random numbers that AutoIt encrypts with: a lagged Fibonacci generator, and the Mersenne Twister.

use super::Version;

const TWISTER: usize = 624;

const LAGS: usize = 17;

/// The generator that encrypts.
pub(super) enum Cipher {
    /// The Mersenne twister, as everybody has it.
    Twister { state: Box<[u32; TWISTER]>, at: usize },
    /// A lagged sum with rotations.
    Sum { state: [u32; LAGS], at: [usize; 2] },
}

impl Cipher {
    pub(super) fn new(version: &Version, seed: u32) -> Cipher {
        if !version.is_wide {
            let mut state = Box::new([seed; TWISTER]);
            for index in 1..TWISTER {
                let last = state[index - 1];
                state[index] = (last ^ last >> 30).wrapping_mul(0x6c07_8965).wrapping_add(index as u32);
            }
            return Cipher::Twister { state, at: TWISTER };
        }
        let mut value = seed;
        let state = std::array::from_fn(|_| {
            value = 1u32.wrapping_sub(value.wrapping_mul(0x53a9_b4fb));
            value
        });
        let mut cipher = Cipher::Sum { state, at: [0, 10] };
        for _ in 0..9 {
            cipher.number();
        }
        cipher
    }

    pub(super) fn next(&mut self) -> u8 {
        match self {
            Cipher::Twister { .. } => (self.number() >> 1) as u8,
            Cipher::Sum { .. } => {
                self.number();
                (self.number() >> 24) as u8
            }
        }
    }

    fn number(&mut self) -> u32 {
        match self {
            Cipher::Twister { state, at } => {
                if *at == TWISTER {
                    twist(state);
                    *at = 0;
                }
                let mut value = state[*at];
                *at += 1;
                value ^= value >> 11;
                value ^= value << 7 & 0x9d2c_5680;
                value ^= value << 15 & 0xefc6_0000;
                value ^ value >> 18
            }
            Cipher::Sum { state, at } => {
                let value = state[at[0]].rotate_left(9).wrapping_add(state[at[1]].rotate_left(13));
                state[at[0]] = value;
                for at in at {
                    *at = at.checked_sub(1).unwrap_or(LAGS - 1);
                }
                value
            }
        }
    }
}

fn twist(state: &mut [u32; TWISTER]) {
    const LAG: usize = 397;
    for index in 0..TWISTER {
        let next = state[(index + 1) % TWISTER];
        let mixed = state[index] & 0x8000_0000 | next & 0x7fff_ffff;
        let odd = if next & 1 == 0 { 0 } else { 0x9908_b0df };
        state[index] = state[(index + LAG) % TWISTER] ^ mixed >> 1 ^ odd;
    }
}
