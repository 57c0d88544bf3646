//! One difference between what was agreed and what is, for people and for programs.

use kiwi_model::ToolId;
use serde::Serialize;

/// What differs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Field {
    /// How many links the chain has.
    Length,
    /// Which tool stands at a position.
    Id,
    /// Its version.
    Version,
    /// Its identity.
    Integrity,
    /// One file of it, or its manifest.
    File,
    /// Where it was found.
    Space,
    /// The version of an interpreter.
    Interpreter,
    /// An installed language package.
    Package,
    /// The definition of an upstream tool.
    Upstream,
}

/// One difference.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Difference {
    /// Position in the chain, leaf first, from 0; none for what concerns the whole.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub position: Option<usize>,
    /// The tool at that position.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool: Option<ToolId>,
    /// What differs.
    pub field: Field,
    /// Which file, package or interpreter.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// As it was agreed; none where there was none.
    pub old: Option<String>,
    /// As it is; none where there is none.
    pub new: Option<String>,
}

impl Difference {
    /// A difference that concerns the whole.
    pub(super) fn whole(field: Field, old: Option<String>, new: Option<String>) -> Self {
        Self { position: None, tool: None, field, name: None, old, new }
    }

    /// The same, of something that has a name.
    pub(super) fn named(field: Field, name: &str, old: Option<String>, new: Option<String>) -> Self {
        Self { name: Some(name.to_owned()), ..Self::whole(field, old, new) }
    }
}

impl std::fmt::Display for Difference {
    /// `link 2 `python_runtime`: version 1.4.0 → 1.5.0`.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if let (Some(position), Some(tool)) = (self.position, &self.tool) {
            write!(f, "link {} `{tool}`: ", position + 1)?;
        }
        let name = self.name.as_deref().unwrap_or_default();
        match self.field {
            Field::Length => f.write_str("links in the chain")?,
            Field::Id => f.write_str("tool")?,
            Field::Version => f.write_str("version")?,
            Field::Integrity => f.write_str("integrity")?,
            Field::File if name.is_empty() => f.write_str("the manifest changed")?,
            Field::File => write!(f, "file `{name}`")?,
            Field::Space => f.write_str("space")?,
            Field::Interpreter => f.write_str(name)?,
            Field::Package => write!(f, "package `{name}`")?,
            Field::Upstream => f.write_str("definition of the upstream tool")?,
        }
        if self.old.is_none() && self.new.is_none() {
            return Ok(());
        }
        let show = |side: &Option<String>| side.as_deref().map_or_else(|| "none".to_owned(), shorten);
        write!(f, " {} → {}", show(&self.old), show(&self.new))
    }
}

/// Hashes cut to what a person compares.
fn shorten(text: &str) -> String {
    let word = |word: &str| match word.strip_prefix("sha256:").and_then(|hex| hex.get(..12)) {
        Some(hex) => format!("sha256:{hex}…"),
        None => word.to_owned(),
    };
    text.split(' ').map(word).collect::<Vec<_>>().join(" ")
}
