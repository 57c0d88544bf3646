//! The languages whose packages Kiwi installs.

/// A language whose packages go into an environment of their own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Language {
    /// Packages of an index, in a virtual environment.
    Python,
    /// Packages of npm, in a `node_modules` folder.
    Node,
}

impl Language {
    /// Every language.
    pub const ALL: [Self; 2] = [Self::Python, Self::Node];

    /// The spelling used in files and output.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Python => "python",
            Self::Node => "node",
        }
    }

    /// The key of a runtime's `config` that asks for an environment.
    pub const fn config_key(self) -> &'static str {
        match self {
            Self::Python => "venv",
            Self::Node => "node_modules",
        }
    }
}

impl std::fmt::Display for Language {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(self.as_str())
    }
}
