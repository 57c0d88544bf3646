//! What is visible inside a sandbox.

use kiwi_model::Isolation;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::io::ErrorKind;
use std::path::{Component, Path, PathBuf};

use super::system;
use crate::confinement::Confinement;
use crate::error::ExecError;
use kiwi_launcher::plan::Shown;
use kiwi_launcher::wire::Raw;

/// What the view depends on.
#[derive(Debug)]
pub struct Request<'a> {
    pub confinement: &'a Confinement,
    pub level: Isolation,
    /// The program, when it is a file of the host.
    pub program: Option<PathBuf>,
    /// Kiwi itself, when the tool refers to it.
    pub kiwi: Option<&'a Path>,
    pub cwd: &'a Path,
    pub project: &'a Path,
    /// The folder with the tool's own verified files, which need not exist yet.
    pub snapshot: Option<&'a Path>,
    /// The `HOME` the tool would have had.
    pub home: Option<PathBuf>,
}

/// Everything visible inside, parents before children.
pub fn view(request: &Request<'_>) -> Result<Vec<Shown>, ExecError> {
    let mut scene = Scene::default();
    for path in &request.confinement.read {
        scene.declared(path, false)?;
    }
    for path in &request.confinement.write {
        scene.declared(path, true)?;
    }
    for path in &request.confinement.entries {
        scene.entry(path)?;
    }
    for folder in [request.project, request.cwd] {
        scene.empty(folder);
    }
    scene.system(request.level);
    let home = request.home.as_deref();
    let personal: Vec<&Path> = [request.project, request.cwd].into_iter().chain(home).collect();
    for program in request.program.as_deref().into_iter().chain(request.kiwi) {
        if !scene.shows(program) || fs::canonicalize(program).is_ok_and(|real| !scene.shows(&real)) {
            for path in system::installation(program, &personal) {
                scene.host(&path);
            }
        }
    }
    for path in &request.confinement.hidden {
        check_declared(path)?;
        scene.put(path, Sight::Empty);
    }
    for (at, to) in &request.confinement.links {
        scene.link(at, to);
    }
    if let Some(snapshot) = request.snapshot {
        let parent = snapshot.parent().and_then(|parent| fs::canonicalize(parent).ok());
        let from = parent.zip(snapshot.file_name()).map(|(parent, name)| parent.join(name));
        scene.put(snapshot, Sight::Bind { from: from.unwrap_or_else(|| snapshot.to_owned()), write: false });
    }
    Ok(scene.into_shown())
}

/// The folder of its own that a tool has as its `HOME` there. Where it declares what is around the usual one, there is none
/// to be had but the one for temporary files.
pub fn home(view: &[Shown]) -> &'static str {
    if view.iter().any(|shown| shown.at() == Path::new(system::HOME)) {
        system::HOME
    } else {
        system::TEMPORARY
    }
}

/// The part of it that every tool gets, whatever it has declared.
pub fn system_view(sockets: bool) -> Vec<Shown> {
    let mut scene = Scene::default();
    scene.system(if sockets { Isolation::Sandboxed } else { Isolation::Restricted });
    scene.into_shown()
}

#[derive(Debug)]
enum Sight {
    Bind { from: PathBuf, write: bool },
    Entries,
    Empty,
    Private,
    Link(OsString),
    File(String),
    Copy(PathBuf),
}

/// The order of paths puts parents before children.
#[derive(Debug, Default)]
struct Scene(BTreeMap<PathBuf, Sight>);

impl Scene {
    fn put(&mut self, at: impl Into<PathBuf>, sight: Sight) {
        self.0.insert(at.into(), sight);
    }

    /// Puts something of the sandbox's own there, unless it would lie in something of the host's: that is shown as it is,
    /// and what is made in it would be made on the host.
    fn offer(&mut self, at: &Path, sight: Sight) {
        if self.host_around(at).is_none() {
            self.0.entry(at.to_owned()).or_insert(sight);
        }
    }

    /// What of the host is shown around this place, the nearest.
    fn host_around(&self, at: &Path) -> Option<&Sight> {
        let mut sights = at.ancestors().skip(1).filter_map(|folder| self.0.get(folder));
        sights.find(|sight| matches!(sight, Sight::Bind { .. } | Sight::Entries))
    }

    fn system(&mut self, level: Isolation) {
        for path in system::PROGRAMS.map(Path::new) {
            match fs::read_link(path) {
                Ok(target) => self.offer(path, Sight::Link(target.into_os_string())),
                Err(error) if error.kind() == ErrorKind::NotFound => {}
                Err(_) => self.host(path),
            }
        }
        for path in system::SETTINGS.map(Path::new) {
            // A link to what is shown anyway can stay a link.
            match fs::read_link(path) {
                Ok(target) if self.shows(&target) => self.offer(path, Sight::Link(target.into_os_string())),
                Err(error) if error.kind() == ErrorKind::NotFound => {}
                _ => self.setting(path),
            }
        }
        for (path, text) in system::files(level) {
            self.offer(Path::new(path), Sight::File(text));
        }
        for path in system::PRIVATE.map(Path::new) {
            // A mount hides what is there and makes nothing.
            let is_there = fs::symlink_metadata(path).is_ok_and(|place| place.is_dir());
            if is_there || self.host_around(path).is_none() {
                self.0.entry(path.to_owned()).or_insert(Sight::Private);
            }
        }
    }

    /// Something of the host, readable, if it is there.
    fn host(&mut self, path: &Path) {
        if let Ok(from) = fs::canonicalize(path) {
            self.host_from(path, from);
        }
    }

    /// The same, by its own name.
    fn host_from(&mut self, path: &Path, from: PathBuf) {
        // Where only entries may be made it cannot be read without this, and mounted on itself it makes nothing.
        if matches!(self.host_around(path), Some(Sight::Entries)) && from == path {
            self.0.entry(from.clone()).or_insert(Sight::Bind { from, write: false });
        } else {
            self.offer(path, Sight::Bind { from, write: false });
        }
    }

    /// A setting of the host, if it is there. Of a small file a copy is cheaper than a mount.
    fn setting(&mut self, path: &Path) {
        let is_small = |file: fs::Metadata| file.is_file() && file.len() <= system::SMALL;
        match fs::canonicalize(path) {
            Ok(from) if fs::metadata(&from).is_ok_and(is_small) => self.offer(path, Sight::Copy(from)),
            Ok(from) => self.host_from(path, from),
            // It is not there.
            Err(_) => {}
        }
    }

    /// An empty folder, unless it is declared, or something around it.
    fn empty(&mut self, path: &Path) {
        let is_declared =
            path.ancestors().any(|folder| matches!(self.0.get(folder), Some(Sight::Bind { .. })));
        if !is_declared && path.parent().is_some() {
            self.0.entry(path.to_owned()).or_insert(Sight::Empty);
        }
    }

    /// Whether a path of the host lies in something that is shown already, under the same name.
    fn shows(&self, path: &Path) -> bool {
        path.ancestors().any(|folder| match self.0.get(folder) {
            Some(Sight::Bind { .. }) => true,
            Some(Sight::Link(to)) => self.shows(&Path::new("/").join(to)),
            _ => false,
        })
    }

    fn declared(&mut self, path: &Path, write: bool) -> Result<(), ExecError> {
        check_declared(path)?;
        self.put(path, Sight::Bind { from: path.to_owned(), write });
        Ok(())
    }

    /// The nearest folder around that is there.
    fn entry(&mut self, path: &Path) -> Result<(), ExecError> {
        let around = path.ancestors().skip(1).find(|folder| folder.is_dir()).unwrap_or(Path::new("/"));
        check_declared(around)?;
        if !matches!(self.0.get(around), Some(Sight::Bind { write: true, .. })) {
            self.put(around, Sight::Entries);
        }
        Ok(())
    }

    /// A link, unless what is shown there has the name already.
    fn link(&mut self, at: &Path, to: &Path) {
        let is_shown = matches!(self.0.get(at), Some(Sight::Bind { .. } | Sight::Entries));
        if !is_shown && self.host_around(at).is_none() && at.is_absolute() && at != to {
            self.put(at, Sight::Link(to.into()));
        }
    }

    fn into_shown(self) -> Vec<Shown> {
        let shown = |(at, sight): (PathBuf, Sight)| {
            let at = Raw::of(at);
            match sight {
                Sight::Entries => Shown::Entries { from: at.clone(), at },
                Sight::Bind { from, write } => Shown::Bind { from: Raw::of(from), at, write },
                Sight::Empty => Shown::Empty { at },
                Sight::Private => Shown::Private { at },
                Sight::Link(to) => Shown::Link { at, to: Raw::of(to) },
                Sight::File(text) => Shown::File { at, text },
                Sight::Copy(from) => Shown::Copy { from: Raw::of(from), at },
            }
        };
        self.0.into_iter().map(shown).collect()
    }
}

/// A link is refused, not followed: a tool that may write beside a declared path could otherwise point the next call
/// anywhere.
fn check_declared(path: &Path) -> Result<(), ExecError> {
    let refuse = |why: String| Err(ExecError::BadPath { path: path.to_owned(), why });
    let is_plain = path.is_absolute()
        && path.components().all(|part| matches!(part, Component::RootDir | Component::Normal(_)));
    if !is_plain || path.parent().is_none() {
        return refuse("a declared path is absolute, has no `..` and is not the root itself".into());
    }
    if ["/proc", "/sys", "/dev"].iter().any(|own| path.starts_with(own)) {
        return refuse("the system's own folders cannot be declared".into());
    }
    match fs::canonicalize(path) {
        Ok(real) if real == path => Ok(()),
        Ok(real) => refuse(format!("it goes through a symbolic link; declare `{}`", real.display())),
        Err(error) => refuse(error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_plain_existing_paths_can_be_declared() {
        let root = tempfile::tempdir().unwrap();
        let root = fs::canonicalize(root.path()).unwrap();
        fs::write(root.join("file"), "").unwrap();
        std::os::unix::fs::symlink(root.join("file"), root.join("link")).unwrap();
        for good in [root.clone(), root.join("file")] {
            assert!(check_declared(&good).is_ok(), "{}", good.display());
        }
        let bad = ["/", "relative", "/usr/../etc", "/proc/self", "/dev/sda", "/sys", "/no/such/path"];
        for bad in bad.map(PathBuf::from).into_iter().chain([root.join("link"), root.join("none")]) {
            assert!(check_declared(&bad).is_err(), "{}", bad.display());
        }
    }

    fn view_of(confinement: &Confinement, project: &Path) -> Vec<Shown> {
        view(&Request {
            confinement,
            level: Isolation::Restricted,
            program: Some("/bin/sh".into()),
            kiwi: None,
            cwd: project,
            project,
            snapshot: None,
            home: None,
        })
        .unwrap()
    }

    /// What is made or overwritten there would be made or overwritten on the host.
    #[test]
    fn nothing_is_put_into_what_is_the_hosts() {
        let etc = PathBuf::from("/etc");
        let declared = |read: &[&Path], write: &[&Path], entries: &[&Path]| {
            let [read, write, entries] =
                [read, write, entries].map(|paths| paths.iter().map(|path| (*path).to_owned()).collect());
            let confinement = Confinement { read, write, entries, ..Confinement::default() };
            view_of(&confinement, Path::new("/no/such/project"))
        };
        let below =
            |view: Vec<Shown>| view.into_iter().filter(|it| it.at().starts_with("/etc")).collect::<Vec<_>>();
        let bind = |write| Shown::Bind { from: Raw::of(&etc), at: Raw::of(&etc), write };
        assert!(below(declared(&[], &[], &[])).len() > 4);
        assert_eq!(below(declared(&[&etc], &[], &[])), [bind(false)]);
        assert_eq!(below(declared(&[], &[&etc], &[])), [bind(true)]);
        let entries = Shown::Entries { from: Raw::of(&etc), at: Raw::of(&etc) };
        // Beside entries that may be made, what is the host's anyway can be read.
        let beside = below(declared(&[], &[], &[Path::new("/etc/none")]));
        assert_eq!(beside.first(), Some(&entries));
        let is_itself = |it: &Shown| matches!(it, Shown::Bind { from, at, write: false } if from == at);
        assert!(beside.iter().skip(1).all(is_itself), "{beside:?}");
        // What is declared within stays, whichever comes first.
        let passwd = PathBuf::from("/etc/passwd");
        let within = below(declared(&[&passwd], &[&etc], &[]));
        assert_eq!(
            within,
            [bind(true), Shown::Bind { from: Raw::of(&passwd), at: Raw::of(&passwd), write: false }]
        );
    }

    #[test]
    fn a_program_beside_entries_that_may_be_made_is_shown() {
        let root = tempfile::tempdir().unwrap();
        let root = fs::canonicalize(root.path()).unwrap();
        let program = root.join("tool");
        fs::copy("/bin/sh", &program).unwrap();
        let confinement = Confinement { entries: vec![root.join("new")], ..Confinement::default() };
        let shown = view(&Request {
            confinement: &confinement,
            level: Isolation::Restricted,
            program: Some(program.clone()),
            kiwi: None,
            cwd: &root,
            project: &root,
            snapshot: None,
            home: None,
        })
        .unwrap();
        assert!(shown.contains(&Shown::Bind {
            from: Raw::of(&program),
            at: Raw::of(&program),
            write: false
        }));
    }

    #[test]
    fn a_home_is_not_made_on_the_host() {
        let home = Path::new("/home");
        let confinement = Confinement { read: vec![home.to_owned()], ..Confinement::default() };
        let usual = view_of(&Confinement::default(), Path::new("/no/such/project"));
        assert_eq!(super::home(&usual), system::HOME);
        let shown = view_of(&confinement, Path::new("/no/such/project"));
        let expected = if Path::new(system::HOME).is_dir() { system::HOME } else { "/tmp" };
        assert_eq!(super::home(&shown), expected);
        assert!(
            shown.iter().all(|it| it.at() == home
                || it.at() == Path::new(system::HOME)
                || !it.at().starts_with(home))
        );
    }

    #[test]
    fn what_is_declared_around_a_project_shows_it() {
        let root = tempfile::tempdir().unwrap();
        let root = fs::canonicalize(root.path()).unwrap();
        let project = root.join("project");
        fs::create_dir(&project).unwrap();
        let confinement = Confinement { read: vec![root.clone()], ..Confinement::default() };
        assert!(view_of(&confinement, &project).iter().all(|it| it.at() != project));
        assert!(view_of(&Confinement::default(), &project).contains(&Shown::Empty { at: Raw::of(&project) }));
        // To make entries is not to see what is there.
        let confinement = Confinement { entries: vec![root.join("new")], ..Confinement::default() };
        assert!(view_of(&confinement, &project).contains(&Shown::Empty { at: Raw::of(&project) }));
    }

    #[test]
    fn a_declared_project_replaces_the_empty_one_and_parents_come_first() {
        let root = tempfile::tempdir().unwrap();
        let root = fs::canonicalize(root.path()).unwrap();
        fs::create_dir(root.join("out")).unwrap();
        let confinement = Confinement { write: vec![root.join("out")], ..Confinement::default() };
        let shown = view_of(&confinement, &root);
        let at: Vec<&Path> = shown.iter().map(Shown::at).collect();
        let place = |path: &Path| at.iter().position(|at| *at == path);
        assert!(place(Path::new("/tmp")) < place(&root) && place(&root) < place(&root.join("out")));
        assert!(place(Path::new("/etc/resolv.conf")).is_none());
        assert!(at.is_sorted());
    }
}
