//! The index file: one line per lockfile, for people and for speed. Nothing in it is believed that cannot be so.

use jiff::Timestamp;
use kiwi_model::Space;
use kiwi_model::lockfile::is_short_hash;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};
use std::fmt::Write as _;
use std::io::Read as _;

use super::place::{inside, path_of};
use super::reconcile::View;
use super::time;
use crate::root::Root;

pub(super) const NAME: &str = ".index.json";
const VERSION: &str = "1";
/// A million lockfiles stay below this.
const MAX_BYTES: u64 = 512 << 20;

/// What the index says about one lockfile.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Noted {
    pub(super) chain_hash: String,
    pub(super) created_at: Timestamp,
    pub(super) last_validated: Timestamp,
}

/// The index as far as it can be believed.
#[derive(Default)]
pub(super) struct Index {
    /// Files modified later were not seen by it; `None` where all have to be looked at.
    pub(super) updated_at: Option<Timestamp>,
    pub(super) noted: HashMap<String, Noted>,
    pub(super) health: Health,
}

/// What state the file is in.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Health {
    /// There is none.
    #[default]
    Missing,
    /// All of it can be believed.
    Sound,
    /// Some of it cannot.
    Broken,
}

#[derive(Deserialize)]
struct File<'a> {
    #[serde(borrow)]
    version: Cow<'a, str>,
    #[serde(borrow)]
    updated_at: Cow<'a, str>,
    #[serde(borrow)]
    lockfiles: BTreeMap<String, Line<'a>>,
}

#[derive(Serialize, Deserialize)]
struct Line<'a> {
    #[serde(borrow, default)]
    path: Cow<'a, str>,
    #[serde(borrow, default)]
    chain_hash: Cow<'a, str>,
    #[serde(borrow, default)]
    created_at: Cow<'a, str>,
    #[serde(borrow, default)]
    last_validated: Cow<'a, str>,
    #[serde(borrow, default)]
    scope: Cow<'a, str>,
}

/// Reads the index; one that is missing or broken says nothing.
pub(super) fn read(root: &Root, scope: Space, now: Timestamp) -> Index {
    let broken = || Index { health: Health::Broken, ..Index::default() };
    let opened = match root.open_file(&inside(NAME)) {
        Ok(opened) => opened,
        Err(error) if error.is_absent() => return Index::default(),
        Err(_) => return broken(),
    };
    let mut bytes = Vec::new();
    if opened.file.take(MAX_BYTES).read_to_end(&mut bytes).is_err() {
        return broken();
    }
    match serde_json::from_slice::<File<'_>>(&bytes) {
        Ok(file) if file.version == VERSION => believe(file, scope, now),
        _ => broken(),
    }
}

fn believe(file: File<'_>, scope: Space, now: Timestamp) -> Index {
    let updated_at = time::parse(&file.updated_at).filter(|at| *at <= now);
    let lines = file.lockfiles.len();
    let latest = now.saturating_add(time::DAY).unwrap_or(now);
    let noted: HashMap<String, Noted> = file
        .lockfiles
        .into_iter()
        .filter(|(key, line)| line.path == path_of(key) && line.scope == scope.as_str())
        .filter_map(|(key, line)| {
            let noted = Noted {
                chain_hash: is_short_hash(&line.chain_hash).then(|| line.chain_hash.into_owned())?,
                created_at: time::parse(&line.created_at)?,
                last_validated: time::parse(&line.last_validated).filter(|at| *at <= latest)?,
            };
            Some((key, noted))
        })
        .collect();
    let is_sound = updated_at.is_some() && noted.len() == lines;
    Index { updated_at, noted, health: if is_sound { Health::Sound } else { Health::Broken } }
}

/// The text of the index. Broken lockfiles have no line: they are looked at every time.
pub(super) fn text(view: &View, scope: Space) -> serde_json::Result<String> {
    let mut text = format!(
        "{{\n  \"version\": \"{VERSION}\",\n  \"updated_at\": \"{}\",\n  \"lockfiles\": {{",
        view.updated_at
    );
    let mut separator = "\n";
    for (key, row) in view.rows.iter().filter(|(_, row)| row.problem.is_none()) {
        let line = Line {
            path: path_of(key).into(),
            chain_hash: row.chain_hash.as_str().into(),
            created_at: row.created_at.to_string().into(),
            last_validated: row.last_validated.to_string().into(),
            scope: scope.as_str().into(),
        };
        let (key, line) = (serde_json::to_string(key)?, serde_json::to_string(&line)?);
        let _ = write!(text, "{separator}    {key}: {line}");
        separator = ",\n";
    }
    text.push_str(if separator == "\n" { "}\n}\n" } else { "\n  }\n}\n" });
    Ok(text)
}
