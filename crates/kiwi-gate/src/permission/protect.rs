//! What no agent may touch, whatever else is allowed: the rules that hold it, the records of what it did, and the
//! user's own keys.
//!
//! Needs are judged, not allowances: a profile may allow `**`, but a call that needs to write `**` is refused, because
//! what is opened for it would hold the protected folders too. `src/**` meets none of them.

use std::os::unix::fs::MetadataExt as _;
use std::path::{Component, Path, PathBuf};

use super::glob::{Glob, escape, meet};
use super::kind::Kind;
use super::layer::objection;
use super::need::{Need, Thing};
use super::path::{Place, resolve};
use crate::admission::Objection;

/// Folders of the project that no agent writes.
const WRITTEN_BY_PEOPLE: [&str; 6] =
    [".ai/rules", ".ai/config", ".ai/logs", ".ai/sessions", ".ai/lockfiles", ".git"];
/// Folders of the user's space that an agent may read.
const SHARED: [&str; 3] = ["tools", "directives", "knowledge"];

/// The places that no agent may touch.
#[derive(Debug, Clone)]
pub struct Protected {
    project: Option<PathBuf>,
    user: Option<PathBuf>,
}

/// How a path lies to a folder.
#[derive(Debug, PartialEq, Eq)]
enum Lies {
    /// It is the folder, or below it: these parts of the way are left.
    Inside(Vec<String>),
    /// The folder is below it, by this way.
    Around,
    Apart,
}

impl Protected {
    /// For the project in this folder and the user space in that one, each the folder that holds `.ai`.
    pub fn new(project: Option<&Path>, user: Option<&Path>) -> Self {
        let real = |path: &Path| resolve(path).unwrap_or_else(|_| path.to_owned());
        Self { project: project.map(real), user: user.map(|user| real(&user.join(".ai"))) }
    }

    /// Why a need is refused, if it is.
    pub(crate) fn refuses(&self, need: &Need) -> Option<Objection> {
        let is_write = need.kind == Kind::FilesystemWrite;
        let met = match &need.thing {
            Thing::Path(place) => self.meets_path(place, is_write),
            Thing::Paths { base, glob } => self.meets_pattern(base, glob, is_write),
            _ => None,
        }?;
        let verb = if is_write { "written" } else { "read" };
        let why = format!("is never allowed to an agent: `{met}` is not to be {verb} by one");
        let told = objection(need, "the protection of the project and its user", &why);
        Some(told.with_hint("a person can do it; an agent works beside what holds it, not on it"))
    }

    /// The folders that are not to be touched.
    fn folders(&self, is_write: bool) -> impl Iterator<Item = PathBuf> {
        let of_project = self.project.iter().filter(move |_| is_write);
        let of_project = of_project.flat_map(|root| WRITTEN_BY_PEOPLE.map(|below| root.join(below)));
        of_project.chain(self.user.clone())
    }

    fn meets_path(&self, place: &Place, is_write: bool) -> Option<String> {
        let path = &place.real;
        for root in self.project.iter().filter(|_| is_write) {
            match lies(path, root) {
                Lies::Around => return Some(root.display().to_string()),
                Lies::Apart => {}
                Lies::Inside(rest) => {
                    let met = WRITTEN_BY_PEOPLE.into_iter().find(|own| {
                        let own: Vec<&str> = own.split('/').collect();
                        let shared = own.len().min(rest.len());
                        own.iter().zip(&rest).take(shared).all(|(own, part)| *own == fold(part))
                    });
                    if let Some(met) = met {
                        return Some(met.to_owned());
                    }
                }
            }
        }
        // By their real places too: one of them may be a link, or be reached by another name.
        let folder = self.folders(is_write).find(|folder| {
            let real = resolve(folder).unwrap_or_else(|_| folder.clone());
            match lies(path, &real) {
                Lies::Inside(rest) => !self.is_shared(folder, &rest, is_write),
                Lies::Around => true,
                Lies::Apart => false,
            }
        })?;
        Some(folder.display().to_string())
    }

    /// Whether it lies in a part of the user's space that may be read.
    fn is_shared(&self, folder: &Path, rest: &[String], is_write: bool) -> bool {
        let is_users = self.user.as_deref() == Some(folder);
        is_users && !is_write && rest.first().is_some_and(|first| SHARED.contains(&first.as_str()))
    }

    fn meets_pattern(&self, base: &Place, glob: &Glob, is_write: bool) -> Option<String> {
        for folder in self.folders(is_write) {
            let real = resolve(&folder).unwrap_or_else(|_| folder.clone());
            for folder in [folder.as_path(), real.as_path()] {
                let is_met = match lies(&base.real, folder) {
                    Lies::Inside(rest) => !self.is_shared(&real, &rest, is_write),
                    // By another spelling than ours, the pattern cannot be held against ours.
                    Lies::Around if !folder.starts_with(&base.real) => true,
                    Lies::Around | Lies::Apart => reaches(glob, folder),
                };
                if is_met {
                    return Some(folder.display().to_string());
                }
            }
        }
        None
    }
}

/// Whether a pattern matches a folder, something below it, or something that holds it.
fn reaches(glob: &Glob, folder: &Path) -> bool {
    let text = folder.to_string_lossy();
    let below = Glob::path(&format!("{}/**", escape(&text)));
    below.map_or(true, |below| meet(glob, &below).is_some())
        || folder.ancestors().any(|around| glob.matches(&around.to_string_lossy()))
}

/// How a path lies to a folder. By name, and by what is really there: a file system may know one folder by several
/// spellings.
fn lies(path: &Path, folder: &Path) -> Lies {
    if folder.starts_with(path) && folder != path {
        return Lies::Around;
    }
    let known = identity(folder);
    for (above, ancestor) in path.ancestors().enumerate() {
        let is_same = ancestor == folder || known.is_some() && identity(ancestor) == known;
        if is_same {
            let rest = path.components().rev().take(above).filter_map(|part| match part {
                Component::Normal(name) => Some(name.to_string_lossy().into_owned()),
                _ => None,
            });
            let mut rest: Vec<String> = rest.collect();
            rest.reverse();
            return Lies::Inside(rest);
        }
    }
    let own = identity(path);
    if own.is_some() && folder.ancestors().skip(1).any(|around| identity(around) == own) {
        return Lies::Around;
    }
    let forgiven = |path: &Path| PathBuf::from(fold(&path.to_string_lossy()));
    let (path, folder) = (forgiven(path), forgiven(folder));
    match path.strip_prefix(&folder) {
        Ok(rest) => Lies::Inside(rest.iter().map(|part| part.to_string_lossy().into_owned()).collect()),
        Err(_) if folder.starts_with(&path) => Lies::Around,
        Err(_) => Lies::Apart,
    }
}

fn identity(path: &Path) -> Option<(u64, u64)> {
    std::fs::metadata(path).ok().map(|metadata| (metadata.dev(), metadata.ino()))
}

/// A name as the most forgiving file systems compare it: without case, and without characters that are not seen.
fn fold(name: &str) -> String {
    let seen = |c: &char| !matches!(*c, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{ad}');
    let upper: String = name.chars().filter(seen).flat_map(char::to_uppercase).collect();
    upper.to_lowercase()
}
