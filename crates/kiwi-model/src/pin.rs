//! One installed language package, as lockfiles name it.

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use std::str::FromStr;

use crate::Digest;

/// `name==version sha256:…`: exactly this package, with exactly these files.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Pin {
    /// Its name, as its ecosystem spells it.
    pub name: String,
    /// Its version, as its ecosystem spells it.
    pub version: String,
    /// Digest over its installed files; none where nobody wrote it down.
    pub integrity: Option<Digest>,
}

/// Why a text is not a pin.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not `name==version sha256:…`")]
pub struct PinError(String);

impl FromStr for Pin {
    type Err = PinError;

    fn from_str(text: &str) -> Result<Self, PinError> {
        let wrong = || PinError(text.escape_debug().to_string());
        let mut words = text.split(' ');
        let (name, version) = words.next().and_then(|package| package.split_once("==")).ok_or_else(wrong)?;
        let integrity = words.next().map(Digest::parse).transpose().map_err(|_| wrong())?;
        let is_word = |word: &str| !word.is_empty() && word.chars().all(|c| c.is_ascii_graphic() && c != '=');
        if !is_word(name) || !is_word(version) || words.next().is_some() {
            return Err(wrong());
        }
        Ok(Self { name: name.to_owned(), version: version.to_owned(), integrity })
    }
}

impl std::fmt::Display for Pin {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}=={}", self.name, self.version)?;
        self.integrity.map_or(Ok(()), |integrity| write!(f, " {integrity}"))
    }
}

impl Serialize for Pin {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Pin {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pins_round_trip_and_nonsense_is_refused() {
        let hash = Digest::of(b"x").to_string();
        for good in [
            "pandas==2.2.3".to_owned(),
            format!("pandas==2.2.3 {hash}"),
            format!("@scope/left-pad==1.3.0-beta.1 {hash}"),
            "x==1!2.0+local.5".to_owned(),
        ] {
            assert_eq!(good.parse::<Pin>().map(|pin| pin.to_string()), Ok(good));
        }
        for bad in
            ["", "pandas", "pandas==", "==1", "a==1 ", "a==1 sha256:00", "a==1  b", "a === 1", "a==1\n"]
        {
            assert!(bad.parse::<Pin>().is_err(), "{bad:?}");
        }
    }
}
