//! Encryption of records (RFC 8446, section 5.2) by AEADs of the RustCrypto project.

use alloc::boxed::Box;
use core::marker::PhantomData;

use aes_gcm::aead::consts::{U12, U16};
use aes_gcm::aead::{AeadInOut, KeyInit, Tag};
use rustls::crypto::cipher::{
    AeadKey, InboundOpaqueMessage, InboundPlainMessage, Iv, MessageDecrypter, MessageEncrypter, Nonce,
    OutboundOpaqueMessage, OutboundPlainMessage, PrefixedPayload, Tls13AeadAlgorithm, UnsupportedOperationError,
    make_tls13_aad,
};
use rustls::{ConnectionTrafficSecrets, ContentType, Error, ProtocolVersion};

const TAG_BYTES: usize = 16;

/// An AEAD as rustls takes it.
pub struct Cipher<A>(PhantomData<fn() -> A>);

impl<A> Cipher<A> {
    pub const NEW: Cipher<A> = Cipher(PhantomData);
}

/// One direction of a connection.
struct Direction<A> {
    cipher: A,
    iv: Iv,
}

/// Bounds of the AEADs of TLS 1.3.
trait Aead: AeadInOut<NonceSize = U12, TagSize = U16> + KeyInit + Send + Sync + 'static {}
impl<A: AeadInOut<NonceSize = U12, TagSize = U16> + KeyInit + Send + Sync + 'static> Aead for A {}

impl<A: Aead> Direction<A> {
    fn new(key: &AeadKey, iv: Iv) -> Box<Direction<A>> {
        let cipher = A::new_from_slice(key.as_ref()).expect("rustls derives keys of `key_len` bytes");
        Box::new(Direction { cipher, iv })
    }
}

impl<A: Aead> Tls13AeadAlgorithm for Cipher<A> {
    fn encrypter(&self, key: AeadKey, iv: Iv) -> Box<dyn MessageEncrypter> {
        Direction::<A>::new(&key, iv)
    }

    fn decrypter(&self, key: AeadKey, iv: Iv) -> Box<dyn MessageDecrypter> {
        Direction::<A>::new(&key, iv)
    }

    fn key_len(&self) -> usize {
        A::key_size()
    }

    fn extract_keys(&self, _: AeadKey, _: Iv) -> Result<ConnectionTrafficSecrets, UnsupportedOperationError> {
        Err(UnsupportedOperationError)
    }
}

impl<A: Aead> MessageEncrypter for Direction<A> {
    fn encrypt(&mut self, message: OutboundPlainMessage<'_>, sequence: u64) -> Result<OutboundOpaqueMessage, Error> {
        let bytes = self.encrypted_payload_len(message.payload.len());
        let mut payload = PrefixedPayload::with_capacity(bytes);
        payload.extend_from_chunks(&message.payload);
        payload.extend_from_slice(&message.typ.to_array());
        let (nonce, header) = (Nonce::new(&self.iv, sequence).0, make_tls13_aad(bytes));
        let tag = self.cipher.encrypt_inout_detached(&nonce.into(), &header, payload.as_mut().into());
        payload.extend_from_slice(&tag.map_err(|_| Error::EncryptError)?);
        Ok(OutboundOpaqueMessage::new(ContentType::ApplicationData, ProtocolVersion::TLSv1_2, payload))
    }

    fn encrypted_payload_len(&self, bytes: usize) -> usize {
        bytes.saturating_add(1 + TAG_BYTES)
    }
}

impl<A: Aead> MessageDecrypter for Direction<A> {
    fn decrypt<'a>(
        &mut self,
        mut message: InboundOpaqueMessage<'a>,
        sequence: u64,
    ) -> Result<InboundPlainMessage<'a>, Error> {
        let (nonce, header) = (Nonce::new(&self.iv, sequence).0, make_tls13_aad(message.payload.len()));
        let bytes = message.payload.len().checked_sub(TAG_BYTES).ok_or(Error::DecryptError)?;
        let (text, tag) = message.payload.split_at_mut(bytes);
        let tag = Tag::<A>::try_from(&*tag).map_err(|_| Error::DecryptError)?;
        let done = self.cipher.decrypt_inout_detached(&nonce.into(), &header, text.into(), &tag);
        done.map_err(|_| Error::DecryptError)?;
        message.payload.truncate(bytes);
        message.into_tls13_unpadded_message()
    }
}
