//! The forms a tool can have on disk, and where one lies.

use kiwi_model::{ToolId, Version};

/// Where tools lie in a space: `tools/`, and `scripts/` as the legacy spelling of it.
pub(crate) const TREES: [&str; 2] = ["tools", "scripts"];
/// The folder of shared modules in a tree: not tools.
pub(crate) const LIB: &str = "lib";
/// What makes a folder a tool.
pub(crate) const MANIFEST: &str = "tool.yaml";

/// The forms of a tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Kind {
    Folder,
    Python,
    Shell,
    JavaScript,
    Module,
    TypeScript,
    Yaml,
    Yml,
}

impl Kind {
    const FILES: [(Self, &'static str); 7] = [
        (Self::Python, "py"),
        (Self::Shell, "sh"),
        (Self::JavaScript, "js"),
        (Self::Module, "mjs"),
        (Self::TypeScript, "ts"),
        (Self::Yaml, "yaml"),
        (Self::Yml, "yml"),
    ];

    /// Splits a file name into the tool's name and its form. Type declarations (`x.d.ts`) are not tools.
    pub(crate) fn of_file(name: &str) -> Option<(&str, Self)> {
        let (stem, extension) = name.rsplit_once('.')?;
        let (kind, _) = Self::FILES.iter().find(|(_, known)| *known == extension)?;
        let is_declaration =
            *kind == Self::TypeScript && stem.rsplit_once('.').is_some_and(|(_, inner)| inner == "d");
        (!stem.is_empty() && !is_declaration).then_some((stem, *kind))
    }

    pub(crate) fn extension(self) -> Option<&'static str> {
        Self::FILES.iter().find(|(kind, _)| *kind == self).map(|(_, extension)| *extension)
    }

    /// Whether the file is a manifest, rather than a script that has a virtual one.
    pub(crate) fn is_manifest(self) -> bool {
        matches!(self, Self::Folder | Self::Yaml | Self::Yml)
    }

    /// The number that stands for it in the index file.
    pub(crate) fn code(self) -> u8 {
        match self {
            Self::Folder => 0,
            Self::Python => 1,
            Self::Shell => 2,
            Self::JavaScript => 3,
            Self::Module => 4,
            Self::TypeScript => 5,
            Self::Yaml => 6,
            Self::Yml => 7,
        }
    }

    pub(crate) fn of_code(code: u8) -> Option<Self> {
        let mut all = std::iter::once(Self::Folder).chain(Self::FILES.iter().map(|(kind, _)| *kind));
        all.find(|kind| kind.code() == code)
    }
}

/// One tool on disk, found by its place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Item {
    /// In `tools/` or `scripts/`.
    Tool {
        id: ToolId,
        /// The category folder, from the space's root (`tools/data/etl`).
        folder: String,
        kind: Kind,
    },
    /// In `packages/`.
    Package { id: ToolId, version: Version },
}

impl Item {
    pub(crate) fn id(&self) -> &ToolId {
        match self {
            Self::Tool { id, .. } | Self::Package { id, .. } => id,
        }
    }

    pub(crate) fn kind(&self) -> Kind {
        match self {
            Self::Tool { kind, .. } => *kind,
            Self::Package { .. } => Kind::Folder,
        }
    }

    /// Its file or folder, from the space's root.
    pub(crate) fn relative(&self) -> String {
        match self {
            Self::Tool { id, folder, kind } => match kind.extension() {
                None => format!("{folder}/{id}"),
                Some(extension) => format!("{folder}/{id}.{extension}"),
            },
            Self::Package { id, version } => format!("packages/{id}/{version}"),
        }
    }

    /// Its manifest or script, from the space's root.
    pub(crate) fn main_file(&self) -> String {
        match self.kind() {
            Kind::Folder => format!("{}/{MANIFEST}", self.relative()),
            _ => self.relative(),
        }
    }

    /// The category its folder gives; packages have none.
    pub(crate) fn category(&self) -> Option<&str> {
        match self {
            Self::Tool { folder, .. } => Some(folder.split_once('/').map_or("", |(_, category)| category)),
            Self::Package { .. } => None,
        }
    }

    /// What a candidate carries to be found again.
    pub(crate) fn handle(&self) -> String {
        match self.kind() {
            Kind::Folder => format!("folder:{}", self.relative()),
            _ => format!("file:{}", self.relative()),
        }
    }

    /// Reads a handle. `None` for anything that [`Item::handle`] does not write.
    pub(crate) fn of_handle(handle: &str) -> Option<Self> {
        let (form, relative) = handle.split_once(':')?;
        if !crate::root::is_inside(relative) {
            return None;
        }
        let (folder, name) = relative.rsplit_once('/')?;
        let item = match (form, folder.split_once('/')) {
            ("folder", Some(("packages", id))) => {
                Self::Package { id: ToolId::parse(id).ok()?, version: Version::parse(name).ok()? }
            }
            ("folder", _) => {
                Self::Tool { id: ToolId::parse(name).ok()?, folder: folder.to_owned(), kind: Kind::Folder }
            }
            ("file", _) => {
                let (stem, kind) = Kind::of_file(name)?;
                Self::Tool { id: ToolId::parse(stem).ok()?, folder: folder.to_owned(), kind }
            }
            _ => return None,
        };
        let in_tree = match &item {
            Self::Tool { folder, .. } => TREES.contains(&folder.split('/').next().unwrap_or_default()),
            Self::Package { .. } => true,
        };
        in_tree.then_some(item)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn handles_round_trip_and_nothing_else_is_one() {
        for handle in [
            "folder:tools/a",
            "file:tools/data/etl/a.b.py",
            "folder:packages/a/1.0.0-rc.1",
            "file:scripts/x.yml",
        ] {
            assert_eq!(Item::of_handle(handle).map(|item| item.handle()).as_deref(), Some(handle));
        }
        for handle in [
            "",
            "folder:",
            "file:tools/../x.py",
            "file:/etc/x.py",
            "file:cache/x.py",
            "folder:packages/a/latest",
            "file:tools/X.py",
            "x:tools/a",
        ] {
            assert_eq!(Item::of_handle(handle), None, "{handle}");
        }
    }

    #[test]
    fn kinds_round_trip() {
        for code in 0..8 {
            assert_eq!(Kind::of_code(code).map(Kind::code), Some(code));
        }
        assert_eq!(Kind::of_code(8), None);
        assert_eq!(Kind::of_file("a.b.mjs"), Some(("a.b", Kind::Module)));
        for name in ["a", ".py", "a.d.ts", "README.md"] {
            assert_eq!(Kind::of_file(name), None, "{name}");
        }
    }
}
