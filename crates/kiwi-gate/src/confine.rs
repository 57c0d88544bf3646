//! From what a chain declares to what a sandbox opens: patterns become files and folders that are there.

use kiwi_chain::Needs;
use kiwi_model::{ErrorKind, Fault, Text};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use crate::admission::denied_by;
use crate::permission::glob::{Glob, escape};
use crate::permission::need::Thing;
use crate::permission::needs::{in_project, needs_of_command};
use crate::permission::path::{Place, resolve, split};
use crate::permission::reach::reach;
use crate::permission::shell::Setting;
use crate::permission::{Kind, Need, PermissionContext};

/// More matches than this are a mistake in the pattern.
const MOST_MATCHES: usize = 1000;
/// What lies in the folder around an entry and is no entry of the tool's.
const HIDDEN: [&str; 2] = [".ai", ".git"];

/// The files and folders that are declared, without symbolic links on the way.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Opened {
    pub read: Vec<PathBuf>,
    pub write: Vec<PathBuf>,
    /// What may be made, replaced and removed, there or not.
    pub entries: Vec<PathBuf>,
    /// Folders beside entries that stay out of reach.
    pub hidden: Vec<PathBuf>,
    /// Names that lead to something of it by a link, and where they lead.
    pub links: Vec<(PathBuf, PathBuf)>,
}

impl Opened {
    /// What the caller may touch of the project. Lists say what may be written; a person who has none reads.
    fn add_permitted(
        &mut self,
        context: &PermissionContext,
        given: &Path,
        project: &Path,
    ) -> Result<(), Fault> {
        let found = |kind: Kind| {
            reach(context, kind, project).map_err(|why| {
                denied_by("permission", format!("what the command may see cannot be shown: {why}"))
                    .with_hint("let the profile allow whole folders, such as `src/**`")
            })
        };
        self.read.extend(found(Kind::FilesystemRead)?);
        if !context.is_everything() {
            self.write.extend(found(Kind::FilesystemWrite)?);
        }
        if given != project {
            self.links.push((given.to_owned(), project.to_owned()));
        }
        Ok(())
    }

    /// The folder it works in, where that lies in something that is opened: by itself it would be an empty one.
    fn add_working_folder(&mut self, cwd: &Path) {
        let Ok(cwd) = resolve(cwd) else { return };
        let depth = |paths: &[PathBuf]| {
            let around = paths.iter().filter(|path| cwd.starts_with(path) && cwd.is_dir());
            around.map(|path| path.components().count()).max()
        };
        match (depth(&self.read), depth(&self.write)) {
            (None, None) => {}
            (read, write) if write >= read => self.write.push(cwd),
            _ => self.read.push(cwd),
        }
    }

    /// What is opened, as needs: between a judgement and now a link may have been put in the way, so what has been
    /// found is judged once more. What is mounted then is exactly that, or nothing.
    pub fn needs(&self) -> Vec<Need> {
        let text = |path: &PathBuf| path.to_string_lossy().into_owned();
        let reads = self.read.iter().map(|path| (Kind::FilesystemRead, path));
        let writes = self.write.iter().chain(&self.entries).map(|path| (Kind::FilesystemWrite, path));
        reads.chain(writes).map(|(kind, path)| Need::path(kind, &text(path), Path::new("/"))).collect()
    }
}

/// Finds what is declared. A file or folder that is to be written and is not there yet is made: inside a sandbox there
/// is nothing it could be made in, unless the folder around it is opened for that.
///
/// Between the judgement of a call and now a link may have been put in the way: what is about to be made, and what was
/// found in the end, is put before the context once more.
pub(crate) fn open(
    needs: &Needs,
    setting: &Setting<'_>,
    context: &PermissionContext,
) -> Result<Opened, Fault> {
    let judge = |needs: &[Need]| match context.judge(needs).into_iter().next() {
        Some(objection) => Err(objection.fault()),
        None => Ok(()),
    };
    let project = setting.project;
    let mut opened = Opened::default();
    let (mut read, mut write) = (Vec::new(), Vec::new());
    for (texts, into) in [(&needs.read, &mut read), (&needs.write, &mut write)] {
        for text in texts {
            into.push(Pattern::of(text, project)?);
        }
    }
    // What commands open by redirections is exactly what was judged of them, in the folder they run in.
    for need in needs.commands.iter().flat_map(|command| needs_of_command(command, setting)) {
        if let Thing::Path(base) = need.thing {
            let into = if need.kind == Kind::FilesystemWrite { &mut write } else { &mut read };
            into.push(Pattern { shown: need.shown, base, rest: Vec::new(), is_folder: false });
        }
    }
    for pattern in read {
        opened.links.extend(pattern.link());
        opened.read.extend(matches(&pattern)?);
    }
    judge(&write.iter().map(Pattern::need).collect::<Vec<_>>())?;
    for pattern in write {
        opened.links.extend(pattern.link());
        if needs.replaces && pattern.rest.is_empty() {
            opened.entries.push(pattern.base.real.clone());
        } else {
            pattern.make()?;
            opened.write.extend(matches(&pattern)?);
        }
    }
    let given = project;
    let project = Place::find(".", project).map_err(|why| refused(".", &why))?.real;
    if needs.as_permitted {
        opened.add_permitted(context, given, &project)?;
    }
    opened.add_working_folder(setting.cwd);
    let is_apart = |folder: &PathBuf| {
        let meets = |entry: &PathBuf| entry.starts_with(folder) || folder.starts_with(entry);
        folder.is_dir() && !opened.entries.iter().any(meets)
    };
    let around = |folder: &PathBuf| {
        opened.entries.iter().any(|entry| entry.parent().is_some_and(|parent| folder.starts_with(parent)))
    };
    opened.hidden = HIDDEN
        .iter()
        .map(|name| project.join(name))
        .filter(|folder| is_apart(folder) && around(folder))
        .collect();
    judge(&opened.needs())?;
    Ok(opened)
}

/// A declared path: a base without wildcards, and what must match below it.
struct Pattern {
    shown: String,
    base: Place,
    /// Each a name or a wildcard; empty for the base itself.
    rest: Vec<String>,
    /// Whether the base can only be a folder: something must match below it, or it is written with a `/` at its end.
    is_folder: bool,
}

impl Pattern {
    fn of(text: &Text, project: &Path) -> Result<Self, Fault> {
        let shown = text.to_string();
        let path = in_project(text, project, escape).map_err(|why| refused(&shown, why))?;
        let (base, rest) = split(&path);
        let base =
            Place::find(&base, project).map_err(|why| refused(&shown, &format!("cannot be found: {why}")))?;
        let parts = rest.iter().flat_map(|rest| rest.split('/'));
        let rest: Vec<String> =
            parts.filter(|part| !part.is_empty() && *part != ".").map(str::to_owned).collect();
        if rest.iter().any(|part| part == "..") {
            return Err(refused(&shown, "goes up with `..` from a wildcard"));
        }
        let is_folder = !rest.is_empty() || path.ends_with('/');
        Ok(Self { shown, base, rest, is_folder })
    }

    /// Writing it, by its real name.
    fn need(&self) -> Need {
        let real = escape(&self.base.real.to_string_lossy());
        let pattern = std::iter::once(real.as_str()).chain(self.rest.iter().map(String::as_str));
        let pattern = pattern.collect::<Vec<_>>().join("/");
        Need::paths(Kind::FilesystemWrite, &pattern, Path::new("/"))
    }

    /// The name it was given, where that is not its real one: of the folder it is in, where the links are before that.
    fn link(&self) -> Option<(PathBuf, PathBuf)> {
        let (lexical, real) = (PathBuf::from(&self.base.lexical), self.base.real.clone());
        let (around, name) = (lexical.parent()?, lexical.file_name()?);
        let around_real = resolve(around).ok()?;
        let link =
            if around_real.join(name) == real { (around.to_owned(), around_real) } else { (lexical, real) };
        (link.0 != link.1).then_some(link)
    }

    /// Makes what will be written: the folder of a pattern, or the file itself.
    fn make(&self) -> Result<(), Fault> {
        let base = &self.base.real;
        let made = if self.is_folder {
            fs_err::create_dir_all(base)
        } else if base.exists() {
            Ok(())
        } else {
            let parent = base.parent().unwrap_or(base);
            fs_err::create_dir_all(parent).and_then(|()| fs_err::File::create_new(base).map(|_| ()))
        };
        made.map_err(|error| refused(&self.shown, &format!("cannot be made: {error}")))
    }
}

/// What a pattern matches now. A folder that is meant whole is one match.
fn matches(pattern: &Pattern) -> Result<Vec<PathBuf>, Fault> {
    let mut found = BTreeSet::new();
    if pattern.base.real.exists() {
        descend(&pattern.base.real, &pattern.rest, &mut found);
    }
    if found.len() > MOST_MATCHES {
        return Err(refused(&pattern.shown, &format!("matches more than {MOST_MATCHES} paths")));
    }
    Ok(found.into_iter().collect())
}

fn descend(folder: &Path, rest: &[String], found: &mut BTreeSet<PathBuf>) {
    match rest.split_first() {
        None => {
            found.insert(folder.to_path_buf());
        }
        // Everything below: the folder itself says so.
        Some((part, [])) if part == "**" => {
            found.insert(folder.to_path_buf());
        }
        Some((part, below)) => {
            let any_depth = part == "**";
            // What cannot be read matches nothing.
            let wildcard = if any_depth { None } else { Glob::path(part).ok() };
            if any_depth {
                descend(folder, below, found);
            }
            for entry in fs_err::read_dir(folder).into_iter().flatten().flatten() {
                let name = entry.file_name();
                // A link could lead anywhere; what it leads to must be declared itself.
                let is_link = entry.file_type().is_ok_and(|kind| kind.is_symlink());
                if is_link || found.len() > MOST_MATCHES {
                    continue;
                }
                if any_depth && entry.path().is_dir() {
                    descend(&entry.path(), rest, found);
                } else if name
                    .to_str()
                    .zip(wildcard.as_ref())
                    .is_some_and(|(name, wildcard)| wildcard.matches(name))
                {
                    descend(&entry.path(), below, found);
                }
            }
        }
    }
}

fn refused(shown: &str, why: &str) -> Fault {
    Fault::new(ErrorKind::InvalidManifest, format!("the declared path `{shown}` {why}"))
        .with_hint("`permissions` lists paths like `data/in.csv`, `src/**` or `{path}`")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(needs: &Needs, root: &Path) -> Result<Opened, Fault> {
        opened_from(needs, root, root, &PermissionContext::everything())
    }

    fn opened_from(
        needs: &Needs,
        root: &Path,
        cwd: &Path,
        context: &PermissionContext,
    ) -> Result<Opened, Fault> {
        open(needs, &Setting { search_path: "/usr/bin:/bin", cwd, project: root }, context)
    }

    fn needs(read: &[&str], write: &[&str]) -> Needs {
        let texts = |paths: &[&str]| paths.iter().map(|path| Text::literal(*path)).collect();
        Needs { read: texts(read), write: texts(write), ..Needs::default() }
    }

    #[test]
    fn patterns_become_what_is_there() {
        let folder = tempfile::tempdir().expect("folder");
        let root = folder.path().canonicalize().expect("root");
        for path in ["src/a.rs", "src/deep/b.rs", "data/1.csv", "data/2.csv", "data/x.txt", ".ai/secret"] {
            let path = root.join(path);
            std::fs::create_dir_all(path.parent().expect("parent")).expect("folder");
            std::fs::write(path, "").expect("file");
        }
        std::os::unix::fs::symlink("/etc", root.join("data/etc")).expect("link");
        let shown = |needs: Needs| -> (Vec<String>, Vec<String>) {
            let opened = found(&needs, &root).expect("opened");
            let tell = |paths: Vec<PathBuf>| {
                let below = |path: PathBuf| path.strip_prefix(&root).map(|it| it.display().to_string());
                paths
                    .into_iter()
                    .map(|path| below(path.clone()).unwrap_or_else(|_| path.display().to_string()))
                    .collect()
            };
            (tell(opened.read), tell(opened.write))
        };
        assert_eq!(shown(needs(&["src/**"], &[])).0, ["src"]);
        assert_eq!(shown(needs(&["data/*.csv"], &[])).0, ["data/1.csv", "data/2.csv"]);
        assert_eq!(shown(needs(&["**/b.rs"], &[])).0, ["src/deep/b.rs"]);
        assert_eq!(shown(needs(&["data/*"], &[])).0, ["data/1.csv", "data/2.csv", "data/x.txt"]);
        assert_eq!(shown(needs(&["nothing/here", "/etc/hostname-nobody"], &[])).0, Vec::<String>::new());
        let written = shown(needs(&[], &["out/new/**", "made/file.txt", "made/folder/"])).1;
        assert_eq!(written, ["out/new", "made/file.txt", "made/folder"]);
        let is_folder = |path: &str| root.join(path).is_dir();
        assert!(is_folder("out/new") && is_folder("made/folder") && root.join("made/file.txt").is_file());
        assert!(found(&needs(&[], &["made/file.txt/"]), &root).is_err());
        assert!(found(&needs(&["a/*/../b"], &[]), &root).is_err());
        // What a caller gives is no wildcard, and a path is what the kernel makes of it.
        assert_eq!(shown(needs(&["data/\\*.csv"], &[])).0, Vec::<String>::new());
        assert_eq!(shown(needs(&["src/../data/1.csv"], &[])).0, ["data/1.csv"]);
    }

    #[test]
    fn entries_need_not_be_there_and_leave_the_rest_alone() {
        let folder = tempfile::tempdir().expect("folder");
        let root = folder.path().canonicalize().expect("root");
        for path in [".ai/rules", ".git", "src"] {
            std::fs::create_dir_all(root.join(path)).expect("folder");
        }
        std::os::unix::fs::symlink("src", root.join("link")).expect("link");
        let entries = |path: &str| {
            let needs = Needs { replaces: true, ..needs(&[], &[path]) };
            let opened = found(&needs, &root).expect("opened");
            assert!(opened.write.is_empty() && opened.read.is_empty());
            (opened.entries, opened.hidden, opened.links)
        };
        let both = vec![root.join(".ai"), root.join(".git")];
        assert_eq!(entries("new"), (vec![root.join("new")], both, Vec::new()));
        assert_eq!(entries("src/a/b"), (vec![root.join("src/a/b")], Vec::new(), Vec::new()));
        assert_eq!(entries(".git").1, [root.join(".ai")]);
        let link = vec![(root.join("link"), root.join("src"))];
        assert_eq!(entries("link/x"), (vec![root.join("src/x")], Vec::new(), link));
        assert!(!root.join("new").exists() && !root.join("src/a").exists());
    }

    #[test]
    fn what_is_opened_is_judged_again() {
        use crate::permission::Layer;
        let folder = tempfile::tempdir().expect("folder");
        let root = folder.path().canonicalize().expect("root");
        for path in ["src/file", "secret/file"] {
            std::fs::create_dir_all(root.join(path).parent().expect("parent")).expect("folder");
            std::fs::write(root.join(path), path).expect("file");
        }
        let permissions =
            kiwi_model::Permissions { filesystem_read: vec!["src/**".into()], ..Default::default() };
        let context =
            PermissionContext::everything().and(Layer::new("x", &permissions, &root).expect("layer"));
        assert!(context.judge(&[Need::paths(Kind::FilesystemRead, "src/file", &root)]).is_empty());
        // After the judgement, a link takes the folder's place.
        std::fs::rename(root.join("src"), root.join("kept")).expect("renamed");
        std::os::unix::fs::symlink("secret", root.join("src")).expect("link");
        let opened = found(&needs(&["src/file"], &[]), &root).expect("opened");
        assert_eq!(opened.read, [root.join("secret/file")]);
        assert_eq!(context.judge(&opened.needs()).len(), 1);
    }

    #[test]
    fn redirections_are_opened_where_the_command_runs_also_inside_another() {
        let folder = tempfile::tempdir().expect("folder");
        let root = folder.path().canonicalize().expect("root");
        std::fs::create_dir_all(root.join("sub")).expect("folder");
        std::fs::write(root.join("sub/in"), "").expect("file");
        for command in [
            serde_json::json!("ls < in > out"),
            serde_json::json!("sh -c 'ls < in > out'"),
            serde_json::json!(["sh", "-c", "ls < in > out"]),
        ] {
            let needs = Needs { commands: vec![command.clone()], ..Needs::default() };
            let opened = opened_from(&needs, &root, &root.join("sub"), &PermissionContext::everything());
            let opened = opened.expect("opened");
            assert_eq!(opened.read, [root.join("sub/in")], "{command}");
            assert_eq!(opened.write, [root.join("sub/out")], "{command}");
            assert!(!root.join("out").exists());
            std::fs::remove_file(root.join("sub/out")).expect("made");
        }
    }
}
