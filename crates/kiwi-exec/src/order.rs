//! From a [`Process`] to words the launcher understands: everything that can be refused is refused here, before
//! anything of it starts.

use kiwi_model::{Isolation, Piece, Text};
use std::collections::BTreeMap;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use crate::error::ExecError;
use crate::orphans::MARKER;
use crate::place::Placement;
use crate::process::{Launcher, Process};
use crate::sandbox::{self, Builder, Sandbox};
use crate::which::ProgramSearch;
use kiwi_launcher::wire::{Launch, Part, Raw, Word};

/// A process that may start.
#[derive(Debug)]
pub struct Order {
    pub launch: Launch,
    pub placement: Placement,
}

impl Order {
    /// Checks everything and resolves what is symbolic.
    ///
    /// `builder` is there for the levels that have walls.
    pub fn draw_up(
        launcher: &Launcher,
        process: &Process,
        placement: Placement,
        builder: Option<Builder>,
        call: &str,
    ) -> Result<Self, ExecError> {
        check_texts(process)?;
        // The launcher changes into the working folder: from there nothing relative means what it meant here.
        let cwd = std::path::absolute(&process.cwd)
            .map_err(|source| ExecError::WorkingFolder { path: process.cwd.clone(), source })?;
        let kiwi = absolute(launcher.kiwi())?;
        let speller = Speller { process, placement: &placement, kiwi: &kiwi, cwd: &cwd };
        let args = process.args.iter().map(|text| speller.word(text)).collect::<Result<Vec<_>, _>>()?;
        // A map, because of two values for one name only the later may reach the tool.
        let mut env = BTreeMap::new();
        for (name, value) in &process.env {
            env.insert(name.as_str(), speller.word(value)?);
        }
        let program = speller.program(&env)?;
        let sandbox = builder.map(|builder| speller.sandbox(builder, &program, &mut env)).transpose()?;
        env.insert(MARKER, literal(call));
        let launch = Launch {
            program,
            args,
            env: env.into_iter().map(|(name, value)| (name.to_owned(), value)).collect(),
            cwd: Raw::of(&cwd),
            stdin: !process.stdin.is_empty(),
            files: 0,
            timeout_ms: u64::try_from(process.timeout.as_millis()).unwrap_or(u64::MAX),
            grace_ms: u64::try_from(launcher.grace.as_millis()).unwrap_or(u64::MAX),
            confined: process.isolation != Isolation::Trusted,
            has_secrets: process.has_secrets,
            limits: process.confinement.limits,
            scrap: None,
            sandbox,
        };
        Ok(Self { launch, placement })
    }

    /// How long arguments and environment are, as the kernel counts them.
    pub fn length(launch: &Launch) -> usize {
        let strings = launch
            .args
            .iter()
            .map(Word::len)
            .chain(launch.env.iter().map(|(name, value)| name.len() + 1 + value.len()));
        // Each string has a NUL and a pointer.
        strings.chain([launch.program.len()]).map(|length| length + 1 + size_of::<usize>()).sum()
    }
}

pub fn absolute(path: &Path) -> Result<PathBuf, ExecError> {
    std::path::absolute(path).map_err(ExecError::io(format!("use the path `{}`", path.display())))
}

fn check_texts(process: &Process) -> Result<(), ExecError> {
    let refuse = |what: String| Err(ExecError::NulByte { what });
    if has_nul(&process.program) {
        return refuse("the program".into());
    }
    if let Some(at) = process.args.iter().position(has_nul) {
        return refuse(format!("argument {}", at + 1));
    }
    for (name, value) in &process.env {
        if name.is_empty() || name.contains(['=', '\0']) {
            return Err(ExecError::BadVariable { name: name.escape_default().to_string() });
        }
        if has_nul(value) {
            return refuse(format!("environment variable `{name}`"));
        }
    }
    for (path, what) in [(&process.cwd, "the working folder"), (&process.project, "the project folder")] {
        if path.as_os_str().as_bytes().contains(&0) {
            return refuse(what.into());
        }
    }
    Ok(())
}

fn has_nul(text: &Text) -> bool {
    text.0.iter().any(|piece| matches!(piece, Piece::Literal(text) if text.contains('\0')))
}

fn literal(text: impl AsRef<std::ffi::OsStr>) -> Word {
    Word(vec![Part::Text(Raw::of(text))])
}

struct Speller<'a> {
    process: &'a Process,
    placement: &'a Placement,
    kiwi: &'a Path,
    cwd: &'a Path,
}

impl Speller<'_> {
    fn word(&self, text: &Text) -> Result<Word, ExecError> {
        let part = |piece: &Piece| match piece {
            Piece::Literal(text) => Ok(Part::Text(Raw::of(text))),
            Piece::File { link, path } => self.placement.part(*link, Some(path)),
            Piece::Folder { link } => self.placement.part(*link, None),
            Piece::Project => Ok(Part::Text(Raw::of(&self.process.project))),
            Piece::Kiwi => Ok(Part::Text(Raw::of(self.kiwi))),
        };
        text.0.iter().map(part).collect::<Result<_, _>>().map(Word)
    }

    /// The walls, and the variables by which the tool finds its way inside them.
    fn sandbox(
        &self,
        builder: Builder,
        program: &Word,
        env: &mut BTreeMap<&str, Word>,
    ) -> Result<Sandbox, ExecError> {
        let path = |word: &Word| word.spell().ok().map(PathBuf::from).filter(|path| path.is_absolute());
        let (process, confinement) = (self.process, &self.process.confinement);
        let texts = process.args.iter().chain(process.env.iter().map(|(_, value)| value));
        let names_kiwi =
            texts.chain([&process.program]).flat_map(|text| &text.0).any(|piece| *piece == Piece::Kiwi);
        let view = sandbox::view(&sandbox::Request {
            confinement,
            level: process.isolation,
            program: path(program),
            kiwi: names_kiwi.then_some(self.kiwi),
            cwd: self.cwd,
            project: &process.project,
            snapshot: self.placement.snapshot(),
            home: env.get("HOME").and_then(path),
        })?;
        let sockets = process.isolation == Isolation::Sandboxed;
        let proxy = sockets && !confinement.network.hosts.is_empty();
        env.insert("HOME", literal(sandbox::home(&view)));
        env.insert("TMPDIR", literal(sandbox::TEMPORARY));
        if proxy {
            let address = format!("http://{}", sandbox::PROXY);
            for name in ["HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"] {
                env.insert(name, literal(&address));
            }
            // Its own loopback needs no proxy, unless it declared the host's.
            let hosts = &confinement.network.hosts;
            let is_declared =
                |own: &str| hosts.iter().any(|host| host.trim_start_matches('[').starts_with(own));
            let own: Vec<&str> =
                ["localhost", "127.0.0.1", "::1"].into_iter().filter(|own| !is_declared(own)).collect();
            for name in ["NO_PROXY", "no_proxy"] {
                env.insert(name, literal(own.join(",")));
            }
            // Node.js heeds the variables only when told to.
            env.insert("NODE_USE_ENV_PROXY", literal("1"));
        }
        Ok(sandbox::behind(builder, sockets, proxy, view))
    }

    /// A program named in plain characters is looked for; a symbolic one is where it is.
    fn program(&self, env: &BTreeMap<&str, Word>) -> Result<Word, ExecError> {
        let Some(name) = self.process.program.as_literal() else { return self.word(&self.process.program) };
        let versions = env
            .iter()
            .filter(|(name, _)| name.ends_with("_VERSION"))
            .filter_map(|(name, value)| Some(((*name).to_owned(), value.spell().ok()?.into_string().ok()?)))
            .collect();
        let search = ProgramSearch { path: &self.process.search_path, cwd: self.cwd, versions: &versions };
        match search.find(&name) {
            Some(found) => Ok(literal(found)),
            None => Err(search.explain_missing(&name)),
        }
    }
}
