//! Versions and requirements as a database compares them: by their bytes.
//!
//! A version becomes a text whose order is the order of versions. A requirement becomes one interval of such texts, and the
//! releases whose early versions it names, since an early version is chosen only by who names its release.

use kiwi_model::{Prerelease, Version, VersionReq};
use semver::{Comparator, Op};

/// Below the key of every version.
const LOWEST: &str = "";
/// Above the key of every version.
const HIGHEST: &str = "~";

/// The text by which a version is compared; parts above a hundred million million million do not fit.
pub fn version_key(version: &Version) -> String {
    let core = core_key(version.major, version.minor, version.patch);
    format!("{core}{}", early_key(&version.pre))
}

/// What a requirement lets through.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bounds {
    /// The key of a version must be at least this.
    pub from: String,
    /// And below this.
    pub below: String,
    /// An early version (`1.0.0-beta.1`) must belong to one of these releases: their keys, each after a `|`.
    pub early: String,
}

impl Bounds {
    /// Everything that is released, for who requires nothing.
    pub fn any() -> Self {
        Self { from: LOWEST.to_owned(), below: HIGHEST.to_owned(), early: String::new() }
    }

    /// What a requirement lets through.
    pub fn of(requirement: &VersionReq) -> Self {
        let mut bounds = Self::any();
        for comparator in &requirement.comparators {
            let (from, below) = interval(comparator);
            bounds.from = bounds.from.max(from);
            bounds.below = bounds.below.min(below);
            let (major, minor) = (comparator.major, comparator.minor.unwrap_or(0));
            let is_named = !comparator.pre.is_empty()
                && requirement.comparators.iter().all(|other| takes_early(other, major, minor));
            if is_named {
                bounds.early.push('|');
                bounds.early.push_str(&core_key(major, minor, comparator.patch.unwrap_or(0)));
            }
        }
        bounds
    }

    /// Whether a version is let through: what the database computes from the same texts.
    pub fn has(&self, version: &Version) -> bool {
        let key = version_key(version);
        let core = core_key(version.major, version.minor, version.patch);
        let is_named = version.pre.is_empty() || self.early.contains(&format!("|{core}"));
        self.from <= key && key < self.below && is_named
    }
}

/// Whether a comparator that leaves the last numbers out (`=1.0`, `>=1`) takes early versions of `major.minor.…`; those that
/// name all three are intervals, and need no such question.
fn takes_early(comparator: &Comparator, major: u64, minor: u64) -> bool {
    if comparator.patch.is_some() {
        return true;
    }
    let (given, asked) = match comparator.minor {
        Some(least) => ((comparator.major, least), (major, minor)),
        None => ((comparator.major, 0), (major, 0)),
    };
    match comparator.op {
        Op::Greater | Op::GreaterEq => asked > given,
        Op::Less | Op::LessEq => asked < given,
        Op::Caret => true,
        // An early version is older than the release that these stand for.
        _ => false,
    }
}

/// `from` and `below` of one comparator.
fn interval(comparator: &Comparator) -> (String, String) {
    let Comparator { op, major, minor, patch, pre } = comparator;
    let lowest = core_key(*major, minor.unwrap_or(0), patch.unwrap_or(0));
    let exact = format!("{lowest}{}", early_key(pre));
    // The least text above a key: nothing stands between a text and itself with the lowest character behind it.
    let after = |key: &str| format!("{key} ");
    // Early versions of the next release stand before it, and are none of this one.
    let next_patch = || start(*major, minor.unwrap_or(0), patch.unwrap_or(0).saturating_add(1));
    let next_minor = || start(*major, minor.unwrap_or(0).saturating_add(1), 0);
    let next_major = || start(major.saturating_add(1), 0, 0);
    let next = |minor: Option<u64>, patch: Option<u64>| match (minor, patch) {
        (None, _) => next_major(),
        (Some(_), None) => next_minor(),
        (Some(_), Some(_)) => next_patch(),
    };
    let from = if patch.is_some() { exact.clone() } else { start(*major, minor.unwrap_or(0), 0) };
    match op {
        Op::Exact if patch.is_some() => (exact.clone(), after(&exact)),
        Op::Exact | Op::Wildcard => (from, next(*minor, *patch)),
        Op::Greater if patch.is_some() => (after(&exact), HIGHEST.to_owned()),
        Op::Greater => (next(*minor, *patch), HIGHEST.to_owned()),
        Op::GreaterEq => (from, HIGHEST.to_owned()),
        Op::Less => (LOWEST.to_owned(), from),
        Op::LessEq if patch.is_some() => (LOWEST.to_owned(), after(&exact)),
        Op::LessEq => (LOWEST.to_owned(), next(*minor, *patch)),
        Op::Tilde => (from, if minor.is_some() { next_minor() } else { next_major() }),
        Op::Caret => {
            let below = match (major, minor, patch) {
                (0, Some(0), Some(_)) => next_patch(),
                (0, Some(_), _) => next_minor(),
                _ => next_major(),
            };
            (from, below)
        }
        // An operator of a later library lets nothing through here.
        _ => (HIGHEST.to_owned(), LOWEST.to_owned()),
    }
}

/// What stands before every version of a release, its early ones too.
fn start(major: u64, minor: u64, patch: u64) -> String {
    core_key(major, minor, patch)
}

/// The part of a key that a version shares with its early ones.
pub fn core_key(major: u64, minor: u64, patch: u64) -> String {
    format!("{major:020}.{minor:020}.{patch:020}")
}

/// A release stands after all its early versions; numbers before words, fewer parts before more.
fn early_key(early: &Prerelease) -> String {
    if early.is_empty() {
        return "~".to_owned();
    }
    let part = |part: &str| match part.parse::<u64>() {
        Ok(number) => format!("0{number:020}"),
        Err(_) => format!("1{part}"),
    };
    format!("-{}", early.as_str().split('.').map(part).collect::<Vec<_>>().join("!"))
}

#[cfg(test)]
mod tests;
