//! Programs: which one a word names, and which entries of a list allow it.

use kiwi_exec::ProgramSearch;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use super::syntax::Word;
use super::wrapper::is_many;
use crate::permission::glob::{Glob, contains};
use crate::permission::path::{resolve, rooted};

/// Where a command would run.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Setting<'a> {
    /// Where programs are looked for.
    pub search_path: &'a str,
    /// The folder it runs in.
    pub cwd: &'a Path,
    /// What lies in here may be anybody's work: a program in it has no name, only a path.
    pub project: &'a Path,
}

/// A program with its arguments.
#[derive(Debug, Clone)]
pub(crate) struct Command {
    written: String,
    /// Names under which the search path knows this very program.
    names: BTreeSet<String>,
    /// Where it is, without links.
    path: Option<PathBuf>,
    pub args: Vec<Word>,
}

impl Command {
    /// Finds the program that a word names.
    pub fn find(written: &str, args: Vec<Word>, setting: &Setting<'_>) -> Self {
        let none = BTreeMap::new();
        let search = ProgramSearch { path: setting.search_path, cwd: setting.cwd, versions: &none };
        let located = |name: &str| search.find(name).map(|found| (resolve(&found).ok(), found));
        let is_own = |found: &Path| found.starts_with(setting.project);
        let path = located(written).and_then(|(real, _)| real);
        let mut names = BTreeSet::new();
        let real_name =
            path.as_deref().and_then(Path::file_name).map(|name| name.to_string_lossy().into_owned());
        let last = written.rsplit('/').next().unwrap_or_default().to_owned();
        for name in [last].into_iter().chain(real_name) {
            match located(&name) {
                Some((real, found)) if real == path && !is_own(&found) => names.insert(name),
                // A builtin of the shell, or nothing at all.
                None if path.is_none() && !written.contains('/') => names.insert(name),
                _ => false,
            };
        }
        Self { written: written.to_owned(), names, path, args }
    }

    /// The names that tell what it does: those it is called by, but the name of a program that is another one under
    /// each of its names only where it is called by that, or by a name that nobody vouches for.
    pub fn roles(&self) -> impl Iterator<Item = &str> {
        let called = self.written.rsplit('/').next().unwrap_or_default();
        let is_known = self.names.contains(called);
        self.called().filter(move |name| *name == called || !is_known || !is_many(name))
    }

    /// The name it was called by, and the one it has.
    pub fn called(&self) -> impl Iterator<Item = &str> {
        let own = self.path.as_deref().and_then(Path::file_name).and_then(|name| name.to_str());
        self.written.rsplit('/').next().into_iter().chain(own)
    }
}

impl std::fmt::Display for Command {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.written)?;
        for word in self.args.iter().take(6) {
            write!(f, " {word}")?;
        }
        if self.args.len() > 6 { f.write_str(" …") } else { Ok(()) }
    }
}

/// One entry of `shell_commands`: a program, and the words its arguments must begin with.
#[derive(Debug, Clone)]
pub(crate) struct Entry {
    program: Glob,
    is_path: bool,
    args: Vec<Glob>,
}

impl Entry {
    /// Reads `git`, `git status`, `cargo-*`, `*` or `/opt/tool/bin/*`.
    pub fn read(text: &str, root: &Path) -> Result<Self, String> {
        let mut words = text.split_whitespace();
        let program = words.next().ok_or("it is empty")?;
        let is_path = program.contains('/');
        let program = if is_path { Glob::path(&rooted(program, root)?)? } else { Glob::name(program)? };
        Ok(Self { program, is_path, args: words.map(Glob::name).collect::<Result<_, _>>()? })
    }

    fn means(&self, command: &Command) -> bool {
        if self.is_path {
            let path = command.path.as_deref().and_then(Path::to_str);
            return path.is_some_and(|path| self.program.matches(path));
        }
        // Any program, whether or not it has a name.
        self.program.as_str() == "*" || command.names.iter().any(|name| self.program.matches(name))
    }

    /// Whether it allows a command.
    pub fn allows(&self, command: &Command) -> bool {
        let mut given = command.args.iter();
        self.means(command)
            && self
                .args
                .iter()
                .all(|own| given.next().and_then(Word::fixed).is_some_and(|arg| own.matches(arg)))
    }

    /// Whether a command could be meant by it, as a refusal. Options may stand between its words.
    pub fn may_mean(&self, command: &Command) -> bool {
        let is_called =
            self.means(command) || (!self.is_path && command.called().any(|name| self.program.matches(name)));
        let mut given = command.args.iter();
        is_called
            && self.args.iter().all(|own| given.any(|arg| arg.fixed().is_none_or(|arg| own.matches(arg))))
    }

    /// Whether everything it allows is allowed by others; `Err` with what is not.
    pub fn is_within(&self, outer: &[Self]) -> Result<(), String> {
        let alike = |other: &&Self| {
            (other.is_path == self.is_path || (!other.is_path && other.program.as_str() == "*"))
                && other.args.len() <= self.args.len()
                && other.args.iter().zip(&self.args).all(|(other, own)| contains([other], own).is_ok())
        };
        let outer: Vec<&Self> = outer.iter().filter(alike).collect();
        if outer.iter().any(|other| other.program.as_str() == "*") {
            return Ok(());
        }
        contains(outer.iter().map(|other| &other.program), &self.program)
            .map_err(|witness| witness.to_string())
    }
}
