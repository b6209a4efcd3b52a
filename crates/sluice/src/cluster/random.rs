//! Random numbers: tokens of leases, names of volumes, attempts of folds.

use aws_lc_rs::rand::{SecureRandom as _, SystemRandom};

/// A name that no other volume has.
pub fn random_name() -> String {
    format!("{:016x}{:016x}", random(), random())
}

/// A random number.
pub fn random() -> u64 {
    let mut bytes = [0; 8];
    SystemRandom::new().fill(&mut bytes).expect("Linux has randomness");
    u64::from_le_bytes(bytes)
}
