//! Where an item lives, and which space may rest on which.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The three spaces. The derived order is precedence: `System < User < Project`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Space {
    /// Inside the binary; immutable.
    System,
    /// `~/.ai`.
    User,
    /// `./.ai`.
    Project,
}

impl Space {
    /// Lookup order of a call: the nearest space first.
    pub const LOOKUP: [Self; 3] = [Self::Project, Self::User, Self::System];

    /// The number of the precedence table: project 3, user 2, system 1.
    pub const fn precedence(self) -> u8 {
        match self {
            Self::Project => 3,
            Self::User => 2,
            Self::System => 1,
        }
    }

    /// This space and those below it, nearest first: where an executor may be looked up.
    pub fn downward(self) -> impl Iterator<Item = Self> {
        Self::LOOKUP.into_iter().filter(move |space| *space <= self)
    }

    /// The spaces above this one: where an executor must not come from.
    pub fn upward(self) -> impl Iterator<Item = Self> {
        Self::LOOKUP.into_iter().filter(move |space| *space > self)
    }

    /// The spelling used in files and output.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Project => "project",
            Self::User => "user",
            Self::System => "system",
        }
    }
}

impl std::fmt::Display for Space {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(self.as_str())
    }
}
