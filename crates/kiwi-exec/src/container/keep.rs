//! Built images and leftover containers: what there is, and removing it.

use std::fs;
use std::time::SystemTime;

use super::ask::Errand;
use super::image::{BUILT, tag};
use super::life::Life;
use super::reap::{REMOVE, leftovers, list_words, owner};
use super::{Containers, Engine};
use crate::environment::{make_private, note_use};
use crate::error::ExecError;

/// An image that was built from a tool's files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeptImage {
    /// The engine that has it.
    pub engine: Engine,
    /// Its name.
    pub name: String,
    /// How large the engine says it is.
    pub size: String,
    /// When it was last used, as far as is known here.
    pub last_used: Option<SystemTime>,
}

/// A container whose Kiwi is dead.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Leftover {
    /// The engine that has it.
    pub engine: Engine,
    /// Its name.
    pub name: String,
}

impl Containers {
    /// Notes that a built image is used.
    pub fn used(&self, image: &str, now: SystemTime) {
        if !image.starts_with(BUILT) {
            return;
        }
        let note = self.uses.join(tag(image));
        // What cannot be noted only ages faster.
        if !note.exists() && make_private(&self.uses).is_ok() {
            let _ = fs::write(&note, image);
        }
        note_use(&note, now);
    }

    /// Every image that was built for this user, on every engine that answers.
    pub async fn images(&self) -> Vec<KeptImage> {
        let mut images = Vec::new();
        for engine in self.engines() {
            let owner = format!("label=kiwi.owner={}", owner());
            let words = [
                "images",
                "--filter",
                "label=kiwi.built=1",
                "--filter",
                &owner,
                "--format",
                "{{.Repository}}:{{.Tag}}\t{{.Size}}",
            ];
            let Ok(listed) = self.ask(&engine, Errand::of(&words)).await else { continue };
            for line in String::from_utf8_lossy(&listed.stdout).lines() {
                let Some((name, size)) = line.split_once('\t').filter(|(name, _)| name.starts_with(BUILT))
                else {
                    continue;
                };
                let noted = fs::metadata(self.uses.join(tag(name))).and_then(|note| note.modified());
                images.push(KeptImage {
                    engine: engine.clone(),
                    name: name.to_owned(),
                    size: size.to_owned(),
                    last_used: noted.ok(),
                });
            }
        }
        images
    }

    /// Removes an image; whether it is gone. One that a container still uses stays.
    pub async fn remove_image(&self, image: &KeptImage) -> Result<bool, ExecError> {
        let removed = self.ask(&image.engine, Errand::of(&["rmi", &image.name])).await?;
        let is_gone = removed.exit.is_success();
        if is_gone {
            let _ = fs::remove_file(self.uses.join(tag(&image.name)));
        }
        Ok(is_gone)
    }

    /// Every container whose Kiwi is dead, on every engine that answers.
    pub async fn leftovers(&self) -> Vec<Leftover> {
        let Some(own) = Life::own() else { return Vec::new() };
        let mut found = Vec::new();
        for engine in self.engines() {
            let words = list_words(&owner());
            let words: Vec<&str> = words.iter().map(String::as_str).collect();
            if let Ok(listed) = self.ask(&engine, Errand::of(&words)).await {
                let names = leftovers(&listed.stdout, &own);
                found.extend(names.into_iter().map(|name| Leftover { engine: engine.clone(), name }));
            }
        }
        found
    }

    /// Removes a leftover container; whether it is gone.
    pub async fn remove_leftover(&self, leftover: &Leftover) -> Result<bool, ExecError> {
        let words: Vec<&str> = REMOVE.iter().copied().chain([leftover.name.as_str()]).collect();
        Ok(self.ask(&leftover.engine, Errand::of(&words)).await?.exit.is_success())
    }
}
