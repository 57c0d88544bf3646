//! Encrypting to the user's identity, and reading what was encrypted to it.

use age::secrecy::ExposeSecret as _;
use age::x25519::{Identity, Recipient};
use std::io::{Read as _, Write as _};
use std::str::FromStr as _;

/// The key pair of the store.
pub(super) struct Key {
    identity: Identity,
}

impl Key {
    /// A new one.
    pub(super) fn generate() -> Self {
        Self { identity: Identity::generate() }
    }

    /// As the identity file holds it; age itself reads it too.
    pub(super) fn to_text(&self) -> String {
        format!(
            "# public key: {}\n{}\n",
            self.identity.to_public(),
            self.identity.to_string().expose_secret()
        )
    }

    /// What the key is known by: its public half.
    pub(super) fn name(&self) -> String {
        self.identity.to_public().to_string()
    }

    /// Reads an identity file.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let line = text.lines().map(str::trim).find(|line| !line.is_empty() && !line.starts_with('#'))?;
        Identity::from_str(line).ok().map(|identity| Self { identity })
    }

    /// Encrypts.
    pub(super) fn seal(&self, plain: &[u8]) -> Result<Vec<u8>, String> {
        let recipient: Recipient = self.identity.to_public();
        let recipients = std::iter::once(&recipient as &dyn age::Recipient);
        let encryptor = age::Encryptor::with_recipients(recipients).map_err(|error| error.to_string())?;
        let mut sealed = Vec::new();
        let mut writer = encryptor.wrap_output(&mut sealed).map_err(|error| error.to_string())?;
        writer.write_all(plain).and_then(|()| writer.finish()).map_err(|error| error.to_string())?;
        Ok(sealed)
    }

    /// Decrypts.
    pub(super) fn open(&self, sealed: &[u8]) -> Result<Vec<u8>, String> {
        let decryptor = age::Decryptor::new_buffered(sealed).map_err(|error| error.to_string())?;
        let identities = std::iter::once(&self.identity as &dyn age::Identity);
        let mut reader = decryptor.decrypt(identities).map_err(|error| error.to_string())?;
        let mut plain = Vec::new();
        reader.read_to_end(&mut plain).map_err(|error| error.to_string())?;
        Ok(plain)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_sealed_can_be_opened_by_the_same_key_only() {
        let key = Key::generate();
        let sealed = key.seal(b"hush").expect("sealed");
        assert!(!sealed.windows(4).any(|window| window == b"hush"));
        assert!(sealed.starts_with(b"age-encryption.org/v1\n"));
        let again = Key::parse(&key.to_text()).expect("key");
        assert_eq!(again.open(&sealed).expect("opened"), b"hush");
        assert!(Key::generate().open(&sealed).is_err());
        let mut touched = sealed.clone();
        if let Some(last) = touched.last_mut() {
            *last ^= 1;
        }
        assert!(again.open(&touched).is_err());
        assert!(Key::parse("# nothing\n").is_none());
    }
}
