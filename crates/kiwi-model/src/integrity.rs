//! The identity of one tool version: a hash over its manifest and its files.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::Digest as _;
use subtle::ConstantTimeEq;

use crate::canonical::{write_string, write_value};
use crate::{CanonicalError, FileEntry, ToolId, Version};

/// A SHA-256 digest, written `sha256:` and 64 hex digits everywhere.
#[derive(Clone, Copy, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Digest([u8; 32]);

/// The identity of one tool version.
pub type Integrity = Digest;

/// Why a string is not a digest.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a hash: expected `sha256:` and 64 lowercase hex digits")]
pub struct IntegrityError(String);

impl Digest {
    /// The digest of some bytes.
    pub fn of(bytes: &[u8]) -> Self {
        Self(sha2::Sha256::digest(bytes).into())
    }

    /// Reads `sha256:…`.
    pub fn parse(text: &str) -> Result<Self, IntegrityError> {
        let bad = || IntegrityError(text.chars().take(80).collect());
        let hex = text.strip_prefix("sha256:").filter(|hex| hex.len() == 64).ok_or_else(bad)?;
        let mut bytes = [0; 32];
        for (byte, pair) in bytes.iter_mut().zip(hex.as_bytes().chunks_exact(2)) {
            let [high, low] = pair else { return Err(bad()) };
            *byte = nibble(*high).zip(nibble(*low)).map(|(high, low)| high << 4 | low).ok_or_else(bad)?;
        }
        Ok(Self(bytes))
    }

    /// The 64 hex digits alone.
    pub fn hex(&self) -> String {
        self.spell(str::to_owned)
    }

    /// Hands on the 64 hex digits. Every record has many of them.
    pub(crate) fn spell<T>(&self, to: impl FnOnce(&str) -> T) -> T {
        let mut digits = [0; 64];
        for ([high, low], byte) in digits.as_chunks_mut().0.iter_mut().zip(self.0) {
            (*high, *low) = (hex_digit(byte >> 4), hex_digit(byte & 15));
        }
        // They are ASCII.
        to(std::str::from_utf8(&digits).unwrap_or_default())
    }

    /// `sha256:` and the first digits: enough for a person to compare by eye.
    pub fn short(&self) -> String {
        format!("sha256:{}…", self.hex().chars().take(12).collect::<String>())
    }
}

fn nibble(digit: u8) -> Option<u8> {
    match digit {
        b'0'..=b'9' => Some(digit - b'0'),
        b'a'..=b'f' => Some(digit - b'a' + 10),
        _ => None,
    }
}

/// Nothing here can overflow, and saying so lets the compiler take many at once.
#[inline]
fn hex_digit(nibble: u8) -> u8 {
    let past_the_digits = if nibble < 10 { 0 } else { b'a' - b'0' - 10 };
    nibble.wrapping_add(b'0').wrapping_add(past_the_digits)
}

impl PartialEq for Digest {
    /// In constant time, so that a comparison tells nothing about where two hashes differ.
    fn eq(&self, other: &Self) -> bool {
        self.0.ct_eq(&other.0).into()
    }
}

impl std::hash::Hash for Digest {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.0.hash(state);
    }
}

impl std::fmt::Display for Digest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("sha256:")?;
        self.spell(|digits| f.write_str(digits))
    }
}

impl std::fmt::Debug for Digest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{self}")
    }
}

impl TryFrom<String> for Digest {
    type Error = IntegrityError;
    fn try_from(text: String) -> Result<Self, IntegrityError> {
        Self::parse(&text)
    }
}

impl From<Digest> for String {
    fn from(digest: Digest) -> Self {
        digest.spell(|digits| ["sha256:", digits].concat())
    }
}

/// A digest taken piece by piece, for files too large to hold.
#[derive(Default, Clone)]
pub struct Hasher(sha2::Sha256);

impl Hasher {
    /// Adds bytes.
    pub fn update(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    /// The digest of everything added.
    pub fn finish(self) -> Digest {
        Digest(self.0.finalize().into())
    }
}

/// The integrity of a tool version: `sha256` over the canonical form of id, version, document and files by path.
pub fn integrity_of(
    tool_id: &ToolId,
    version: &Version,
    manifest: &Value,
    files: &[FileEntry],
) -> Result<Integrity, CanonicalError> {
    let mut files: Vec<&FileEntry> = files.iter().collect();
    files.sort_unstable_by(|a, b| a.path.cmp(&b.path));
    // Written out in the order of the keys, so that the manifest need not be copied into a larger value first.
    let mut text = String::from("{\"files\":[");
    for (i, file) in files.into_iter().enumerate() {
        text.push_str(if i > 0 { ",{" } else { "{" });
        text.push_str(if file.is_executable { "\"is_executable\":true" } else { "\"is_executable\":false" });
        text.push_str(",\"path\":");
        write_string(&mut text, &file.path);
        text.push_str(",\"sha256\":");
        write_string(&mut text, &file.sha256.to_string());
        text.push('}');
    }
    text.push_str("],\"manifest\":");
    write_value(&mut text, manifest)?;
    text.push_str(",\"tool_id\":");
    write_string(&mut text, tool_id.as_str());
    text.push_str(",\"version\":");
    write_string(&mut text, &version.to_string());
    text.push('}');
    Ok(Digest::of(text.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_digest_round_trips_and_refuses_the_rest() {
        let digest = Digest::of(b"abc");
        assert_eq!(
            digest.to_string(),
            "sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
        );
        assert_eq!(Digest::parse(&digest.to_string()), Ok(digest));
        for bad in [
            "",
            "sha256:",
            "ba78",
            "sha256:BA7816BF8F01CFEA414140DE5DAE2223B00361A396177A9CB410FF61F20015AD",
            &digest.hex(),
        ] {
            assert!(Digest::parse(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn it_is_the_hash_of_the_canonical_payload() {
        let id = ToolId::parse("a.b").expect("id");
        let version = Version::parse("1.0.0-beta.1+5").expect("version");
        let manifest = json!({"z": [1, 2.5, "é\n"], "a": {"k": null}});
        let file = FileEntry { path: "d/\u{1F600}.py".into(), sha256: Digest::of(b"x"), is_executable: true };
        let payload = json!({
            "tool_id": id, "version": version, "manifest": manifest,
            "files": [{"path": file.path, "sha256": file.sha256, "is_executable": file.is_executable}],
        });
        let expected = Digest::of(crate::canonical(&payload).expect("canonical").as_bytes());
        assert_eq!(integrity_of(&id, &version, &manifest, &[file]), Ok(expected));
    }

    #[test]
    fn file_order_does_not_matter_and_the_executable_bit_does() {
        let file = |path: &str, is_executable| FileEntry {
            path: path.into(),
            sha256: Digest::of(path.as_bytes()),
            is_executable,
        };
        let of = |files: &[FileEntry]| {
            integrity_of(&ToolId::parse("a").expect("id"), &Version::new(1, 0, 0), &json!({}), files)
                .expect("hash")
        };
        assert_eq!(of(&[file("a", false), file("b", true)]), of(&[file("b", true), file("a", false)]));
        assert_ne!(of(&[file("a", false)]), of(&[file("a", true)]));
    }
}
