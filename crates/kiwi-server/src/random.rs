//! Names that nobody can guess.

use rustix::rand::{GetRandomFlags, getrandom};
use std::fmt::Write as _;

/// Thirty-two bytes of the kernel's randomness, hexadecimal; `None` where it gives none, and then nothing is named.
pub(crate) fn unguessable() -> Option<String> {
    let mut bytes = [0_u8; 32];
    let filled = getrandom(&mut bytes, GetRandomFlags::empty()).ok()?;
    (filled == bytes.len()).then(|| {
        bytes.iter().fold(String::new(), |mut text, byte| {
            let _ = write!(text, "{byte:02x}");
            text
        })
    })
}
