//! What can go wrong for who asks a registry.

use kiwi_exec::ExecError;
use kiwi_model::{ErrorKind, Explain, Fault};
use kiwi_space::SpaceError;
use serde_json::Value;
use std::path::PathBuf;

/// Why something could not be had from a registry, or given to it.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// An address that is none.
    #[error("`{url}` is not the address of a registry")]
    Address {
        /// What was given.
        url: String,
    },
    /// The registry cannot be reached, or broke off.
    #[error("the registry cannot be asked: {0}")]
    Unreachable(#[from] ExecError),
    /// It answered, and refused.
    #[error("{}", .0.message)]
    Refused(Box<Fault>),
    /// It answered something that no registry says.
    #[error("`{url}` does not answer like a registry: {why}")]
    Nonsense {
        /// What was asked.
        url: String,
        /// What is wrong with the answer.
        why: String,
    },
    /// What came is not what was promised.
    #[error("{what} of {tool} is not what its hash says: computed {computed}, expected {expected}")]
    Differs {
        /// Which part.
        what: String,
        /// Of which version.
        tool: String,
        /// The hash of what came.
        computed: String,
        /// The hash that was promised.
        expected: String,
    },
    /// A version that may not be unpacked.
    #[error("{tool} cannot be installed: {why}")]
    Unfit {
        /// Which version.
        tool: String,
        /// Why.
        why: String,
    },
    /// A signature that is none.
    #[error("the signature of {tool} is wrong")]
    WrongSignature {
        /// Which version.
        tool: String,
    },
    /// Signatures are asked for, and this one is missing or unknown.
    #[error("{tool} is not signed by a key that is trusted here{}", signer(key.as_deref()))]
    Untrusted {
        /// Which version.
        tool: String,
        /// Who signed it.
        key: Option<String>,
    },
    /// The cache cannot be used.
    #[error("`{}` cannot be used: {source}", path.display())]
    Cache {
        /// Which file or folder.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// A space refuses.
    #[error(transparent)]
    Space(#[from] SpaceError),
}

fn signer(key: Option<&str>) -> String {
    key.map(|key| format!(" (its key is `{key}`)")).unwrap_or_default()
}

impl ClientError {
    /// Whether nobody answered, so that what was fetched before may serve.
    pub fn is_offline(&self) -> bool {
        matches!(
            self,
            Self::Unreachable(
                ExecError::Unreachable { .. }
                    | ExecError::HttpTimeout { .. }
                    | ExecError::HttpStatus { status: 502..=504, .. }
            )
        )
    }
}

impl Explain for ClientError {
    fn kind(&self) -> ErrorKind {
        match self {
            Self::Address { .. } => ErrorKind::Usage,
            Self::Unreachable(_) | Self::Nonsense { .. } => ErrorKind::UpstreamUnavailable,
            Self::Refused(fault) => fault.kind,
            Self::Differs { .. } | Self::WrongSignature { .. } => ErrorKind::IntegrityMismatch,
            Self::Unfit { .. } => ErrorKind::InvalidManifest,
            Self::Untrusted { .. } => ErrorKind::Denied,
            Self::Cache { .. } => ErrorKind::Internal,
            Self::Space(error) => error.kind(),
        }
    }

    fn hint(&self) -> Option<String> {
        let hint = match self {
            Self::Address { .. } => "write it like `http://127.0.0.1:7410`",
            Self::Unreachable(_) => "is it running? `kiwi registry serve` starts one",
            Self::Refused(fault) => return fault.hint.clone(),
            Self::Nonsense { .. } => "see that `--registry` or `KIWI_REGISTRY` names a Kiwi registry",
            Self::Differs { .. } | Self::WrongSignature { .. } => {
                "nothing was installed; the registry, or somebody between, changed it"
            }
            Self::Unfit { .. } => "nothing was installed",
            Self::Untrusted { key: Some(_), .. } => "`kiwi trust key add KEY` trusts it, if you do",
            Self::Untrusted { key: None, .. } => "`trust.require_signature` asks for a signature",
            Self::Cache { .. } => "see that the user space can be written",
            Self::Space(error) => return error.hint(),
        };
        Some(hint.to_owned())
    }

    fn details(&self) -> Value {
        match self {
            Self::Refused(fault) => fault.details.clone(),
            Self::Space(error) => error.details(),
            _ => Value::Null,
        }
    }
}

impl From<ClientError> for Fault {
    fn from(error: ClientError) -> Self {
        error.fault()
    }
}
