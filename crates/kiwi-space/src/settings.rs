//! Files of a space's `config/` that other rooms give their meaning.

use kiwi_model::Space;
use std::fs::File;
use std::io::Read as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use crate::config::{open_anywhere, open_inside};
use crate::durable;
use crate::error::{PathProblem, SpaceError};
use crate::root::{Root, is_inside};
use crate::seen::Seen;
use crate::spaces::{Home, Spaces};

const FOLDER: &str = "config";
/// One byte more than such a file may have, so that too many are seen as such.
const MOST_BYTES: u64 = (1 << 20) + 1;

/// A file of `config/`, as it was at one moment.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Where it is.
    pub path: PathBuf,
    /// What it says; nothing where there is none.
    pub bytes: Option<Vec<u8>>,
    seen: Seen,
}

impl Settings {
    /// Whether the file certainly still says the same.
    pub fn are_still(&self) -> bool {
        self.seen.is_still(&self.path)
    }
}

impl Spaces {
    /// A file of a space's `config/`; nothing for a space that is not on disk. A project's file must lie in the project;
    /// the user's may be linked from where they keep such files.
    pub fn settings(&self, space: Space, name: &str) -> Result<Option<Settings>, SpaceError> {
        let Some(home) = self.home(space) else { return Ok(None) };
        let (relative, path) = place(home, name)?;
        let seen = Seen::of(&path)?;
        if !seen.is_there() && path.symlink_metadata().is_err() {
            return Ok(Some(Settings { path, bytes: None, seen }));
        }
        let Some(root) = Root::open(&home.ai)? else { return Ok(Some(Settings { path, bytes: None, seen })) };
        let open = if space == Space::Project { open_inside } else { open_anywhere };
        let Some(file) = open(&root, &relative, &path)? else {
            return Ok(Some(Settings { path, bytes: None, seen }));
        };
        let mut bytes = Vec::new();
        file.take(MOST_BYTES)
            .read_to_end(&mut bytes)
            .map_err(|error| SpaceError::unreadable(&path, error))?;
        Ok(Some(Settings { path, bytes: Some(bytes), seen }))
    }

    /// Changes a file of a space's `config/` so that a crash leaves the old or the new. `change` gets what is there, and
    /// nobody else who changes it this way comes between.
    pub fn change_settings<E: From<SpaceError>>(
        &self,
        space: Space,
        name: &str,
        change: impl FnOnce(&Settings) -> Result<Vec<u8>, E>,
    ) -> Result<(), E> {
        let home = self.home(space).ok_or(SpaceError::NoSpace { space })?;
        let folder = home.ai.join(FOLDER);
        durable::make_folder(&folder)?;
        let turn = File::open(&folder).map_err(|error| SpaceError::unreadable(&folder, error))?;
        turn.lock().map_err(|error| SpaceError::unreadable(&folder, error))?;
        let before = self.settings(space, name)?.ok_or(SpaceError::NoSpace { space })?;
        let bytes = change(&before)?;
        // A link stays one: what it leads to is replaced. A project's was seen to end inside the project.
        let target = before.path.canonicalize().unwrap_or_else(|_| before.path.clone());
        if space == Space::Project && !lies_in(&target, &home.ai) {
            return Err(SpaceError::bad_path(target, PathProblem::LeavesSpace).into());
        }
        let mode = target.metadata().ok().map(|metadata| metadata.permissions().mode() & 0o777);
        durable::write_as(&target, &bytes, mode.unwrap_or(0o644))?;
        Ok(())
    }
}

/// Whether the folder of a file, symlinks resolved, is inside another.
pub(crate) fn lies_in(file: &Path, folder: &Path) -> bool {
    let parent = file.parent().and_then(|parent| parent.canonicalize().ok());
    parent.zip(folder.canonicalize().ok()).is_some_and(|(parent, folder)| parent.starts_with(folder))
}

fn place(home: &Home, name: &str) -> Result<(String, PathBuf), SpaceError> {
    let relative = format!("{FOLDER}/{name}");
    let path = home.ai.join(&relative);
    if !is_inside(name) {
        return Err(SpaceError::bad_path(path, PathProblem::NotInside));
    }
    Ok((relative, path))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spaces::Locations;

    const FILE: &str = "x.yaml";

    fn spaces(folder: &std::path::Path) -> Spaces {
        for name in ["p/.ai", "h"] {
            std::fs::create_dir_all(folder.join(name)).unwrap();
        }
        Spaces::open(Locations { project: None, cwd: folder.join("p"), user: Some(folder.join("h")) })
            .unwrap()
    }

    #[test]
    fn what_is_changed_shows_and_what_is_not_there_is_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let spaces = spaces(folder.path());
        assert!(spaces.settings(Space::System, FILE).unwrap().is_none());
        assert!(spaces.settings(Space::User, "../x").is_err());
        for space in [Space::Project, Space::User] {
            let nothing = spaces.settings(space, FILE).unwrap().unwrap();
            assert!(nothing.bytes.is_none() && nothing.are_still());
            spaces
                .change_settings::<SpaceError>(space, FILE, |before| {
                    assert!(before.bytes.is_none());
                    Ok(b"a: 1\n".to_vec())
                })
                .unwrap();
            assert!(!nothing.are_still());
            let now = spaces.settings(space, FILE).unwrap().unwrap();
            assert_eq!(now.bytes.as_deref(), Some(&b"a: 1\n"[..]));
            let refused = spaces.change_settings::<SpaceError>(space, FILE, |_| {
                Err(SpaceError::NoSpace { space: Space::System })
            });
            assert!(refused.is_err());
            assert_eq!(spaces.settings(space, FILE).unwrap().unwrap().bytes, now.bytes);
        }
    }

    #[test]
    fn a_users_link_is_followed_and_stays_a_projects_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let spaces = spaces(folder.path());
        let outside = folder.path().join("outside.yaml");
        std::fs::write(&outside, "b: 2\n").unwrap();
        for place in ["p/.ai/config", "h/.ai/config"] {
            std::fs::create_dir_all(folder.path().join(place)).unwrap();
            std::os::unix::fs::symlink(&outside, folder.path().join(place).join(FILE)).unwrap();
        }
        assert!(spaces.settings(Space::Project, FILE).is_err());
        assert!(
            spaces
                .change_settings::<SpaceError>(Space::Project, FILE, |_| Ok(b"evil: 1\n".to_vec()))
                .is_err()
        );
        std::fs::remove_file(folder.path().join("p/.ai/config").join(FILE)).unwrap();
        std::fs::remove_dir(folder.path().join("p/.ai/config")).unwrap();
        std::os::unix::fs::symlink(folder.path(), folder.path().join("p/.ai/config")).unwrap();
        assert!(
            spaces
                .change_settings::<SpaceError>(Space::Project, FILE, |_| Ok(b"evil: 1\n".to_vec()))
                .is_err()
        );
        assert!(!folder.path().join(FILE).exists());
        spaces.change_settings::<SpaceError>(Space::User, FILE, |_| Ok(b"c: 3\n".to_vec())).unwrap();
        assert_eq!(std::fs::read_to_string(&outside).unwrap(), "c: 3\n");
        assert!(folder.path().join("h/.ai/config").join(FILE).is_symlink());
    }
}
