//! What a client has to show.

use kiwi_model::Digest;
use subtle::ConstantTimeEq as _;

/// A token. Only its digest is kept, and it is compared in a time that tells nothing.
#[derive(Clone)]
pub struct Bearer {
    digest: [u8; 64],
}

impl std::fmt::Debug for Bearer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("a token")
    }
}

impl Bearer {
    /// Reads a token; `None` for one that is empty or cannot stand in a header.
    pub fn new(token: &str) -> Option<Self> {
        let is_one = !token.is_empty() && token.bytes().all(|byte| byte.is_ascii_graphic());
        is_one.then(|| Self { digest: digest(token) })
    }

    /// Whether this is it.
    pub(crate) fn is(&self, token: &str) -> bool {
        self.digest.ct_eq(&digest(token)).into()
    }
}

fn digest(token: &str) -> [u8; 64] {
    let mut bytes = [0; 64];
    for (to, from) in bytes.iter_mut().zip(Digest::of(token.as_bytes()).hex().bytes()) {
        *to = from;
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_token_is_the_token() {
        let bearer = Bearer::new("secret").expect("token");
        assert!(bearer.is("secret"));
        for other in ["", "Secret", "secret ", "secre", "secrets"] {
            assert!(!bearer.is(other), "{other}");
        }
        for none in ["", "a b", "a\n", "ä"] {
            assert!(Bearer::new(none).is_none(), "{none}");
        }
        assert!(!format!("{bearer:?}").contains("secret"));
    }
}
