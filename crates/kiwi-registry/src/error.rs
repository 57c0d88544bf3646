//! What can go wrong between somebody who asks and the tables.

use kiwi_model::{Digest, ErrorKind, Explain, Integrity, ToolId, Version};
use serde_json::{Value, json};
use std::path::PathBuf;

use crate::protocol::Scope;

/// A fact about a registry or about what was asked of it.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum RegistryError {
    /// The database cannot be reached, or has too much to do.
    #[error("the database does not answer: {problem}")]
    Away {
        /// What happened.
        problem: String,
    },
    /// The database answered something that it should not.
    #[error("the database failed: {problem}")]
    Broken {
        /// What happened.
        problem: String,
    },
    /// The database was made by a later Kiwi.
    #[error("the database has migration {number}, which this version of Kiwi does not know")]
    Later {
        /// The first one that is not known.
        number: i64,
    },
    /// A migration that was applied is not the one this Kiwi has under that number.
    #[error("migration {number} of the database is another one than Kiwi's `{name}`")]
    Altered {
        /// Which.
        number: i64,
        /// What it should be.
        name: String,
    },
    /// A file or folder of the server cannot be read or written.
    #[error("`{}`: {problem}", path.display())]
    Files {
        /// Which.
        path: PathBuf,
        /// Why.
        problem: String,
    },
    /// The kernel gave no random bytes.
    #[error("the system gives no random bytes")]
    NoRandomness,
    /// A server or an address cannot be used as given.
    #[error("{problem}")]
    Options {
        /// Why.
        problem: String,
    },
    /// No token was shown where one is needed.
    #[error("a token is needed")]
    NoToken,
    /// The token that was shown is not good, or not any more.
    #[error("the token is not good here")]
    BadToken,
    /// The token may not do that.
    #[error("the token does not have the scope `{}`", scope_name(*needed))]
    NoScope {
        /// What it would need.
        needed: Scope,
    },
    /// Somebody else owns it.
    #[error("{what} `{name}` belongs to somebody else")]
    NotOwner {
        /// What sort of thing.
        what: &'static str,
        /// Which.
        name: String,
    },
    /// Nobody would own it any more.
    #[error("the last owner of the namespace `{name}` cannot leave it")]
    LastOwner {
        /// Which.
        name: String,
    },
    /// Only the system defines it.
    #[error("`{name}` belongs to the system")]
    Reserved {
        /// The id or namespace.
        name: String,
    },
    /// It is not there, or the caller may not see it.
    #[error("there is no {what} `{name}`")]
    Unknown {
        /// What sort of thing.
        what: &'static str,
        /// Which.
        name: String,
    },
    /// The tool is there, and no version of it will do.
    #[error("{}", no_version(tool_id, requirement.as_deref()))]
    NoVersion {
        /// Which tool.
        tool_id: ToolId,
        /// What was asked for; nothing where any would have done.
        requirement: Option<String>,
    },
    /// The tool is there, and every version of it that would do was yanked.
    #[error("every version of `{tool_id}` that is `{requirement}` was yanked")]
    Yanked {
        /// Which tool.
        tool_id: ToolId,
        /// What was asked for.
        requirement: String,
    },
    /// A chain that comes back to itself.
    #[error("the chain of `{tool_id}` comes back to `{again}`")]
    Cycle {
        /// Where it begins.
        tool_id: ToolId,
        /// What it meets twice.
        again: String,
    },
    /// A chain without an end in sight.
    #[error("the chain of `{tool_id}` has more than {most} links")]
    TooDeep {
        /// Where it begins.
        tool_id: ToolId,
        /// The most there may be.
        most: usize,
    },
    /// The version is there already.
    #[error("`{tool_id}@{version}` is there already, and versions never change")]
    Taken {
        /// Which tool.
        tool_id: ToolId,
        /// The version that is there.
        version: Version,
        /// What it is.
        integrity: Integrity,
    },
    /// Bytes that were to be there already.
    #[error("{} of the files were not uploaded", digests.len())]
    MissingBlobs {
        /// The first of them.
        digests: Vec<Digest>,
    },
    /// A file is not as long as it was said to be.
    #[error("`{path}` has {size} bytes and was said to have {said}")]
    WrongSize {
        /// Which.
        path: String,
        /// Its length.
        size: u64,
        /// What the publication says.
        said: u64,
    },
    /// What a publication says about its files cannot be.
    #[error("these files cannot be published: {}", problems.join("; "))]
    BadFiles {
        /// Everything worth telling.
        problems: Vec<String>,
    },
    /// The manifest cannot be used.
    #[error("the manifest cannot be used: {problem}")]
    BadManifest {
        /// Why.
        problem: String,
    },
    /// What was sent does not hash to what was said.
    #[error("{what} is {computed} and was said to be {said}")]
    Mismatch {
        /// What was hashed.
        what: String,
        /// What it is.
        computed: Digest,
        /// What it should be.
        said: Digest,
    },
    /// The signature is not over this, or not by that key.
    #[error("the signature is not one of `{key}` over {integrity}")]
    BadSignature {
        /// Whose it should be.
        key: String,
        /// What it should be over.
        integrity: Integrity,
    },
    /// Somebody else changed the lockfile in between.
    #[error("the lockfile `{key}` was changed by somebody else")]
    LockfileChanged {
        /// Which.
        key: String,
        /// What it is at now; nothing where there is none.
        revision: Option<u64>,
    },
    /// A request that makes no sense.
    #[error("{problem}")]
    BadRequest {
        /// Why.
        problem: String,
    },
    /// A request that can be read and not be done.
    #[error("{problem}")]
    Unfit {
        /// Why.
        problem: String,
    },
    /// No such address.
    #[error("there is nothing at this address")]
    NoRoute,
    /// The address knows other methods.
    #[error("this address answers {allowed}")]
    Method {
        /// Those, as a header lists them.
        allowed: String,
    },
    /// The body is too long.
    #[error("a body may have {most} bytes here")]
    TooLarge {
        /// The most.
        most: u64,
    },
    /// The body is of another kind, or encoded.
    #[error("a body must be {wanted} here, without an encoding")]
    MediaType {
        /// What is wanted.
        wanted: &'static str,
    },
    /// The body did not arrive in time.
    #[error("the request took too long to arrive")]
    TooSlow,
    /// Too many requests.
    #[error("too many requests")]
    TooMany {
        /// Seconds until the next one has a chance.
        retry_after: u64,
    },
}

fn scope_name(scope: Scope) -> &'static str {
    match scope {
        Scope::Read => "read",
        Scope::Publish => "publish",
        Scope::Admin => "admin",
    }
}

fn no_version(tool_id: &ToolId, requirement: Option<&str>) -> String {
    match requirement {
        Some(requirement) => format!("no version of `{tool_id}` is `{requirement}`"),
        None => format!("every version of `{tool_id}` was yanked, or is an early one that has to be named"),
    }
}

impl RegistryError {
    pub(crate) fn unknown(what: &'static str, name: impl Into<String>) -> Self {
        Self::Unknown { what, name: name.into() }
    }

    pub(crate) fn bad(problem: impl Into<String>) -> Self {
        Self::BadRequest { problem: problem.into() }
    }

    pub(crate) fn unfit(problem: impl Into<String>) -> Self {
        Self::Unfit { problem: problem.into() }
    }

    pub(crate) fn broken(problem: impl std::fmt::Display) -> Self {
        Self::Broken { problem: format!("{problem}") }
    }

    pub(crate) fn files(path: impl Into<PathBuf>, problem: impl std::fmt::Display) -> Self {
        Self::Files { path: path.into(), problem: format!("{problem}") }
    }
}

impl Explain for RegistryError {
    fn kind(&self) -> ErrorKind {
        match self {
            Self::Away { .. } => ErrorKind::UpstreamUnavailable,
            Self::Broken { .. }
            | Self::Later { .. }
            | Self::Altered { .. }
            | Self::Files { .. }
            | Self::NoRandomness => ErrorKind::Internal,
            Self::NoToken
            | Self::BadToken
            | Self::NoScope { .. }
            | Self::NotOwner { .. }
            | Self::LastOwner { .. }
            | Self::Reserved { .. } => ErrorKind::Denied,
            Self::Unknown { .. } | Self::NoVersion { .. } | Self::Yanked { .. } | Self::NoRoute => {
                ErrorKind::NotFound
            }
            Self::Cycle { .. } => ErrorKind::Cycle,
            Self::TooDeep { .. } => ErrorKind::TooDeep,
            Self::Taken { .. } | Self::LockfileChanged { .. } => ErrorKind::VersionConflict,
            Self::MissingBlobs { .. } => ErrorKind::MissingRequirement,
            Self::BadFiles { .. } => ErrorKind::InvalidParams,
            Self::BadManifest { .. } => ErrorKind::InvalidManifest,
            Self::WrongSize { .. } | Self::Mismatch { .. } | Self::BadSignature { .. } => {
                ErrorKind::IntegrityMismatch
            }
            Self::Options { .. }
            | Self::BadRequest { .. }
            | Self::Unfit { .. }
            | Self::Method { .. }
            | Self::TooLarge { .. }
            | Self::MediaType { .. } => ErrorKind::Usage,
            Self::TooSlow => ErrorKind::Timeout,
            Self::TooMany { .. } => ErrorKind::RateLimited,
        }
    }

    fn hint(&self) -> Option<String> {
        Some(match self {
            Self::NoToken | Self::BadToken => "`kiwi login` keeps a token for this registry".to_owned(),
            Self::NoScope { .. } => "ask whoever runs the registry for a token that may".to_owned(),
            Self::Taken { .. } => "publish it under a new version".to_owned(),
            Self::Away { .. } => "see that the database runs, and that its address is right".to_owned(),
            Self::Files { .. } => "see that its folder is there and can be written".to_owned(),
            Self::Later { .. } => "update Kiwi, or use another database".to_owned(),
            _ => return None,
        })
    }

    fn details(&self) -> Value {
        match self {
            Self::Taken { version, integrity, .. } => json!({"integrity": integrity, "version": version}),
            Self::MissingBlobs { digests } => json!({"missing": digests}),
            Self::BadFiles { problems } => json!({"problems": problems}),
            Self::Mismatch { computed, said, .. } => json!({"computed": computed, "said": said}),
            Self::LockfileChanged { revision, .. } => json!({"revision": revision}),
            Self::TooMany { retry_after } => json!({"retry_after": retry_after}),
            _ => Value::Null,
        }
    }
}
