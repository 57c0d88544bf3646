//! Virtual manifests: what a script file without a manifest says about itself.
//!
//! Only read, never imported or run. The document holds the keys that were written, under their manifest names, and
//! nothing else: what is not written is not hashed.

mod header;
mod literal;
mod python;
mod strings;

use kiwi_model::manifest::{Problem, Source};
use kiwi_model::yaml::{Document, Place};
use kiwi_model::{Manifest, ManifestError};
use serde_json::{Map, Value};

use crate::kind::Kind;

/// A document read from a script, with what its errors need to point at the right line.
pub(crate) struct Virtual {
    document: Document,
    places: Places,
}

/// Where the keys of a virtual manifest stand in the script.
enum Places {
    /// Each top-level key at its own place.
    Keys(Vec<(String, Place)>),
    /// Line by line of a comment block: the line in the script, and how many columns the comment takes up.
    Lines(Vec<(usize, usize)>),
}

/// Reads what a script says about itself.
pub(crate) fn read(
    kind: Kind,
    bytes: &[u8],
    source: &Source,
) -> Result<(Value, Manifest, Vec<String>), ManifestError> {
    let found = match kind {
        Kind::Python => python::read(bytes, &source.file)?
            .beside(header::read(bytes, "#", &source.file)?, &source.file)?,
        Kind::Shell => header::read(bytes, "#", &source.file)?,
        _ => header::read(bytes, "//", &source.file)?,
    };
    Manifest::read(&found.document, source).map_err(|error| found.placed(error, source))
}

impl Virtual {
    fn of_keys(keys: Vec<(String, Value, Place)>) -> Self {
        let places = keys.iter().map(|(key, _, place)| (key.clone(), *place)).collect();
        let map: Map<String, Value> = keys.into_iter().map(|(key, value, _)| (key, value)).collect();
        Self { document: Document::synthetic(Value::Object(map)), places: Places::Keys(places) }
    }

    /// The same with the keys of a comment block, none of which may be here already.
    fn beside(self, block: Self, file: &str) -> Result<Self, ManifestError> {
        let (Places::Keys(here), Places::Lines(lines)) = (&self.places, &block.places) else {
            return Ok(self);
        };
        if lines.is_empty() {
            return Ok(self);
        }
        // What is no list of keys has nothing that could be beside others, and is told as it is.
        let (Value::Object(own), Value::Object(added)) = (&self.document.value, &block.document.value) else {
            return Ok(block);
        };
        let place = |key: &str| match here.iter().find(|(known, _)| known == key) {
            Some((_, place)) => *place,
            None => header::original(lines, block.document.place(&format!("/{key}"))),
        };
        if let Some(twice) = own.keys().find(|key| added.contains_key(*key)) {
            return Err(ManifestError::one(
                file,
                format!("`{twice}` is given twice, here and in the comment block"),
                Some("keep one of the two".into()),
                place(twice),
            ));
        }
        let all = own.iter().chain(added);
        Ok(Self::of_keys(all.map(|(key, value)| (key.clone(), value.clone(), place(key))).collect()))
    }

    fn placed(&self, error: ManifestError, source: &Source) -> ManifestError {
        let problems = match &self.places {
            Places::Lines(lines) => error
                .problems
                .into_iter()
                .map(|problem| Problem { place: header::original(lines, problem.place), ..problem })
                .collect(),
            Places::Keys(keys) => {
                let blamed =
                    keys.iter().flat_map(|(key, place)| self.blame(key, *place, source)).collect::<Vec<_>>();
                let place_of = |problem: &Problem| {
                    blamed.iter().find(|(message, _)| *message == problem.message).map(|(_, place)| *place)
                };
                error
                    .problems
                    .into_iter()
                    .map(|problem| Problem { place: place_of(&problem).unwrap_or(problem.place), ..problem })
                    .collect()
            }
        };
        ManifestError { file: error.file, problems }
    }

    /// What is wrong with one key alone. Every key of a script is optional, so each can be read by itself; this is how
    /// a problem finds the line it belongs to.
    fn blame(&self, key: &str, place: Place, source: &Source) -> Vec<(String, Place)> {
        let alone: Map<String, Value> =
            self.document.value.get(key).map(|value| (key.to_owned(), value.clone())).into_iter().collect();
        match Manifest::read(&Document::synthetic(Value::Object(alone)), source) {
            Ok(_) => Vec::new(),
            Err(error) => error.problems.into_iter().map(|problem| (problem.message, place)).collect(),
        }
    }
}
