//! Texts as the system takes them, on their way to the launcher.

use alloc::vec::Vec;
use rustix::io::{Errno, Result};
use serde::{Deserialize, Serialize};

/// A text in which a number stands for "the path of that inherited descriptor".
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Word(pub Vec<Part>);

/// A piece of a [`Word`].
#[derive(Debug, Clone, Serialize, Deserialize)]
pub enum Part {
    /// As it is.
    Text(Raw),
    /// The path under which the tool can open its inherited file of this number.
    Inherited(usize),
}

/// Characters as the system takes them, without the NUL.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Raw(#[serde(with = "serde_bytes")] Vec<u8>);

impl Raw {
    /// As the kernel takes it.
    pub fn bytes(&self) -> &[u8] {
        &self.0
    }
}

impl From<&[u8]> for Raw {
    fn from(bytes: &[u8]) -> Self {
        Self(bytes.to_vec())
    }
}

impl Word {
    /// The text, with the path of each inherited file put in.
    pub fn bytes(&self, inherited: &[impl AsRef<[u8]>]) -> Result<Vec<u8>> {
        let mut bytes = Vec::new();
        for part in &self.0 {
            bytes.extend_from_slice(match part {
                Part::Text(text) => text.bytes(),
                Part::Inherited(index) => inherited.get(*index).ok_or(Errno::INVAL)?.as_ref(),
            });
        }
        Ok(bytes)
    }

    /// How many bytes it will be, nearly.
    pub fn len(&self) -> usize {
        self.0.iter().map(|part| if let Part::Text(text) = part { text.bytes().len() } else { 16 }).sum()
    }

    /// Whether there is nothing in it.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// The same for those who have a standard library.
#[cfg(feature = "std")]
mod spoken {
    extern crate std;
    use super::{Raw, Word};
    use rustix::io::Result;
    use std::ffi::{OsStr, OsString};
    use std::os::unix::ffi::{OsStrExt, OsStringExt};
    use std::path::Path;

    impl Raw {
        /// A text of this program's own.
        pub fn of(text: impl AsRef<OsStr>) -> Self {
            text.as_ref().as_bytes().into()
        }

        /// As the standard library takes it.
        pub fn as_os(&self) -> &OsStr {
            OsStr::from_bytes(self.bytes())
        }

        /// As a place of files.
        pub fn as_path(&self) -> &Path {
            Path::new(self.as_os())
        }
    }

    impl Word {
        /// The text, where no inherited file is named.
        pub fn spell(&self) -> Result<OsString> {
            self.bytes(&[] as &[&[u8]]).map(OsString::from_vec)
        }
    }
}
