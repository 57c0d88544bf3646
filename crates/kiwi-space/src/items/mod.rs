//! Directives and knowledge: the items that are text. Found with the same care as tools, read whole, hashed.

mod directive;
mod knowledge;
pub(crate) mod walk;

use kiwi_model::{Digest, ErrorKind, Explain as _, Fault, Space};
use serde::Serialize;
use serde_json::{Map, Value, json};
use std::sync::Arc;

use crate::error::{SpaceError, show};
use crate::root::Root;
use crate::spaces::Spaces;

/// The two kinds of text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum TextKind {
    /// What an agent is to do.
    Directive,
    /// What an agent should know.
    Knowledge,
}

impl TextKind {
    /// The stable spelling.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Directive => "directive",
            Self::Knowledge => "knowledge",
        }
    }

    /// The folder of a space that holds them.
    pub const fn folder(self) -> &'static str {
        match self {
            Self::Directive => "directives",
            Self::Knowledge => "knowledge",
        }
    }
}

/// Something a directive has to be told.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct TextInput {
    /// Its name.
    pub name: String,
    /// `string`, `integer`, …
    #[serde(rename = "type")]
    pub kind: String,
    /// Whether it can be left out.
    pub required: bool,
    /// What it is for.
    pub description: String,
}

/// A directive or a knowledge entry.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TextItem {
    /// Which kind.
    pub kind: TextKind,
    /// Its name: that of its file.
    pub id: String,
    /// Its version, where it has one.
    pub version: Option<String>,
    /// A title for people.
    pub title: Option<String>,
    /// One line about it.
    pub description: Option<String>,
    /// Declared category, else the folder path.
    pub category: String,
    /// Search words.
    pub tags: Vec<String>,
    /// What a directive has to be told.
    pub inputs: Vec<TextInput>,
    /// What else its header says.
    pub metadata: Map<String, Value>,
    /// Where it was found.
    pub space: Space,
    /// Its file, as a person should see it.
    pub path: String,
    /// Digest of its bytes.
    pub sha256: Digest,
    /// The whole text.
    pub text: String,
}

/// One thing that lies where text lies.
#[derive(Debug, Clone)]
pub struct ListedText {
    /// The id its name gives.
    pub id_hint: String,
    /// Its file.
    pub path: String,
    /// The item, or why it is none.
    pub result: Result<Arc<TextItem>, Fault>,
}

/// What is known of a file before it is read.
pub(crate) struct Place<'a> {
    pub kind: TextKind,
    /// The name that its file, or its folder, gives it.
    pub id: &'a str,
    /// The folder path below the kind's own.
    pub category: &'a str,
    pub space: Space,
    /// As a person should see it.
    pub path: &'a str,
    /// Whether it is a `SKILL.md`.
    pub is_skill: bool,
}

impl Place<'_> {
    /// Reads it.
    pub(crate) fn read(&self, bytes: &[u8]) -> Result<TextItem, Fault> {
        let text = std::str::from_utf8(bytes)
            .map_err(|_| self.broken("it is not UTF-8"))?
            .trim_start_matches('\u{feff}');
        let item = match self.kind {
            TextKind::Directive if self.is_skill => knowledge::read(self, text),
            TextKind::Directive => directive::read(self, text),
            TextKind::Knowledge => knowledge::read(self, text),
        }?;
        Ok(TextItem { sha256: Digest::of(bytes), ..item })
    }

    pub(crate) fn broken(&self, why: impl std::fmt::Display) -> Fault {
        Fault::new(ErrorKind::InvalidManifest, format!("`{}`: {why}", self.path))
            .with_hint(format!("mend the {}; others are not touched by it", self.kind.as_str()))
            .with_details(json!({"file": self.path}))
    }

    /// The item without what its text says.
    pub(crate) fn bare(&self, text: &str) -> TextItem {
        TextItem {
            kind: self.kind,
            id: self.id.to_owned(),
            version: None,
            title: None,
            description: None,
            category: self.category.to_owned(),
            tags: Vec::new(),
            inputs: Vec::new(),
            metadata: Map::new(),
            space: self.space,
            path: self.path.to_owned(),
            sha256: Digest::of(text.as_bytes()),
            text: text.to_owned(),
        }
    }
}

impl Spaces {
    /// Every item of a kind in a space, by id and path; broken ones are among them.
    pub fn texts(&self, kind: TextKind, space: Space) -> Vec<ListedText> {
        let mut listed = match self.ai(space) {
            None if space == Space::System => self.system_texts(kind),
            None => Vec::new(),
            Some(ai) => match Root::open(ai)
                .and_then(|root| root.map_or(Ok(Vec::new()), |root| walk::all(&root, kind, space)))
            {
                Ok(listed) => listed,
                Err(error) => {
                    vec![ListedText { id_hint: String::new(), path: show(ai), result: Err(error.fault()) }]
                }
            },
        };
        listed.sort_by(|a, b| (&a.id_hint, &a.path).cmp(&(&b.id_hint, &b.path)));
        mark_twins(&mut listed, space);
        listed
    }

    /// The item of this name: in the space that is named, else in the nearest that has it.
    pub fn text(&self, kind: TextKind, id: &str, space: Option<Space>) -> Result<Arc<TextItem>, Fault> {
        let order = [Space::Project, Space::User, Space::System];
        for space in order.into_iter().filter(|it| space.is_none_or(|wanted| wanted == *it)) {
            if let Some(found) = self.texts(kind, space).into_iter().find(|it| it.id_hint == id) {
                return found.result;
            }
        }
        let shown: String = id.chars().take(100).collect();
        Err(Fault::new(ErrorKind::NotFound, format!("there is no {} `{shown}`", kind.as_str()))
            .with_hint("search finds what there is"))
    }

    fn system_texts(&self, kind: TextKind) -> Vec<ListedText> {
        let paths = self.system_files(kind.folder()).into_iter();
        paths.filter_map(|path| self.system_text(kind, path)).collect()
    }

    /// Reads one embedded file; `None` if its name is that of no item.
    pub(crate) fn system_text(&self, kind: TextKind, path: &str) -> Option<ListedText> {
        let name = walk::Name::of(walk::below(path, kind)?)?;
        let shown = format!("system:{path}");
        let place = name.place(kind, Space::System, &shown);
        let bytes = self.system_file(path).map_err(|error: SpaceError| error.fault());
        let result = bytes.and_then(|bytes| place.read(bytes.unwrap_or_default())).map(Arc::new);
        Some(ListedText { id_hint: name.id.to_owned(), path: shown.clone(), result })
    }
}

/// Two items of one name: neither is the one that is meant.
fn mark_twins(listed: &mut [ListedText], space: Space) {
    let twins: Vec<(String, String, String)> = listed
        .windows(2)
        .filter_map(|pair| match pair {
            [a, b] if a.id_hint == b.id_hint && !a.id_hint.is_empty() => {
                Some((a.id_hint.clone(), a.path.clone(), b.path.clone()))
            }
            _ => None,
        })
        .collect();
    for (id, first, second) in twins {
        let message = format!("`{id}` is defined twice in the {space} space: `{first}` and `{second}`");
        for item in listed.iter_mut().filter(|item| item.id_hint == id) {
            let fault = Fault::new(ErrorKind::Ambiguous, message.clone());
            item.result = Err(fault.with_hint("remove or rename one of them"));
        }
    }
}

#[cfg(test)]
mod tests;
