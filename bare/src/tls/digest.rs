//! SHA-2 as rustls takes it: hashes of the handshake, and HMAC of its keys.

use alloc::boxed::Box;
use core::marker::PhantomData;

use hmac::{KeyInit, Mac, SimpleHmac};
use rustls::crypto::hash::{Context, Hash, HashAlgorithm, Output};
use rustls::crypto::hmac::{Hmac, Key, Tag};
use sha2::Digest;
use sha2::digest::block_api::BlockSizeUser;

/// A hash function.
pub struct Sha<D>(HashAlgorithm, PhantomData<fn() -> D>);

impl<D> Sha<D> {
    pub const fn new(algorithm: HashAlgorithm) -> Sha<D> {
        Sha(algorithm, PhantomData)
    }
}

/// Bounds of hash functions that HMAC takes.
pub trait Function: Digest + BlockSizeUser + Clone + Send + Sync + 'static {}
impl<D: Digest + BlockSizeUser + Clone + Send + Sync + 'static> Function for D {}

struct Running<D>(D);

impl<D: Function> Hash for Sha<D> {
    fn start(&self) -> Box<dyn Context> {
        Box::new(Running(D::new()))
    }

    fn hash(&self, data: &[u8]) -> Output {
        Output::new(&D::digest(data))
    }

    fn output_len(&self) -> usize {
        <D as Digest>::output_size()
    }

    fn algorithm(&self) -> HashAlgorithm {
        self.0
    }
}

impl<D: Function> Context for Running<D> {
    fn fork_finish(&self) -> Output {
        Output::new(&self.0.clone().finalize())
    }

    fn fork(&self) -> Box<dyn Context> {
        Box::new(Running(self.0.clone()))
    }

    fn finish(self: Box<Self>) -> Output {
        Output::new(&self.0.finalize())
    }

    fn update(&mut self, data: &[u8]) {
        self.0.update(data);
    }
}

struct Keyed<D: Function>(SimpleHmac<D>);

impl<D: Function> Hmac for Sha<D> {
    fn with_key(&self, key: &[u8]) -> Box<dyn Key> {
        Box::new(Keyed(<SimpleHmac<D> as KeyInit>::new_from_slice(key).expect("HMAC takes keys of any length")))
    }

    fn hash_output_len(&self) -> usize {
        <D as Digest>::output_size()
    }
}

impl<D: Function> Key for Keyed<D> {
    fn sign_concat(&self, first: &[u8], middle: &[&[u8]], last: &[u8]) -> Tag {
        let mut hmac = self.0.clone();
        hmac.update(first);
        middle.iter().for_each(|piece| hmac.update(piece));
        hmac.update(last);
        Tag::new(&hmac.finalize().into_bytes())
    }

    fn tag_len(&self) -> usize {
        <D as Digest>::output_size()
    }
}
