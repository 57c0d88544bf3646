//! What is in a built environment, read from its files without running anything.

mod node;
mod python;

use kiwi_model::{Digest, Language, Pin};
use std::io;
use std::path::Path;

/// Every installed package with its exact version and the digest of its files, sorted.
pub fn list(language: Language, folder: &Path) -> io::Result<Vec<Pin>> {
    let mut found = match language {
        Language::Python => python::list(folder)?,
        Language::Node => node::list(&super::node::modules_of(folder))?,
    };
    found.sort_unstable();
    Ok(found)
}

/// A pin that can be written down and read again.
fn pin(name: &str, version: &str, integrity: Digest) -> io::Result<Pin> {
    format!("{name}=={version} {integrity}").parse().map_err(io::Error::other)
}
