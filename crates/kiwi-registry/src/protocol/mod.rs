//! What a registry and its clients say to each other.
//!
//! Every path lies below `/v1`; bodies are JSON, except those of blobs. A failure is `{"error": {…}}` with a [`Fault`] inside.
//!
//! | method | path | scope | body | answer |
//! |---|---|---|---|---|
//! | GET | `/status` | – | – | [`Status`] |
//! | GET | `/whoami` | any token | – | [`Whoami`] |
//! | GET | `/search?q=…&limit=…` | – | – | [`Found`] |
//! | GET | `/resolve/{id}?requirement=…` | – | – | [`Chain`] |
//! | GET | `/tools/{id}` | – | – | [`ToolInfo`] |
//! | PATCH | `/tools/{id}` | publish, owner | [`ToolChange`] | [`ToolInfo`] |
//! | GET | `/tools/{id}/versions/{version}` | – | – | [`Release`] |
//! | PUT | `/tools/{id}/versions/{version}` | publish | [`Publication`] | [`Release`], 201; 200 for the same try again |
//! | PUT | `/tools/{id}/versions/{version}/yanked` | publish, owner | [`Yank`] | [`Release`] |
//! | POST | `/blobs/missing` | publish | [`Blobs`] | [`Blobs`] |
//! | GET, PUT | `/blobs/{sha256:…}` | –, publish | bytes | bytes, nothing |
//! | GET | `/lockfiles/{set}` | read | – | [`LockfileSet`] |
//! | PUT, DELETE | `/lockfiles/{set}/{key}` | publish | [`LockfileChange`], – | [`SharedLockfile`], nothing |
//! | GET, POST | `/tokens` | admin | –, [`NewToken`] | [`Tokens`], [`MadeToken`] |
//! | DELETE | `/tokens/{token}` | admin | – | nothing |
//! | GET, PUT | `/namespaces/{name}` | –, publish | – | [`Namespace`] |
//! | PUT, DELETE | `/namespaces/{name}/owners/{user}` | publish, owner | – | [`Namespace`] |
//! | GET | `/openapi.json` | – | – | this, for programs |
//!
//! What a caller may not see is not there (404). A private tool is seen by its owners and by admins; an unlisted one by whoever
//! knows its name; a public one is also found by searching.

mod check;
mod semver;

pub use check::{Problem, problems};
pub use semver::{Bounds, core_key, version_key};

use kiwi_model::{Digest, Fault, FileEntry, Integrity, ToolId, Version};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Changes when an older client could not understand the server any more.
pub const PROTOCOL: u32 = 1;
/// The header by which a publisher's second try is known for what it is: any text that no other publication has.
pub const ATTEMPT: &str = "idempotency-key";
/// A version may have this many files.
pub const MOST_FILES: usize = 20_000;
/// A version's files may have this many bytes together.
pub const MOST_BYTES: u64 = 1 << 30;
/// One file may have this many.
pub const MOST_BLOB: u64 = 256 << 20;
/// A chain has at most this many links.
pub const MOST_LINKS: usize = 10;

/// A failure, as it is sent.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Failed {
    /// What went wrong.
    pub error: Fault,
}

/// Who answers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Status {
    /// Always `kiwi`.
    pub name: String,
    /// The version of Kiwi that serves.
    pub version: String,
    /// [`PROTOCOL`].
    pub protocol: u32,
}

/// What a token may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Scope {
    /// See what its user may see.
    Read,
    /// Publish, yank, share lockfiles.
    Publish,
    /// Everything, everywhere.
    Admin,
}

/// Whose token it is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Whoami {
    /// The user.
    pub user: String,
    /// What the token may do.
    pub scopes: Vec<Scope>,
    /// The namespaces the user owns.
    pub namespaces: Vec<String>,
}

/// Who sees a tool.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Visibility {
    /// Everybody.
    #[default]
    Public,
    /// Whoever knows its name.
    Unlisted,
    /// Its owners.
    Private,
}

/// One file of a version.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FileInfo {
    /// Path inside the package, `/`-separated.
    pub path: String,
    /// Digest of its bytes.
    #[schemars(with = "String", regex(pattern = r"^sha256:[0-9a-f]{64}$"))]
    pub sha256: Digest,
    /// Whether its owner may execute it.
    pub is_executable: bool,
    /// Its length in bytes.
    pub size: u64,
}

impl FileInfo {
    /// What is hashed of it.
    pub fn entry(&self) -> FileEntry {
        FileEntry { path: self.path.clone(), sha256: self.sha256, is_executable: self.is_executable }
    }
}

/// A signature over an integrity.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Signature {
    /// Whose: `ed25519:` and 64 digits.
    pub key: String,
    /// The signature, hexadecimal.
    pub signature: String,
}

/// What a publisher sends. Its files must be there as blobs already.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Publication {
    /// The document that is hashed.
    #[schemars(with = "serde_json::Map<String, Value>")]
    pub manifest: Value,
    /// Every file, the manifest's own among them.
    #[schemars(length(min = 1, max = 20_000))]
    pub files: Vec<FileInfo>,
    /// What both hash to.
    #[schemars(with = "String", regex(pattern = r"^sha256:[0-9a-f]{64}$"))]
    pub integrity: Integrity,
    /// Who vouches for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signature: Option<Signature>,
    /// Who sees the tool, where it is new. A tool that is there stays as it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub visibility: Option<Visibility>,
}

/// One version of a tool, whole but for the bytes of its files.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Release {
    /// Which tool.
    #[schemars(with = "String")]
    pub tool_id: ToolId,
    /// Which version.
    #[schemars(with = "String")]
    pub version: Version,
    /// What sort of tool.
    pub tool_type: String,
    /// What runs it: `id`, or `id@requirement`.
    pub executor: Option<String>,
    /// The document that is hashed.
    pub manifest: Value,
    /// Its identity.
    #[schemars(with = "String", regex(pattern = r"^sha256:[0-9a-f]{64}$"))]
    pub integrity: Integrity,
    /// Its files by path.
    pub files: Vec<FileInfo>,
    /// Who vouches for it.
    pub signature: Option<Signature>,
    /// When it was published, RFC 3339.
    pub published_at: String,
    /// By whom.
    pub publisher: String,
    /// Why nobody should begin to use it.
    pub yanked: Option<String>,
}

/// A tool and its versions.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ToolInfo {
    /// Which tool.
    #[schemars(with = "String")]
    pub tool_id: ToolId,
    /// What it is for, by its newest version.
    pub description: String,
    /// What sort of tool.
    pub tool_type: String,
    /// Who sees it.
    pub visibility: Visibility,
    /// The users who may publish it.
    pub owners: Vec<String>,
    /// The newest version that was not yanked; one before its release only where there is no other.
    #[schemars(with = "Option<String>")]
    pub latest: Option<Version>,
    /// All of them, newest first.
    pub versions: Vec<VersionInfo>,
}

/// A line about a version.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct VersionInfo {
    /// Which.
    #[schemars(with = "String")]
    pub version: Version,
    /// Its identity.
    #[schemars(with = "String", regex(pattern = r"^sha256:[0-9a-f]{64}$"))]
    pub integrity: Integrity,
    /// When it was published, RFC 3339.
    pub published_at: String,
    /// By whom.
    pub publisher: String,
    /// Why nobody should begin to use it.
    pub yanked: Option<String>,
}

/// What may change about a tool.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ToolChange {
    /// Who sees it.
    pub visibility: Visibility,
}

/// Whether a version is yanked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Yank {
    /// Why, on one line; nothing takes the yank back.
    #[schemars(length(min = 1, max = 500), regex(pattern = "^[^\\u0000-\\u001f\\u007f-\\u009f]+$"))]
    pub reason: Option<String>,
}

/// A tool with everything it runs on, as far as the registry has it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Chain {
    /// The tool first.
    pub links: Vec<Link>,
    /// What the last link runs on and the registry does not have: the client's own system may.
    pub beyond: Option<Beyond>,
}

/// One link of a chain.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Link {
    /// How far from the tool.
    pub depth: u32,
    /// The version that was chosen.
    #[serde(flatten)]
    pub release: Release,
}

/// What a chain goes on with outside the registry.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Beyond {
    /// Which tool.
    pub tool_id: String,
    /// Which versions will do.
    pub requirement: Option<String>,
    /// Whether the registry has the tool, and no version that will do.
    pub is_known: bool,
}

/// Digests of blobs.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Blobs {
    /// In no order.
    #[schemars(with = "Vec<String>", length(max = 20_000), inner(regex(pattern = r"^sha256:[0-9a-f]{64}$")))]
    pub digests: Vec<Digest>,
}

/// What a search found: candidates, best first. Whoever asked ranks them among their own.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Found {
    /// The newest version of each.
    pub hits: Vec<FoundTool>,
}

/// A tool that was found.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FoundTool {
    /// Which tool.
    #[schemars(with = "String")]
    pub tool_id: ToolId,
    /// Its newest version.
    #[schemars(with = "String")]
    pub version: Version,
    /// Its identity.
    #[schemars(with = "String", regex(pattern = r"^sha256:[0-9a-f]{64}$"))]
    pub integrity: Integrity,
    /// Its document.
    pub manifest: Value,
}

/// A lockfile that is shared.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SharedLockfile {
    /// Where it lies in the store: `category/tool@version`.
    pub key: String,
    /// The lockfile.
    pub lockfile: Value,
    /// Changes whenever it does.
    pub revision: u64,
    /// Who shared it last.
    pub user: String,
    /// When, RFC 3339.
    pub at: String,
}

/// The lockfiles of a set.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LockfileSet {
    /// By key.
    pub lockfiles: Vec<SharedLockfile>,
}

/// A lockfile to be shared.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LockfileChange {
    /// The lockfile.
    #[schemars(with = "serde_json::Map<String, Value>")]
    pub lockfile: Value,
    /// The revision it takes the place of; nothing where there is none. Another one is a conflict (409).
    pub replaces: Option<u64>,
}

/// A token that is wanted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NewToken {
    /// Whose; made where there is none of that name.
    #[schemars(regex(pattern = r"^[a-z][a-z0-9_-]{0,63}$"))]
    pub user: String,
    /// What it may do.
    #[schemars(length(min = 1, max = 8))]
    pub scopes: Vec<Scope>,
    /// Days until it ends; nothing means never.
    #[serde(default)]
    #[schemars(range(min = 1, max = 36_500))]
    pub days: Option<u32>,
}

/// A token, shown this once.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct MadeToken {
    /// The secret.
    pub token: String,
    /// What is known about it later.
    #[serde(flatten)]
    pub about: TokenInfo,
}

/// What is known about a token.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TokenInfo {
    /// Names it; tells nothing.
    pub id: String,
    /// Whose.
    pub user: String,
    /// What it may do.
    pub scopes: Vec<Scope>,
    /// Since when, RFC 3339.
    pub created_at: String,
    /// Until when.
    pub expires_at: Option<String>,
}

/// Tokens that are good.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Tokens {
    /// Oldest first.
    pub tokens: Vec<TokenInfo>,
}

/// A namespace: the first part of a dotted id.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Namespace {
    /// Its name.
    pub name: String,
    /// The users who may publish in it.
    pub owners: Vec<String>,
}

/// The namespace of an id; an id without dots has none.
pub fn namespace(id: &ToolId) -> Option<&str> {
    id.as_str().split_once('.').map(|(namespace, _)| namespace)
}
