//! Lockfiles as git remembers them.

use kiwi_exec::{Confinement, Launcher, Process, Unwatched};
use kiwi_model::lockfile::{LockName, Lockfile};
use kiwi_model::{ErrorKind, Explain, Fault, Isolation, Text, ToolId};
use std::path::PathBuf;
use std::time::Duration;

use crate::context::Context;

const TIMEOUT: Duration = Duration::from_mins(1);
const OUTPUT_CAP: u64 = 256 << 20;

/// One lockfile at two revisions; none where it is not in one.
pub struct Versions {
    /// The file, from the folder of lockfiles.
    pub path: String,
    /// At the first revision.
    pub old: Option<Result<Lockfile, Fault>>,
    /// At the second.
    pub new: Option<Result<Lockfile, Fault>>,
}

impl Versions {
    /// Whether it is a lockfile of this tool.
    pub fn is_of(&self, id: &ToolId) -> bool {
        let name = self.path.rsplit('/').next().and_then(LockName::parse);
        name.is_some_and(|name| name.tool_id == *id)
    }
}

/// The project's lockfiles that differ between two revisions.
pub fn changed(context: &Context, old: &str, new: &str) -> Result<Vec<Versions>, Fault> {
    let git = Git::at(context)?;
    let diff = ["diff", "--name-only", "--no-renames", "--relative", "-z", old, new, "--", "."];
    let names = git.run(&diff, Vec::new())?;
    let names = String::from_utf8_lossy(&names);
    let files: Vec<&str> = names.split('\0').filter(|name| is_lockfile(name)).collect();
    let wanted: Vec<String> = files.iter().map(|file| format!("{old}:./{file}\n{new}:./{file}\n")).collect();
    let objects = git.run(&["cat-file", "--batch"], wanted.concat().into_bytes())?;
    let mut contents = Batch(&objects);
    let read = |text: Option<&[u8]>| {
        let text = text.map(|bytes| String::from_utf8_lossy(bytes).into_owned());
        text.map(|text| Lockfile::parse(&text).map_err(|error| error.fault()))
    };
    let versions = files.into_iter().map(|file| {
        let (old, new) = (contents.next_object(), contents.next_object());
        Versions { path: file.to_owned(), old: read(old), new: read(new) }
    });
    Ok(versions.collect())
}

/// A name with a line break would be two requests to git.
fn is_lockfile(name: &str) -> bool {
    name.ends_with(".lock.json") && !name.contains('\n')
}

struct Git<'a> {
    context: &'a Context,
    folder: PathBuf,
}

impl<'a> Git<'a> {
    fn at(context: &'a Context) -> Result<Self, Fault> {
        let spaces = context.kernel.spaces();
        let project = spaces.project_root().ok_or_else(|| {
            Fault::new(ErrorKind::NotFound, "there is no project here whose revisions could be compared")
                .with_hint("go to the project, or name it with --project")
        })?;
        let folder = project.join(".ai/lockfiles");
        let folder = if folder.is_dir() { folder } else { project.to_path_buf() };
        Ok(Self { context, folder })
    }

    fn run(&self, words: &[&str], stdin: Vec<u8>) -> Result<Vec<u8>, Fault> {
        let launcher = Launcher::new(self.context.kiwi.clone(), std::env::temp_dir());
        let environment = &self.context.environment;
        let process = Process {
            program: Text::literal("git"),
            args: words.iter().map(|word| Text::literal(*word)).collect(),
            env: environment.iter().map(|(name, value)| (name.clone(), Text::literal(value))).collect(),
            cwd: self.folder.clone(),
            stdin,
            timeout: TIMEOUT,
            output_cap: OUTPUT_CAP,
            isolation: Isolation::Standard,
            confinement: Confinement::default(),
            has_secrets: false,
            packages: Vec::new(),
            search_path: environment.get("PATH").cloned().unwrap_or_default(),
            project: self.folder.clone(),
        };
        let finished = Context::wait(launcher.run(process, &Unwatched, std::future::pending()))?;
        let finished = finished.map_err(|error| error.fault())?;
        if finished.exit.is_success() {
            return Ok(finished.stdout);
        }
        let said = String::from_utf8_lossy(&finished.stderr);
        let first = said.lines().next().unwrap_or("it failed");
        let said = first.trim_start_matches("fatal: ").trim_start_matches("warning: ").to_owned();
        Err(Fault::new(ErrorKind::NotFound, format!("git: {said}"))
            .with_hint("name two revisions of this project, like `v1..v2` or `HEAD~1..HEAD`"))
    }
}

/// What `git cat-file --batch` writes: a line about each object, and the object.
struct Batch<'a>(&'a [u8]);

impl<'a> Batch<'a> {
    /// The next object; none where there is no such object.
    fn next_object(&mut self) -> Option<&'a [u8]> {
        let end = self.0.iter().position(|byte| *byte == b'\n')?;
        let (header, rest) = self.0.split_at_checked(end)?;
        let rest = rest.get(1..)?;
        self.0 = rest;
        // `<object> blob <size>`, or `<name> missing`.
        let size: usize = String::from_utf8_lossy(header).rsplit(' ').next()?.parse().ok()?;
        let (object, rest) = rest.split_at_checked(size)?;
        self.0 = rest.get(1..).unwrap_or_default();
        Some(object)
    }
}
