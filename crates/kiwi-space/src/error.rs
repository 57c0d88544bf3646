//! What can go wrong between a path and a tool.

use kiwi_chain::FileChange;
use kiwi_model::{CanonicalError, Digest, ErrorKind, Explain, ManifestError, Space, ToolId, Version};
use serde_json::{Value, json};
use std::io;
use std::path::{Path, PathBuf};

use crate::credentials::KeeperProblem;
use crate::locks::LockProblem;

/// Why something in a space cannot be used, or could not be written.
#[derive(Debug, thiserror::Error)]
pub enum SpaceError {
    /// The folder given as the project has no `.ai`.
    #[error("no project at `{}`: it has no `.ai` folder", show(folder))]
    NoProject {
        /// The folder that was named.
        folder: PathBuf,
    },
    /// The folder given as the project holds the user space.
    #[error("`{}` holds the user space and cannot be a project too", show(folder))]
    ProjectIsUser {
        /// The folder that was named.
        folder: PathBuf,
    },
    /// The space that was asked for does not exist here.
    #[error("there is no {space} space here")]
    NoSpace {
        /// Which one.
        space: Space,
    },
    /// The manifest, or what stands for it, cannot be used.
    #[error(transparent)]
    Manifest(#[from] ManifestError),
    /// An id that only the system may define.
    #[error("`{id}` at `{path}` belongs to the system and cannot be defined in the {space} space")]
    Reserved {
        /// The id.
        id: ToolId,
        /// Where it was defined.
        space: Space,
        /// The file.
        path: String,
    },
    /// A primitive outside the system.
    #[error("`{path}` says `tool_type: primitive`, and primitives belong to the system")]
    ForeignPrimitive {
        /// The file.
        path: String,
    },
    /// Two items with one identity.
    #[error("`{id}@{version}` is defined twice in the {space} space: `{first}` and `{second}`")]
    Ambiguous {
        /// The id.
        id: ToolId,
        /// The version.
        version: Version,
        /// The space.
        space: Space,
        /// One file.
        first: String,
        /// The other.
        second: String,
    },
    /// A path that a tool may not have or reach.
    #[error("`{path}` {problem}")]
    BadPath {
        /// The path.
        path: String,
        /// What is wrong with it.
        problem: PathProblem,
    },
    /// More files or bytes than a tool may have.
    #[error("`{path}` has more than {limit} {what}")]
    TooLarge {
        /// The tool's folder or file.
        path: String,
        /// `files`, `bytes`, …
        what: &'static str,
        /// How many are allowed.
        limit: u64,
    },
    /// A shared module that is named and not there.
    #[error("`{tool}` imports `{module}`, which is not in `{}`", show(folder))]
    MissingModule {
        /// The tool's manifest or script.
        tool: String,
        /// The module as it is named.
        module: String,
        /// Where it was looked for.
        folder: PathBuf,
    },
    /// A shared module would hide a file of the tool.
    #[error("`{tool}` imports a shared module as `{path}`, and has a file of its own there")]
    ModuleCollision {
        /// The tool's manifest or script.
        tool: String,
        /// The path both want.
        path: String,
    },
    /// The folder of a package and its manifest disagree.
    #[error("`{path}` gives version `{manifest}`, but its folder says `{folder}`")]
    PackageVersion {
        /// The manifest.
        path: String,
        /// The version in the manifest.
        manifest: Version,
        /// The version in the folder's name.
        folder: Version,
    },
    /// A file of a recorded tool is not what was recorded.
    #[error("integrity mismatch for {tool}: {}", tell(changes))]
    Changed {
        /// `id@version`.
        tool: String,
        /// Every difference.
        changes: Vec<FileChange>,
    },
    /// A recorded tool holds something that cannot be a file of it.
    #[error("integrity mismatch for {tool}: {why}")]
    Unfit {
        /// `id@version`.
        tool: String,
        /// What it holds.
        why: String,
    },
    /// The record of a package is not what was noted when it was installed.
    #[error(
        "integrity mismatch for {tool}: record `{}` says {recorded}, but {noted} was installed",
        show(record)
    )]
    RecordDiffers {
        /// `id@version`.
        tool: String,
        /// The record.
        record: PathBuf,
        /// What it says.
        recorded: Digest,
        /// What was noted in the user space.
        noted: Digest,
    },
    /// The file of credentials cannot be used.
    #[error("the credentials in `{}` cannot be read: {why}", show(path))]
    Credentials {
        /// The file.
        path: PathBuf,
        /// Why not.
        why: String,
    },
    /// The key of the credentials is not to be had.
    #[error(
        "the key of the credentials in `{}` belongs in the desktop's keyring, which {problem}",
        show(path)
    )]
    KeyOutOfReach {
        /// The file.
        path: PathBuf,
        /// Why not.
        problem: KeeperProblem,
    },
    /// A name that no credential can have.
    #[error("`{name}` cannot be the name of a credential")]
    CredentialName {
        /// The name.
        name: String,
    },
    /// A file with secrets that others can read.
    #[error("`{}` can be read by others (mode {mode:o}), so its secrets are not used", show(path))]
    Exposed {
        /// The file.
        path: PathBuf,
        /// Its permissions.
        mode: u32,
    },
    /// The record of a package cannot be read.
    #[error("integrity mismatch for {tool}: record `{}` is unreadable: {why}", show(record))]
    RecordBroken {
        /// `id@version`.
        tool: String,
        /// The record.
        record: PathBuf,
        /// Why.
        why: String,
    },
    /// What is to be installed is not what was asked for.
    #[error("integrity mismatch for {tool}: computed {computed}, expected {expected}")]
    NotAsExpected {
        /// `id@version`.
        tool: String,
        /// What the files give.
        computed: Digest,
        /// What was asked for.
        expected: Digest,
    },
    /// A configuration file that cannot be used.
    #[error("{}:{line}:{column}: {message}", show(file))]
    Config {
        /// The file.
        file: PathBuf,
        /// Line, from 1.
        line: usize,
        /// Column, from 1.
        column: usize,
        /// What is wrong.
        message: String,
    },
    /// A manifest that has no canonical form.
    #[error("`{path}` cannot be hashed: {source}")]
    Unhashable {
        /// The manifest.
        path: String,
        /// Why.
        source: CanonicalError,
    },
    /// A candidate that is no longer there.
    #[error("`{tool}` is no longer where it was found (`{handle}`)")]
    Gone {
        /// `id@version`.
        tool: String,
        /// Where it was.
        handle: String,
    },
    /// No item lies where one was asked for.
    #[error("nothing lies at `{}` in the {space} space", show(Path::new(key)))]
    NothingThere {
        /// The space.
        space: Space,
        /// Where in it.
        key: String,
    },
    /// A lockfile that is there and cannot be used.
    #[error("lockfile `{}`: {problem}", show(path))]
    Lockfile {
        /// The file.
        path: PathBuf,
        /// The tool its name speaks of.
        tool: ToolId,
        /// What is wrong with it.
        problem: LockProblem,
    },
    /// A file or folder that cannot be read.
    #[error("cannot read `{}`: {}", show(path), plain(source))]
    Unreadable {
        /// Which.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A file or folder that cannot be written.
    #[error("cannot write `{}`: {}", show(path), plain(source))]
    Unwritable {
        /// Which.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
}

/// What is wrong with a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum PathProblem {
    /// A symlink, or `..`, that ends outside.
    #[error("leaves its space")]
    LeavesSpace,
    /// A name that is not text.
    #[error("has a name that is not UTF-8")]
    NotUtf8,
    /// A fifo, socket or device.
    #[error("is neither a file nor a folder")]
    SpecialFile,
    /// A folder where a file is needed.
    #[error("is a folder, not a file")]
    Folder,
    /// A file where a folder is needed.
    #[error("is not a folder")]
    NotFolder,
    /// A symlink that leads nowhere.
    #[error("is a symlink that leads nowhere")]
    Dangling,
    /// Symlinks that lead back to themselves.
    #[error("is a symlink that leads back to itself")]
    Loop,
    /// A category folder that cannot be read.
    #[error("is a folder that cannot be read")]
    Unreadable,
    /// A symlinked folder among categories.
    #[error("is a symlinked folder without `tool.yaml`; tools are not looked for in it")]
    LinkedCategory,
    /// Deeper than any tool should be.
    #[error("is nested too deeply")]
    TooDeep,
    /// Empty, absolute, with `..` or NUL.
    #[error("is not a relative path inside the package")]
    NotInside,
    /// A file or folder among tools whose name cannot be an id.
    #[error("has a name that is not a tool id")]
    NotAnId,
    /// A folder of `packages/{id}/` whose name is not a version.
    #[error("has a name that is not a semantic version")]
    NotAVersion,
    /// A category that cannot be a folder among lockfiles.
    #[error("is not a category")]
    NotACategory,
    /// A hash that no name of a lockfile carries.
    #[error("is not a chain hash of 12 hex digits")]
    NotAChainHash,
    /// A symlink where only a folder will do.
    #[error("is a symlink, and nothing is written or looked for through it")]
    Symlink,
}

impl SpaceError {
    /// Whether it only says that something is not there.
    pub(crate) fn is_absent(&self) -> bool {
        let Self::Unreadable { source, .. } = self else { return false };
        matches!(source.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
    }

    pub(crate) fn bad_path(path: impl AsRef<Path>, problem: PathProblem) -> Self {
        Self::BadPath { path: show(path.as_ref()), problem }
    }

    pub(crate) fn unreadable(path: impl Into<PathBuf>, source: impl Into<io::Error>) -> Self {
        Self::Unreadable { path: path.into(), source: source.into() }
    }

    pub(crate) fn unwritable(path: impl Into<PathBuf>, source: impl Into<io::Error>) -> Self {
        Self::Unwritable { path: path.into(), source: source.into() }
    }
}

impl Explain for SpaceError {
    fn kind(&self) -> ErrorKind {
        match self {
            Self::NoProject { .. }
            | Self::ProjectIsUser { .. }
            | Self::NoSpace { .. }
            | Self::Gone { .. }
            | Self::NothingThere { .. } => ErrorKind::NotFound,
            Self::Reserved { .. } => ErrorKind::SpaceViolation,
            Self::Ambiguous { .. } => ErrorKind::Ambiguous,
            Self::Manifest(_)
            | Self::ForeignPrimitive { .. }
            | Self::BadPath { .. }
            | Self::TooLarge { .. }
            | Self::MissingModule { .. }
            | Self::ModuleCollision { .. }
            | Self::PackageVersion { .. }
            | Self::Config { .. }
            | Self::Unhashable { .. }
            | Self::Unreadable { .. } => ErrorKind::InvalidManifest,
            Self::Changed { .. }
            | Self::Unfit { .. }
            | Self::RecordDiffers { .. }
            | Self::RecordBroken { .. }
            | Self::NotAsExpected { .. } => ErrorKind::IntegrityMismatch,
            Self::Lockfile { problem, .. } => problem.kind(),
            Self::CredentialName { .. } => ErrorKind::Usage,
            Self::Credentials { .. } | Self::KeyOutOfReach { .. } | Self::Exposed { .. } => {
                ErrorKind::MissingRequirement
            }
            Self::Unwritable { source, .. } if is_in_the_way(source) => ErrorKind::Usage,
            Self::Unwritable { .. } => ErrorKind::Internal,
        }
    }

    fn hint(&self) -> Option<String> {
        let hint = match self {
            Self::Manifest(error) => return error.hint(),
            Self::Lockfile { tool, problem, .. } => {
                return problem.hint().map(|hint| hint.replace("TOOL", tool.as_str()));
            }
            Self::Exposed { path, .. } => {
                return Some(format!(
                    "`chmod 600 '{}'`, and replace secrets that others may have seen",
                    show(path)
                ));
            }
            Self::Credentials { .. } => {
                "bring back `identity.txt` beside it, or remove both and store the secrets again"
            }
            Self::KeyOutOfReach { problem, .. } => problem.hint(),
            Self::CredentialName { .. } => "use letters, digits, `_`, `-` and `.`, starting with a letter",
            Self::NoProject { .. } => "run `kiwi init` there, or name a folder that has `.ai`",
            Self::ProjectIsUser { .. } => {
                "leave `--project` out: tools of the user space are found everywhere"
            }
            Self::NoSpace { space: Space::Project } => {
                "run `kiwi init` in the folder that should be the project"
            }
            Self::NoSpace { .. } => "set HOME, or KIWI_USER_SPACE to the folder that should hold `.ai`",
            Self::Reserved { .. } => "give it another name, outside `filesystem`, `shell`, `kiwi` and `mcp`",
            Self::ForeignPrimitive { .. } => {
                "write a `script` or a `runtime` over `subprocess` or `http_client`"
            }
            Self::Ambiguous { .. } => "give one of them another version or another id, or remove it",
            Self::BadPath { problem: PathProblem::LeavesSpace, .. } => "copy the file into the space",
            Self::BadPath { problem: PathProblem::LinkedCategory, .. } => {
                "move the folder there, or add a `tool.yaml` to it"
            }
            Self::BadPath { problem: PathProblem::NotAnId, .. } => {
                "use lowercase letters, digits and `_`, starting with a letter; a name that starts with `_` is passed over"
            }
            Self::BadPath { problem: PathProblem::NotAVersion, .. } => "write three numbers, such as `1.0.0`",
            Self::BadPath { problem: PathProblem::NotACategory, .. } => {
                "write names joined by `/`, such as `data/csv`; none may be empty or start with a dot"
            }
            Self::BadPath { problem: PathProblem::Symlink | PathProblem::NotFolder, .. } => {
                "put a folder in its place"
            }
            Self::Unwritable { source, .. } if is_in_the_way(source) => match source.kind() {
                io::ErrorKind::NotADirectory | io::ErrorKind::AlreadyExists => {
                    "a file lies where a folder belongs: move it away"
                }
                _ => "make it writable for you, or work in a folder that is",
            },
            Self::Unwritable { .. } => "`kiwi doctor` shows what is missing here",
            Self::TooLarge { .. } => "keep data and dependencies outside the tool",
            Self::MissingModule { .. } => "put the module there, or take it out of `lib_imports`",
            Self::ModuleCollision { .. } => "rename the tool's own file",
            Self::PackageVersion { .. } | Self::Gone { .. } => "install the package again",
            Self::Changed { .. } | Self::Unfit { .. } | Self::NotAsExpected { .. } => {
                "if the change is not yours, do not use it; install it again"
            }
            Self::RecordDiffers { .. } | Self::RecordBroken { .. } => {
                "if the change is not yours, do not use it; installing the package again writes a new record"
            }
            Self::Config { .. } => "`kiwi schema config` prints what may stand there",
            Self::NothingThere { .. } => "search finds what there is",
            Self::Unreadable { .. } => {
                "what is asked for may lie in there: make it readable for you, or move it away"
            }
            Self::BadPath { .. } | Self::Unhashable { .. } => return None,
        };
        Some(hint.to_owned())
    }

    fn details(&self) -> Value {
        match self {
            Self::Manifest(error) => error.details(),
            Self::Reserved { id, space, path } => json!({"tool_id": id, "space": space, "file": path}),
            Self::Ambiguous { id, version, space, first, second } => {
                json!({"tool_id": id, "version": version, "space": space, "files": [first, second]})
            }
            Self::ForeignPrimitive { path }
            | Self::BadPath { path, .. }
            | Self::TooLarge { path, .. }
            | Self::PackageVersion { path, .. }
            | Self::Unhashable { path, .. } => json!({"file": path}),
            Self::MissingModule { tool, module, .. } => json!({"file": tool, "module": module}),
            Self::ModuleCollision { tool, path } => json!({"file": tool, "module": path}),
            Self::Changed { tool, changes } => {
                json!({"tool": tool, "file": changes.first().map(FileChange::path), "changes": changes.iter().map(ToString::to_string).collect::<Vec<_>>()})
            }
            Self::Unfit { tool, .. } => json!({"tool": tool}),
            Self::Lockfile { path, tool, .. } => json!({"tool_id": tool, "file": show(path)}),
            Self::RecordDiffers { tool, record, .. } | Self::RecordBroken { tool, record, .. } => {
                json!({"tool": tool, "file": show(record)})
            }
            Self::NotAsExpected { tool, computed, expected } => {
                json!({"tool": tool, "computed": computed, "expected": expected})
            }
            Self::Config { file, line, column, .. } => {
                json!({"file": show(file), "line": line, "column": column})
            }
            Self::Unreadable { path, .. } | Self::Unwritable { path, .. } => json!({"file": show(path)}),
            Self::NoProject { .. }
            | Self::ProjectIsUser { .. }
            | Self::NoSpace { .. }
            | Self::Gone { .. }
            | Self::NothingThere { .. }
            | Self::Credentials { .. }
            | Self::KeyOutOfReach { .. }
            | Self::CredentialName { .. }
            | Self::Exposed { .. } => Value::Null,
        }
    }
}

/// Whether it is for a person to mend, and no failure of the machine.
fn is_in_the_way(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::PermissionDenied
            | io::ErrorKind::ReadOnlyFilesystem
            | io::ErrorKind::NotADirectory
            | io::ErrorKind::AlreadyExists
    )
}

/// What changed, the digests of the first changed file in front.
fn tell(changes: &[FileChange]) -> String {
    let digests = changes.iter().find_map(|change| match change {
        FileChange::Content { computed, expected, .. } => {
            Some(format!("computed {}, expected {}: ", computed.short(), expected.short()))
        }
        _ => None,
    });
    let list: Vec<String> = changes.iter().map(ToString::to_string).collect();
    format!("{}{}", digests.unwrap_or_default(), list.join(", "))
}

/// A path as a person should see it. Names come from strangers: what could move a cursor is escaped.
pub(crate) fn show(path: &Path) -> String {
    let text = path.to_string_lossy();
    if text.chars().any(char::is_control) {
        text.chars()
            .flat_map(|c| if c.is_control() { c.escape_default().collect::<Vec<_>>() } else { vec![c] })
            .collect()
    } else {
        text.into_owned()
    }
}

/// The system's sentence without `(os error 2)`, which helps nobody.
pub(crate) fn plain(error: &io::Error) -> String {
    let text = error.to_string();
    let text = text.split(" (os error").next().unwrap_or_default();
    let mut chars = text.chars();
    chars.next().map(|first| first.to_lowercase().chain(chars).collect()).unwrap_or_default()
}
