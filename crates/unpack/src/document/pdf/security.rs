//! The standard security handler (ISO 32000-2, 7.6.4), opened with a user password; readers try the empty one first: RC4
//! of 40 to 128 bits, AES-128 (AESV2) and AES-256 (AESV3, revisions 5 and 6).
//!
//! Left out: other handlers, and passwords of the owner.

use aes::cipher::{Array, BlockCipherDecrypt, BlockCipherEncrypt, KeyInit};
use aes::{Aes128, Aes256};
use md5::{Digest, Md5};
use sha2::{Sha256, Sha384, Sha512};

use crate::codec::rc4::rc4;
use crate::frame::keys::{Derivation, Derived};

/// Padding of a password (algorithm 2, step a).
const PADDING: [u8; 32] = *b"\x28\xbf\x4e\x5e\x4e\x75\x8a\x41\x64\x00\x4e\x56\xff\xfa\x01\x08\x2e\x2e\x00\xb6\xd0\x68\x3e\x80\x2f\x0c\xa9\xfe\x64\x53\x69\x7a";

/// Bytes of a password that count in revisions 5 and 6.
const PASSWORD_BYTES_MAX: usize = 127;

/// Crypt filters that are remembered.
const CRYPT_FILTERS_MAX: usize = 8;

/// Values of an `Encrypt` dictionary.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Security {
    pub version: u64,
    pub revision: u64,
    pub permissions: u32,
    /// The length of the key in bits.
    pub length: Option<u64>,
    pub owner: Vec<u8>,
    pub user: Vec<u8>,
    pub user_file_key: Vec<u8>,
    /// Metadata streams are not encrypted.
    pub metadata_is_plain: bool,
    /// The crypt filters of streams and strings, by name.
    pub streams: Vec<u8>,
    pub strings: Vec<u8>,
    /// The crypt filter of embedded files, or nothing: then it is that of streams.
    pub embedded: Vec<u8>,
    standard: bool,
    crypt_filters: Vec<(Vec<u8>, Method)>,
}

/// Encryption of a document: the values that its key is derived from.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Locked {
    pub security: Security,
    pub identifier: Vec<u8>,
}

impl Derivation for Locked {
    type Key = FileKey;
    type Work = Way;

    fn cost(&self, password_bytes: usize) -> u64 {
        const HARDENED_ROUNDS: usize = 80;
        let bytes = match self.security.revision {
            6 => 2 * HARDENED_ROUNDS * 64 * (password_bytes.min(PASSWORD_BYTES_MAX) + 64),
            _ => 50 * 64,
        };
        bytes as u64
    }

    fn begin(&self, password: &[u8]) -> Way {
        let hardened = (self.security.revision == 6).then(|| self.security.hardened(password, CHECK_SALT)).flatten();
        Way { password: password.to_vec(), hardened, is_right: false }
    }

    fn go_on(&self, way: &mut Way, bytes: u64) -> Derived<FileKey> {
        let security = &self.security;
        let Some(hardened) = &mut way.hardened else {
            return Derived::Done(security.file_key(security.key(&self.identifier, &way.password)));
        };
        let Some(hash) = hardened.go_on(bytes) else { return Derived::More };
        if way.is_right {
            return Derived::Done(security.file_key(security.unwrapped(&hash)));
        }
        if security.user.get(..32) != Some(&hash[..]) {
            return Derived::Done(None);
        }
        way.is_right = true;
        way.hardened = security.hardened(&way.password, KEY_SALT);
        Derived::More
    }
}

/// A key on its way.
pub(super) struct Way {
    password: Vec<u8>,
    /// The hash under way, in revision 6.
    hardened: Option<Hardened>,
    /// Whether it is the second one: the first has confirmed the password.
    is_right: bool,
}

/// Where in the user's string the salts are.
const CHECK_SALT: std::ops::Range<usize> = 32..40;
const KEY_SALT: std::ops::Range<usize> = 40..48;

/// How something is encrypted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Method {
    Identity,
    Rc4,
    Aes128,
    Aes256,
}

/// The key of a document.
#[derive(Debug, Clone)]
pub(super) struct FileKey {
    pub bytes: Vec<u8>,
    pub streams: Method,
    pub strings: Method,
    /// The method of embedded files.
    pub embedded: Method,
    /// The method of streams that name a crypt filter.
    pub named: Method,
    pub metadata_is_plain: bool,
}

impl Security {
    /// The name of a security handler, or of a stream's filter.
    pub fn handler(&mut self, word: &[u8]) {
        self.standard |= word == b"Standard";
    }

    /// A crypt filter of this name begins.
    pub fn crypt_filter(&mut self, name: &[u8]) {
        if self.crypt_filters.len() < CRYPT_FILTERS_MAX {
            self.crypt_filters.push((name.to_vec(), Method::Identity));
        }
    }

    /// The method of the crypt filter that began last.
    pub fn method(&mut self, word: &[u8]) {
        if let Some((_, method)) = self.crypt_filters.last_mut() {
            *method = match word {
                b"V2" => Method::Rc4,
                b"AESV2" => Method::Aes128,
                b"AESV3" => Method::Aes256,
                _ => Method::Identity,
            };
        }
    }

    /// Whether this is such a dictionary.
    pub fn is_complete(&self) -> bool {
        self.standard && self.revision > 0 && !self.owner.is_empty() && !self.user.is_empty()
    }

    /// The key, if this password gives it, of a revision that makes it at once.
    fn key(&self, identifier: &[u8], password: &[u8]) -> Option<Vec<u8>> {
        match self.revision {
            2..=4 => self.old_key(identifier, password),
            5 => self.new_key(password),
            _ => None,
        }
    }

    /// Makes a key, for a method.
    fn file_key(&self, bytes: Option<Vec<u8>>) -> Option<FileKey> {
        Some(FileKey {
            bytes: bytes?,
            streams: self.method_of(&self.streams),
            strings: self.method_of(&self.strings),
            embedded: self.method_of(if self.embedded.is_empty() { &self.streams } else { &self.embedded }),
            named: self.method_of_names(),
            metadata_is_plain: self.metadata_is_plain && self.version >= 4,
        })
    }

    fn method_of(&self, name: &[u8]) -> Method {
        match self.version {
            0..=3 => Method::Rc4,
            _ => {
                let found = self.crypt_filters.iter().find(|(known, _)| known == name);
                found.map_or(Method::Identity, |(_, method)| *method)
            }
        }
    }

    /// The first method that encrypts: documents have one crypt filter besides `Identity`.
    fn method_of_names(&self) -> Method {
        let methods = [&self.streams, &self.embedded, &self.strings].map(|name| self.method_of(name));
        let others = self.crypt_filters.iter().map(|(_, method)| *method);
        methods.into_iter().chain(others).find(|method| *method != Method::Identity).unwrap_or(Method::Identity)
    }

    /// Algorithm 2, and the check of algorithms 6, 4 and 5.
    fn old_key(&self, identifier: &[u8], password: &[u8]) -> Option<Vec<u8>> {
        let bytes = match self.revision {
            2 => 5,
            3 => (self.length.unwrap_or(40) / 8).clamp(5, 16) as usize,
            _ => 16,
        };
        let mut hash = Md5::new();
        hash.update(&[&password[..password.len().min(PADDING.len())], &PADDING].concat()[..PADDING.len()]);
        hash.update(self.owner.get(..32)?);
        hash.update(self.permissions.to_le_bytes());
        hash.update(identifier);
        if self.revision >= 4 && self.metadata_is_plain {
            hash.update([0xff; 4]);
        }
        let mut digest = hash.finalize();
        if self.revision >= 3 {
            for _ in 0..50 {
                digest = Md5::digest(&digest[..bytes]);
            }
        }
        let key = digest[..bytes].to_vec();
        self.opens(&key, identifier).then_some(key)
    }

    fn opens(&self, key: &[u8], identifier: &[u8]) -> bool {
        if self.revision == 2 {
            let mut user = PADDING;
            rc4(key, &mut user);
            return self.user.get(..32) == Some(&user[..]);
        }
        let mut hash = Md5::new();
        hash.update(PADDING);
        hash.update(identifier);
        let mut user: [u8; 16] = hash.finalize().into();
        for round in 0..20 {
            let key: Vec<u8> = key.iter().map(|byte| byte ^ round).collect();
            rc4(&key, &mut user);
        }
        self.user.get(..16) == Some(&user[..])
    }

    /// Algorithm 2.A with a user password, in revision 5.
    fn new_key(&self, password: &[u8]) -> Option<Vec<u8>> {
        let password = &password[..password.len().min(PASSWORD_BYTES_MAX)];
        let hash = |salt| Some(Sha256::digest([password, self.user.get(salt)?].concat()));
        if self.user.get(..32)? != &hash(CHECK_SALT)?[..] {
            return None;
        }
        self.unwrapped(&hash(KEY_SALT)?)
    }

    /// Algorithm 2.B without a user key, begun with the salt that stands there.
    fn hardened(&self, password: &[u8], salt: std::ops::Range<usize>) -> Option<Hardened> {
        let password = &password[..password.len().min(PASSWORD_BYTES_MAX)];
        let key = Sha256::digest([password, self.user.get(salt)?].concat()).to_vec();
        Some(Hardened { password: password.to_vec(), key, round: 0 })
    }

    /// The key of the document, unwrapped by this one.
    fn unwrapped(&self, hash: &[u8]) -> Option<Vec<u8>> {
        let cipher = Aes256::new_from_slice(hash).ok()?;
        let mut key = self.user_file_key.get(..32)?.to_vec();
        let mut previous = [0; 16];
        for block in key.chunks_exact_mut(16) {
            let encrypted: [u8; 16] = (&*block).try_into().ok()?;
            let mut plain = Array::from(encrypted);
            cipher.decrypt_block(&mut plain);
            block.iter_mut().zip(plain.iter().zip(previous)).for_each(|(to, (plain, before))| *to = plain ^ before);
            previous = encrypted;
        }
        Some(key)
    }
}

/// Rounds of algorithm 2.B.
struct Hardened {
    password: Vec<u8>,
    key: Vec<u8>,
    round: u32,
}

impl Hardened {
    /// Does rounds of so many bytes; the hash, if it is complete.
    fn go_on(&mut self, bytes: u64) -> Option<Vec<u8>> {
        let mut left = bytes;
        while left > 0 {
            let mut block = [self.password.as_slice(), &self.key].concat().repeat(64);
            left = left.saturating_sub(block.len() as u64);
            encrypt(&self.key[..16], &self.key[16..32], &mut block);
            let remainder = block[..16].iter().map(|&byte| u32::from(byte)).sum::<u32>() % 3;
            self.key = match remainder {
                0 => Sha256::digest(&block).to_vec(),
                1 => Sha384::digest(&block).to_vec(),
                _ => Sha512::digest(&block).to_vec(),
            };
            self.round = self.round.saturating_add(1);
            let last = block.last().copied().unwrap_or(0);
            if self.round >= 64 && u32::from(last) <= self.round - 32 {
                self.key.truncate(32);
                return Some(std::mem::take(&mut self.key));
            }
        }
        None
    }
}

/// AES-128 in CBC mode, without padding.
fn encrypt(key: &[u8], start: &[u8], data: &mut [u8]) {
    let Ok(cipher) = Aes128::new_from_slice(key) else { return };
    let mut previous = [0; 16];
    previous.copy_from_slice(start);
    for block in data.chunks_exact_mut(16) {
        let mut mixed = Array::from(previous);
        mixed.iter_mut().zip(block.iter()).for_each(|(mixed, byte)| *mixed ^= byte);
        cipher.encrypt_block(&mut mixed);
        block.copy_from_slice(&mixed);
        previous.copy_from_slice(&mixed);
    }
}
