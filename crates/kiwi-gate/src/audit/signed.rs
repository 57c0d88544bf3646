//! What the user's key says about the chain.

use kiwi_model::{Digest, canonical};
use kiwi_space::{PublicKey, UserKey};
use serde::{Deserialize, Serialize};
use serde_json::json;

/// A signed checkpoint: so far the chain went, and this is where it was.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Signed {
    /// The space.
    pub root: String,
    /// Number of the last entry.
    pub n: u64,
    /// Its hash; `None` before the first.
    pub hash: Option<Digest>,
    /// Whose signature it is.
    pub key: String,
    /// Ed25519 over all of the above.
    pub signature: String,
}

impl Signed {
    /// Signs.
    pub fn make(key: &UserKey, root: &str, n: u64, hash: Option<Digest>) -> Self {
        let public = key.public().to_string();
        let signature = key.sign(&message(root, n, hash, &public));
        Self { root: root.to_owned(), n, hash, key: public, signature }
    }

    /// Whether this key said so.
    pub fn is_by(&self, key: &PublicKey) -> bool {
        self.key == key.to_string()
            && key.verifies(&message(&self.root, self.n, self.hash, &self.key), &self.signature)
    }
}

fn message(root: &str, n: u64, hash: Option<Digest>, key: &str) -> Vec<u8> {
    let said = json!({"kiwi": "audit checkpoint", "root": root, "n": n, "hash": hash, "key": key});
    // Only a number too large for any log has no canonical form; what is signed then fits nothing.
    canonical(&said).unwrap_or_default().into_bytes()
}
