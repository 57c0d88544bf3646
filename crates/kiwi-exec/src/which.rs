//! Finding programs, past the shims of version managers.
//!
//! A pyenv, rbenv or nodenv shim is a shell script that costs about 100 ms before the real program starts. What it
//! would choose follows from a few small files, so it is chosen here, without running anything.

use rustix::fs::Access;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use crate::error::ExecError;

/// Where programs are looked for.
#[derive(Debug, Clone, Copy)]
pub struct ProgramSearch<'a> {
    /// Folders, separated by colons. Empty and relative entries are passed over: what runs must not depend on where
    /// Kiwi happens to stand.
    pub path: &'a str,
    /// The folder the program is to start in: version files count from here upward, relative program paths too.
    pub cwd: &'a Path,
    /// `PYENV_VERSION`, `RBENV_VERSION` and `NODENV_VERSION`, where set.
    pub versions: &'a BTreeMap<String, String>,
}

impl ProgramSearch<'_> {
    /// Where the program is. A name with a slash is a path; any other is searched for.
    pub fn find(&self, program: &str) -> Option<PathBuf> {
        if program.is_empty() {
            return None;
        }
        if program.contains('/') {
            let path = self.cwd.join(program);
            return fs::metadata(&path).is_ok_and(|metadata| metadata.is_file()).then_some(path);
        }
        let mut last_resort = None;
        for candidate in self.folders().map(|folder| folder.join(program)).filter(|path| is_program(path)) {
            let Some(manager) = Manager::of_shim(&candidate) else { return Some(candidate) };
            match manager.choose(self, program) {
                Choice::Installed(path) => return Some(path),
                Choice::Unclear => return Some(candidate),
                // The version called `system` is whatever comes later in the path.
                Choice::System => last_resort = last_resort.or(Some(candidate)),
            }
        }
        last_resort
    }

    /// Why [`Self::find`] found nothing.
    pub fn explain_missing(&self, program: &str) -> ExecError {
        let path = self.cwd.join(program);
        if program.contains('/') && path.exists() {
            return ExecError::NotExecutable {
                program: program.to_owned(),
                why: "it is not a regular file".into(),
            };
        }
        let searched = if program.contains('/') { String::new() } else { self.path.to_owned() };
        ExecError::ProgramNotFound { program: program.to_owned(), searched }
    }

    fn folders(&self) -> impl Iterator<Item = &Path> {
        self.path.split(':').map(Path::new).filter(|folder| folder.is_absolute())
    }
}

fn is_program(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|metadata| metadata.is_file())
        && rustix::fs::access(path, Access::EXEC_OK).is_ok()
}

/// A version manager that works with shims.
struct Manager {
    root: PathBuf,
    /// The variable that overrides all files.
    variable: &'static str,
    /// The file in a project that names its version.
    file: &'static str,
    /// What may stand before a version's number.
    prefix: &'static str,
}

enum Choice {
    Installed(PathBuf),
    System,
    Unclear,
}

impl Manager {
    fn of_shim(program: &Path) -> Option<Self> {
        let shims = program.parent()?;
        let root = shims.parent()?;
        if shims.file_name()? != "shims" || !root.join("versions").is_dir() {
            return None;
        }
        // The shim is a script that names its manager.
        let script = fs::read(program).ok()?;
        let script = String::from_utf8_lossy(script.get(..script.len().min(4096))?).into_owned();
        let (variable, file, prefix) = [
            ("PYENV_VERSION", ".python-version", "python-"),
            ("RBENV_VERSION", ".ruby-version", "ruby-"),
            ("NODENV_VERSION", ".node-version", "node-"),
        ]
        .into_iter()
        .find(|(variable, ..)| script.contains(&variable.replace("VERSION", "ROOT")))?;
        Some(Self { root: root.to_owned(), variable, file, prefix })
    }

    fn choose(&self, search: &ProgramSearch<'_>, program: &str) -> Choice {
        let Some(wanted) = self.wanted(search) else { return Choice::System };
        for name in wanted {
            if name == "system" {
                return Choice::System;
            }
            if let Some(path) = self
                .installed(&name)
                .map(|version| version.join("bin").join(program))
                .filter(|path| is_program(path))
            {
                return Choice::Installed(path);
            }
        }
        Choice::Unclear
    }

    /// The versions asked for, first choice first; `None` when nobody asks for any.
    fn wanted(&self, search: &ProgramSearch<'_>) -> Option<Vec<String>> {
        if let Some(value) = search.versions.get(self.variable).filter(|value| !value.is_empty()) {
            return Some(value.split(':').map(str::to_owned).collect());
        }
        let in_project = search.cwd.ancestors().map(|folder| folder.join(self.file));
        in_project.chain([self.root.join("version")]).find_map(|file| {
            let text = fs::read_to_string(file).ok()?;
            let names: Vec<String> = text
                .lines()
                .filter(|line| !line.trim_start().starts_with('#'))
                .flat_map(str::split_whitespace)
                .map(str::to_owned)
                .collect();
            (!names.is_empty()).then_some(names)
        })
    }

    /// The folder of a version: by its full name, or the newest whose name continues what was asked for.
    fn installed(&self, wanted: &str) -> Option<PathBuf> {
        let versions = self.root.join("versions");
        // A name such as `../x` would leave the manager's folder.
        if wanted.contains('/') || wanted.starts_with('.') {
            return None;
        }
        let bare = wanted.strip_prefix(self.prefix).unwrap_or(wanted);
        if let Some(exact) =
            [wanted, bare].into_iter().map(|name| versions.join(name)).find(|path| path.is_dir())
        {
            return Some(exact);
        }
        let continued = format!("{bare}.");
        let names =
            fs::read_dir(&versions).ok()?.flatten().filter_map(|entry| entry.file_name().into_string().ok());
        let newest = names
            .filter(|name| name.starts_with(&continued))
            .filter_map(|name| Some((numbers(&name)?, name)))
            .max()?;
        Some(versions.join(newest.1))
    }
}

/// `3.11.7` as numbers; `None` for names such as `3.12-dev`, which are only taken when asked for by name.
fn numbers(version: &str) -> Option<Vec<u64>> {
    version.split('.').map(|part| part.parse().ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    fn program(path: &Path, text: &str) {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
        fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
    }

    /// A pyenv with three versions, a system Python behind it, and a project below `work`.
    fn world() -> tempfile::TempDir {
        let world = tempfile::tempdir().unwrap();
        let root = world.path().join("pyenv");
        program(
            &root.join("shims/python3"),
            "#!/bin/sh\nexport PYENV_ROOT=/x\nexec pyenv exec python3 \"$@\"\n",
        );
        for version in ["3.9.1", "3.11.7", "3.11.10"] {
            program(&root.join("versions").join(version).join("bin/python3"), "");
        }
        program(&world.path().join("bin/python3"), "");
        fs::create_dir_all(world.path().join("work/sub")).unwrap();
        world
    }

    fn check(world: &Path, variable: Option<&str>, expected: &str) {
        let path = format!(":relative:{0}/none:{0}/pyenv/shims:{0}/bin", world.display());
        let versions =
            variable.map(|value| ("PYENV_VERSION".to_owned(), value.to_owned())).into_iter().collect();
        let search = ProgramSearch { path: &path, cwd: &world.join("work/sub"), versions: &versions };
        assert_eq!(search.find("python3"), Some(world.join(expected)), "{variable:?}");
    }

    #[test]
    fn a_shim_is_seen_through_as_its_manager_would() {
        let world = world();
        let world = world.path();
        check(world, None, "bin/python3");
        fs::write(world.join("pyenv/version"), "3.9.1\n").unwrap();
        check(world, None, "pyenv/versions/3.9.1/bin/python3");
        fs::write(world.join("work/.python-version"), "# comment\n9.9.9\n3.11\n").unwrap();
        check(world, None, "pyenv/versions/3.11.10/bin/python3");
        check(world, Some("python-3.11.7"), "pyenv/versions/3.11.7/bin/python3");
        check(world, Some("9.9:3.9.1"), "pyenv/versions/3.9.1/bin/python3");
        check(world, Some("system"), "bin/python3");
        check(world, Some("9.9"), "pyenv/shims/python3");
        check(world, Some("../versions/3.9.1"), "pyenv/shims/python3");
    }

    #[test]
    fn paths_are_taken_as_they_are_and_names_are_searched() {
        let world = world();
        let versions = BTreeMap::new();
        let path = world.path().join("bin");
        let search = ProgramSearch { path: path.to_str().unwrap(), cwd: world.path(), versions: &versions };
        assert_eq!(search.find("bin/python3"), Some(world.path().join("bin/python3")));
        assert_eq!(search.find(path.join("python3").to_str().unwrap()), Some(path.join("python3")));
        for missing in ["", "perl", "bin/perl", "bin", "./bin"] {
            assert_eq!(search.find(missing), None, "{missing}");
        }
    }
}
