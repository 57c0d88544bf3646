//! What is installed, compared with what is pinned.

use kiwi_model::{Language, Pin};
use std::collections::{BTreeMap, BTreeSet};

use crate::error::ExecError;

/// A package that is not as it was pinned; a version and, where it was pinned, a digest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PinDifference {
    /// Which package.
    pub name: String,
    /// What is pinned, if it is.
    pub pinned: Option<String>,
    /// What was installed, if it was.
    pub installed: Option<String>,
}

impl std::fmt::Display for PinDifference {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let show = |side: &Option<String>| side.clone().unwrap_or_else(|| "nothing".to_owned());
        write!(f, "`{}` is {} where {} is pinned", self.name, show(&self.installed), show(&self.pinned))
    }
}

/// Whether exactly the pinned packages are there. All differences are told at once.
pub fn compare(language: Language, pinned: &[Pin], installed: &[Pin]) -> Result<(), ExecError> {
    let by_name = |pins: &'_ [Pin]| -> BTreeMap<String, Pin> {
        pins.iter().map(|pin| (normal(language, &pin.name), pin.clone())).collect()
    };
    let (pinned, installed) = (by_name(pinned), by_name(installed));
    let names: BTreeSet<&String> = pinned.keys().chain(installed.keys()).collect();
    let differences: Vec<_> = names
        .into_iter()
        .filter_map(|name| {
            let (wanted, there) = (pinned.get(name), installed.get(name));
            // A pin without a digest does not ask for one.
            let asks = wanted.is_none_or(|pin| pin.integrity.is_some());
            let (pinned, installed) = (wanted.map(|pin| shown(pin, asks)), there.map(|pin| shown(pin, asks)));
            (pinned != installed).then(|| PinDifference { name: name.clone(), pinned, installed })
        })
        .collect();
    if differences.is_empty() { Ok(()) } else { Err(ExecError::PinsDiffer { differences }) }
}

/// The one spelling of a name: an index of Python packages takes many for the same.
fn normal(language: Language, name: &str) -> String {
    match language {
        Language::Node => name.to_owned(),
        Language::Python => {
            let words: Vec<&str> = name.split(['-', '_', '.']).filter(|word| !word.is_empty()).collect();
            words.join("-").to_ascii_lowercase()
        }
    }
}

fn shown(pin: &Pin, with_digest: bool) -> String {
    match pin.integrity {
        Some(integrity) if with_digest => format!("{} {integrity}", pin.version),
        _ => pin.version.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kiwi_model::Digest;

    fn pin(name: &str, version: &str, bytes: Option<&[u8]>) -> Pin {
        Pin { name: name.into(), version: version.into(), integrity: bytes.map(Digest::of) }
    }

    #[test]
    fn every_difference_is_named() {
        let installed = [pin("Zope.Interface", "6.0", Some(b"z")), pin("b", "2", Some(b"b"))];
        let same = [pin("b", "2", None), pin("zope-interface", "6.0", Some(b"z"))];
        assert!(compare(Language::Python, &same, &installed).is_ok());
        assert!(compare(Language::Node, &same, &installed).is_err());
        let other = [pin("b", "2", Some(b"B")), pin("c", "3", None)];
        let Err(ExecError::PinsDiffer { differences }) = compare(Language::Python, &other, &installed) else {
            panic!("they differ");
        };
        let found: Vec<_> = differences
            .iter()
            .map(|found| (found.name.as_str(), found.pinned.as_deref(), found.installed.as_deref()))
            .collect();
        let [old, new] = [b"B", b"b"].map(|bytes| format!("2 {}", Digest::of(bytes)));
        let z = format!("6.0 {}", Digest::of(b"z"));
        let expect =
            [("b", Some(&*old), Some(&*new)), ("c", Some("3"), None), ("zope-interface", None, Some(&*z))];
        assert_eq!(found, expect);
    }
}
