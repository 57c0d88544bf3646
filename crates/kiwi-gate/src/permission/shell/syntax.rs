//! What a command line consists of, as far as judging it needs.

/// A word, or what is known of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Word {
    /// Exactly these characters, whatever happens.
    Fixed(String),
    /// Something that is only known when it runs.
    Open {
        /// What it begins with in any case.
        prefix: String,
        /// Whether it may become several words, or none.
        is_split: bool,
    },
}

impl Word {
    /// The characters, if they are known.
    pub fn fixed(&self) -> Option<&str> {
        match self {
            Self::Fixed(text) => Some(text),
            Self::Open { .. } => None,
        }
    }

    /// Whether it may become several words, or none.
    pub fn is_split(&self) -> bool {
        matches!(self, Self::Open { is_split: true, .. })
    }

    /// Whether it could be, or become, a word that begins like this.
    pub fn may_begin(&self, beginning: &str) -> bool {
        match self {
            Self::Fixed(text) => text.starts_with(beginning),
            Self::Open { prefix, is_split } => {
                *is_split || prefix.starts_with(beginning) || beginning.starts_with(prefix.as_str())
            }
        }
    }

    /// Whether it could be, or become, an option.
    pub fn may_be_option(&self) -> bool {
        self.may_begin("-")
    }
}

impl std::fmt::Display for Word {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Fixed(text) => f.write_str(text),
            Self::Open { prefix, .. } => write!(f, "{prefix}…"),
        }
    }
}

/// One simple command.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Simple {
    /// `NAME=value` in front of it, or alone.
    pub assignments: Vec<String>,
    /// The program and its arguments.
    pub words: Vec<Word>,
}

/// Everything that a command line does, in no order: each of it may happen.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Script {
    /// What it runs.
    pub commands: Vec<Simple>,
    /// Files it opens for reading.
    pub reads: Vec<String>,
    /// Files it opens for writing.
    pub writes: Vec<String>,
    /// Variables it sets otherwise: by a loop, or while expanding.
    pub sets: Vec<String>,
}
