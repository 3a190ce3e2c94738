use std::fmt;
use std::io;

use hmac::{Hmac, KeyInit, Mac};
use sha2::{Digest, Sha256};

/// The secret that all processes of one job share: 32 bytes. `Debug` shows none of them.
#[derive(Clone)]
pub struct Secret([u8; 32]);

impl Secret {
    /// A new secret from the system's random generator.
    ///
    /// # Errors
    ///
    /// If the system has no random bytes to give.
    pub fn random() -> io::Result<Secret> {
        random_bytes().map(Secret)
    }

    /// The secret made of these bytes. They should be random: nothing here hardens a password.
    pub fn from_bytes(bytes: [u8; 32]) -> Secret {
        Secret(bytes)
    }

    /// The secret written as 64 hexadecimal digits; `None` if `hex` is anything else.
    pub fn from_hex(hex: &str) -> Option<Secret> {
        let digits = hex.as_bytes();
        if digits.len() != 64 {
            return None;
        }
        let mut bytes = [0; 32];
        for (byte, pair) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
            let nibble = |digit: u8| char::from(digit).to_digit(16);
            *byte = (nibble(pair[0])? << 4 | nibble(pair[1])?) as u8;
        }
        Some(Secret(bytes))
    }

    /// The secret that any text stands for (its SHA-256). No better than the text is long and random.
    pub fn from_text(text: &str) -> Secret {
        Secret(Sha256::digest(text).into())
    }

    /// The secret as 64 hexadecimal digits, to hand to another process of the job.
    pub fn to_hex(&self) -> String {
        self.0.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    pub(super) fn prove(&self, label: &[u8], transcript: &[u8]) -> [u8; 32] {
        self.mac(label, transcript).finalize().into_bytes().into()
    }

    /// Whether `proof` is what [`prove`](Secret::prove) gives, in constant time.
    pub(super) fn verify(&self, label: &[u8], transcript: &[u8], proof: &[u8; 32]) -> bool {
        self.mac(label, transcript).verify_slice(proof).is_ok()
    }

    fn mac(&self, label: &[u8], transcript: &[u8]) -> Hmac<Sha256> {
        let mac = Hmac::<Sha256>::new_from_slice(&self.0).expect("HMAC takes keys of any length");
        mac.chain_update(label).chain_update(transcript)
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(..)")
    }
}

pub(super) fn random_bytes() -> io::Result<[u8; 32]> {
    let mut bytes = [0; 32];
    getrandom::fill(&mut bytes).map_err(io::Error::other)?;
    Ok(bytes)
}
