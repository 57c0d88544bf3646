//! Texts as the system takes them, on their way to the launcher.

use alloc::borrow::ToOwned;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;
use rustix::io::{Errno, Result};
use serde::de::value::SeqAccessDeserializer;
use serde::de::{Error, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};

/// A text in which a number stands for "the path of that inherited descriptor".
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Word(pub Vec<Part>);

/// A piece of a [`Word`].
#[derive(Debug, Clone, Serialize)]
#[serde(untagged)]
pub enum Part {
    /// As it is.
    Text(Raw),
    /// The path under which the tool can open its inherited file of this number.
    Inherited(usize),
}

/// Characters as the system takes them: JSON cannot carry a path that is not UTF-8.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum Raw {
    /// Nearly always.
    Text(String),
    /// Otherwise.
    Bytes(Vec<u8>),
}

impl<'de> Deserialize<'de> for Raw {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> core::result::Result<Self, D::Error> {
        match Part::deserialize(deserializer)? {
            Part::Text(raw) => Ok(raw),
            Part::Inherited(_) => Err(D::Error::custom("a number, and not a text")),
        }
    }
}

/// By what comes, and not by trying one form after the other: an order has a hundred of them.
impl<'de> Deserialize<'de> for Part {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> core::result::Result<Self, D::Error> {
        deserializer.deserialize_any(Pieces)
    }
}

struct Pieces;

impl<'de> Visitor<'de> for Pieces {
    type Value = Part;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a text, its bytes or a number")
    }

    fn visit_str<E>(self, text: &str) -> core::result::Result<Part, E> {
        Ok(Part::Text(Raw::Text(text.to_owned())))
    }

    fn visit_u64<E: Error>(self, number: u64) -> core::result::Result<Part, E> {
        usize::try_from(number).map(Part::Inherited).map_err(E::custom)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, bytes: A) -> core::result::Result<Part, A::Error> {
        let bytes = Vec::deserialize(SeqAccessDeserializer::new(bytes))?;
        Ok(Part::Text(Raw::Bytes(bytes)))
    }
}

impl Raw {
    /// As the kernel takes it, without the NUL.
    pub fn bytes(&self) -> &[u8] {
        match self {
            Self::Text(text) => text.as_bytes(),
            Self::Bytes(bytes) => bytes,
        }
    }
}

impl From<&[u8]> for Raw {
    fn from(bytes: &[u8]) -> Self {
        core::str::from_utf8(bytes)
            .map_or_else(|_| Self::Bytes(bytes.to_vec()), |text| Self::Text(text.to_owned()))
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
