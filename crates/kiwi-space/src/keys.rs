//! The user's own keys: what they sign, nobody else could have signed.
//!
//! One file each, `keys/NAME.key` in the user space, 32 bytes in hexadecimal, for its owner alone. Sandboxes never show
//! the user space, so no tool can sign for its user.

use ed25519_dalek::{Signature, Signer as _, SigningKey, VerifyingKey};
use std::path::{Path, PathBuf};

use crate::durable;
use crate::error::SpaceError;
use crate::private;

/// What a key is for. Each purpose has its own, so that a signature never means two things.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyPurpose {
    /// Checkpoints of the audit log, and what is published.
    User,
    /// Answers to calls that ask.
    Approval,
}

impl KeyPurpose {
    const fn file(self) -> &'static str {
        match self {
            Self::User => "user.key",
            Self::Approval => "approval.key",
        }
    }
}

/// The folder of the user's keys.
#[derive(Debug, Clone)]
pub struct Keys {
    folder: PathBuf,
}

/// A key that signs.
pub struct UserKey(SigningKey);

/// Its public half.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PublicKey(VerifyingKey);

impl Keys {
    pub(crate) fn new(folder: PathBuf) -> Self {
        Self { folder }
    }

    /// The key for a purpose; `None` where none was made yet.
    pub fn get(&self, purpose: KeyPurpose) -> Result<Option<UserKey>, SpaceError> {
        let path = self.path(purpose);
        let Some(bytes) = private::read(&path)? else { return Ok(None) };
        let seed = std::str::from_utf8(&bytes).ok().and_then(|text| from_hex::<32>(text.trim()));
        let broken = || SpaceError::unreadable(&path, std::io::Error::other("it holds no key"));
        Ok(Some(UserKey(SigningKey::from_bytes(&seed.ok_or_else(broken)?))))
    }

    /// The key for a purpose, made now where there was none.
    pub fn get_or_make(&self, purpose: KeyPurpose) -> Result<UserKey, SpaceError> {
        if let Some(key) = self.get(purpose)? {
            return Ok(key);
        }
        durable::make_folder(&self.folder)?;
        // Two processes that find no key must end up with the same one.
        let _turn = self.turn()?;
        if let Some(key) = self.get(purpose)? {
            return Ok(key);
        }
        let path = self.path(purpose);
        let mut seed = [0_u8; 32];
        fill(&mut seed).map_err(|error| SpaceError::unwritable(&path, error))?;
        private::write(&path, to_hex(&seed).as_bytes())?;
        Ok(UserKey(SigningKey::from_bytes(&seed)))
    }

    fn path(&self, purpose: KeyPurpose) -> PathBuf {
        self.folder.join(purpose.file())
    }

    fn turn(&self) -> Result<std::fs::File, SpaceError> {
        let path: &Path = &self.folder;
        let unwritable = |error| SpaceError::unwritable(path, error);
        let folder = std::fs::File::open(path).map_err(unwritable)?;
        folder.lock().map_err(unwritable)?;
        Ok(folder)
    }
}

impl UserKey {
    /// Signs a message; hexadecimal.
    pub fn sign(&self, message: &[u8]) -> String {
        to_hex(&self.0.sign(message).to_bytes())
    }

    /// The public half.
    pub fn public(&self) -> PublicKey {
        PublicKey(self.0.verifying_key())
    }
}

impl std::fmt::Debug for UserKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("UserKey").field(&self.public().to_string()).finish()
    }
}

impl PublicKey {
    /// Reads what [`PublicKey`] prints.
    pub fn parse(text: &str) -> Option<Self> {
        let bytes = from_hex::<32>(text.strip_prefix("ed25519:")?)?;
        VerifyingKey::from_bytes(&bytes).ok().map(Self)
    }

    /// Whether a signature of this message is this key's.
    pub fn verifies(&self, message: &[u8], signature: &str) -> bool {
        let Some(bytes) = from_hex::<64>(signature) else { return false };
        self.0.verify_strict(message, &Signature::from_bytes(&bytes)).is_ok()
    }
}

impl std::fmt::Display for PublicKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "ed25519:{}", to_hex(self.0.as_bytes()))
    }
}

fn fill(mut bytes: &mut [u8]) -> std::io::Result<()> {
    while !bytes.is_empty() {
        let filled = rustix::rand::getrandom(&mut *bytes, rustix::rand::GetRandomFlags::empty())?;
        bytes = bytes.get_mut(filled..).unwrap_or_default();
    }
    Ok(())
}

fn to_hex(bytes: &[u8]) -> String {
    use std::fmt::Write as _;
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

fn from_hex<const N: usize>(text: &str) -> Option<[u8; N]> {
    if text.len() != N * 2 || !text.is_ascii() {
        return None;
    }
    let mut bytes = [0; N];
    for (byte, pair) in bytes.iter_mut().zip(text.as_bytes().chunks_exact(2)) {
        *byte = u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok()?;
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_made_once_and_signs_for_itself_alone() {
        let folder = tempfile::tempdir().unwrap();
        let keys = Keys::new(folder.path().join("keys"));
        assert!(keys.get(KeyPurpose::User).unwrap().is_none());
        let key = keys.get_or_make(KeyPurpose::User).unwrap();
        let other = keys.get_or_make(KeyPurpose::Approval).unwrap();
        assert_eq!(key.public(), keys.get_or_make(KeyPurpose::User).unwrap().public());
        let signature = key.sign(b"message");
        let public = PublicKey::parse(&key.public().to_string()).unwrap();
        assert!(public.verifies(b"message", &signature));
        assert!(!public.verifies(b"massage", &signature));
        assert!(!other.public().verifies(b"message", &signature));
        for bad in ["", "zz", &"+1".repeat(64)] {
            assert!(!public.verifies(b"message", bad));
        }
    }

    #[test]
    fn a_key_that_others_can_read_or_that_is_none_refuses() {
        use std::os::unix::fs::PermissionsExt as _;
        let folder = tempfile::tempdir().unwrap();
        let keys = Keys::new(folder.path().to_owned());
        let path = folder.path().join("user.key");
        std::fs::write(&path, "short").unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
        assert!(keys.get_or_make(KeyPurpose::User).is_err());
        keys.get_or_make(KeyPurpose::Approval).unwrap();
        let path = folder.path().join("approval.key");
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o644)).unwrap();
        assert!(matches!(keys.get(KeyPurpose::Approval), Err(SpaceError::Exposed { .. })));
    }
}
