//! What a configuration file may say.

use kiwi_model::limit::{ApprovalConfig, BudgetConfig, LoopConfig, RateConfig};
use kiwi_model::lockfile::LockMode;
use schemars::JsonSchema;
use serde::de::{self, Deserializer, Visitor};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;

use super::profile::ProfileSection;

/// A year: more is a mistake.
const MAX_TIMEOUT: u64 = 31_536_000;
const MAX_OUTPUT: u64 = 1 << 40;

/// How chains are validated.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// A parent without schemas is an error.
    #[default]
    Strict,
    /// It is a warning, for migration. Only the user's configuration can say so.
    Lenient,
}

/// Whether the key of the credential store may be in the desktop's keyring.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum KeyringUse {
    /// Where there is one.
    #[default]
    Auto,
    /// Never: it is in a file beside the store.
    Off,
}

/// Who builds the walls of sandboxes. All promise the same.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum SandboxBackend {
    /// `bwrap` where it works, otherwise Kiwi itself.
    #[default]
    Auto,
    /// The program `bwrap`.
    Bwrap,
    /// Kiwi itself, with namespaces, landlock and seccomp.
    Landlock,
    /// Docker: each call in a container of its own, which shows what the others show.
    Docker,
    /// Podman, likewise.
    Podman,
}

/// A configuration file as it may be written.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(default, expecting = "a table")]
#[schemars(title = "Kiwi configuration")]
pub struct ConfigFile {
    /// How chains are validated.
    pub validation: ValidationSection,
    /// What a call may use.
    pub limits: LimitsSection,
    /// Python.
    pub python: PythonSection,
    /// Lockfiles.
    pub lockfiles: LockfilesSection,
    /// Sandboxes.
    pub sandbox: SandboxSection,
    /// Credentials.
    pub credentials: CredentialsSection,
    /// Rules.
    pub rules: RulesSection,
    /// What callers may do, by name.
    #[schemars(with = "BTreeMap<String, ProfileSection>")]
    pub profiles: BTreeMap<String, ProfileSection>,
    /// Which profile each way in has.
    pub transports: TransportsSection,
    /// The audit log.
    pub audit: AuditSection,
    /// Search.
    pub search: SearchSection,
    /// Where tools are shared.
    pub registry: RegistrySection,
    /// Whose signatures count.
    pub trust: TrustSection,
    /// How often callers may use tools. Where both files give a limit the smaller one holds.
    pub rates: RateConfig,
    /// When a session goes round in circles.
    pub loops: LoopConfig,
    /// What a session may use in all.
    pub budget: BudgetConfig,
    /// How long a call waits for a person.
    pub approvals: ApprovalConfig,
}

/// How chains are validated.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(default, expecting = "a table")]
pub struct ValidationSection {
    /// `strict` unless the user's configuration says `lenient` and the project's does not say `strict`.
    pub mode: Option<Mode>,
}

/// What a call may use. Where both files give a limit the smaller one holds.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(default, expecting = "a table")]
pub struct LimitsSection {
    /// Seconds a call may take where its tool says nothing; 300 when left out.
    #[serde(deserialize_with = "seconds")]
    #[schemars(range(min = 1, max = MAX_TIMEOUT))]
    pub timeout: Option<u64>,
    /// Bytes a call may print; 8388608 when left out.
    #[serde(deserialize_with = "bytes")]
    #[schemars(range(min = 1, max = MAX_OUTPUT))]
    pub output: Option<u64>,
}

/// Python.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(default, expecting = "a table")]
pub struct PythonSection {
    /// The interpreter: a name to look for, or a path. A project's is used for the project's own tools only.
    pub interpreter: Option<String>,
}

/// Lockfiles.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(default, expecting = "a table")]
pub struct LockfilesSection {
    /// What a call does about its lockfile; where both files say, the stricter holds. Left out: `warn`, and `strict`
    /// where `CI=true` and there are lockfiles.
    pub mode: Option<LockMode>,
}

/// Where tools are shared.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(default, expecting = "a table")]
pub struct RegistrySection {
    /// The registry that is asked where neither `--registry` nor `KIWI_REGISTRY` names one. Only the user's configuration
    /// can say so.
    pub url: Option<String>,
}

/// Whose signatures count.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(default, expecting = "a table")]
pub struct TrustSection {
    /// Where a tool comes from that must be signed by a key of the trust store: `project`, `user`, `registry`. Both files
    /// add to it.
    pub require_signature: Vec<SignedSource>,
}

/// Where a tool comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum SignedSource {
    /// Written in the project.
    Project,
    /// Written in the user space.
    User,
    /// Installed from a registry.
    Registry,
}

/// Sandboxes.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(default, expecting = "a table")]
pub struct SandboxSection {
    /// Who builds the walls at `sandboxed` and `restricted`: `auto` (when left out), `bwrap`, `landlock`, `docker` or
    /// `podman`. Only the user's configuration can say so.
    pub backend: Option<SandboxBackend>,
}

/// Credentials.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(default, expecting = "a table")]
pub struct CredentialsSection {
    /// Whether the desktop's keyring keeps the key of the credential store; `auto` when left out. Only the user's
    /// configuration can say so.
    pub keyring: Option<KeyringUse>,
}

/// Rules.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(default, expecting = "a table")]
pub struct RulesSection {
    /// `false` drops the rules that come with Kiwi. Only the user's configuration can say so.
    pub default: Option<bool>,
    /// `true` refuses every call while there is no rule file beside this configuration.
    pub required: Option<bool>,
}

/// Which profile each way in has. Where both files say, both hold.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, expecting = "a table")]
pub struct TransportsSection {
    /// Of what is typed; `cli` when left out, and `ci` where `CI=true`.
    pub cli: Option<String>,
    /// Of agents that speak MCP; `mcp` when left out.
    pub mcp: Option<String>,
}

/// Which embedder turns texts into vectors.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum EmbedderChoice {
    /// The table that comes with Kiwi.
    #[default]
    Static,
    /// A model of the MiniLM kind from a folder.
    Minilm,
    /// A service that speaks as OpenAI's does.
    Http,
}

/// Search.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(default, expecting = "a table")]
pub struct SearchSection {
    /// What turns texts into vectors; `static` when left out. Only the user's configuration can say so: a project could
    /// send what is looked for anywhere.
    pub embedder: Option<EmbedderChoice>,
    /// For `minilm`: the folder of the model.
    pub model: Option<std::path::PathBuf>,
    /// For `http`: the address of the endpoint (`https://…/v1/embeddings`).
    pub url: Option<String>,
    /// For `http`: the name of the model there.
    pub name: Option<String>,
    /// For `http`: how many numbers its vectors have.
    #[schemars(range(min = 1, max = 4096))]
    pub dimensions: Option<u16>,
    /// For `http`: the variable that holds the key.
    pub key_env: Option<String>,
    /// `false`: what is used is not noted, and does not move what is found. Either file can say so.
    pub usage: Option<bool>,
}

/// The audit log.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(default, expecting = "a table")]
pub struct AuditSection {
    /// A file, best on another machine's disk, that gets every signed checkpoint as well. Only the user's configuration
    /// can name it.
    pub anchor: Option<std::path::PathBuf>,
}

/// The JSON Schema of a configuration file, generated from the types.
pub fn config_schema() -> Value {
    schemars::schema_for!(ConfigFile).to_value()
}

fn seconds<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u64>, D::Error> {
    deserializer.deserialize_any(WholeNumber { what: "seconds", max: MAX_TIMEOUT }).map(Some)
}

fn bytes<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u64>, D::Error> {
    deserializer.deserialize_any(WholeNumber { what: "bytes", max: MAX_OUTPUT }).map(Some)
}

struct WholeNumber {
    what: &'static str,
    max: u64,
}

impl Visitor<'_> for WholeNumber {
    type Value = u64;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "a whole number of {} from 1 to {}", self.what, self.max)
    }

    fn visit_u64<E: de::Error>(self, number: u64) -> Result<u64, E> {
        if (1..=self.max).contains(&number) {
            Ok(number)
        } else {
            Err(E::invalid_value(de::Unexpected::Unsigned(number), &self))
        }
    }

    fn visit_i64<E: de::Error>(self, number: i64) -> Result<u64, E> {
        match u64::try_from(number) {
            Ok(number) => self.visit_u64(number),
            Err(_) => Err(E::invalid_value(de::Unexpected::Signed(number), &self)),
        }
    }
}
