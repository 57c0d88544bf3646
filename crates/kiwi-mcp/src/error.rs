//! What can go wrong with an upstream server.

use kiwi_model::{ErrorKind, Explain};
use kiwi_space::SpaceError;
use serde_json::{Value, json};
use std::path::PathBuf;

/// A fact about a server, or about the file that names it.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum McpError {
    /// No file names it.
    #[error("there is no MCP server `{name}`")]
    UnknownServer {
        /// The name that was asked for.
        name: String,
        /// Names there are.
        known: Vec<String>,
    },
    /// A registry file is wrong.
    #[error("{}: {problem}", file.display())]
    BadRegistry {
        /// Which.
        file: PathBuf,
        /// What is wrong, with line and column where they are known.
        problem: String,
    },
    /// An entry cannot be written as it was asked for.
    #[error("{problem}")]
    BadEntry {
        /// Why.
        problem: String,
        /// What to do instead.
        hint: String,
    },
    /// What was written down about a server is not what Kiwi wrote.
    #[error("what is known about the MCP server `{server}` is damaged: `{}`: {problem}", file.display())]
    Damaged {
        /// Which.
        server: String,
        /// Where it is written.
        file: PathBuf,
        /// What is wrong with it.
        problem: String,
    },
    /// What was written down about a server cannot be read or written.
    #[error("what is known about MCP servers cannot be kept: {problem}")]
    Store {
        /// Why.
        problem: String,
    },
    /// It does not start, does not answer, or has gone.
    #[error("the MCP server `{server}` {problem}")]
    Unavailable {
        /// Which.
        server: String,
        /// What happened, as the end of a sentence.
        problem: String,
        /// The last it wrote to its standard error.
        stderr: String,
    },
    /// It took too long.
    #[error("the MCP server `{server}` did not answer within {seconds} s")]
    Timeout {
        /// Which.
        server: String,
        /// The time it had.
        seconds: u64,
    },
    /// It was started, and took too long to be ready.
    #[error("the MCP server `{server}` was not ready within {seconds} s of its start")]
    LateStart {
        /// Which.
        server: String,
        /// The time it had.
        seconds: u64,
    },
    /// The caller changed its mind.
    #[error("the call was cancelled")]
    Cancelled,
    /// It answered with an error of the protocol.
    #[error("the MCP server `{server}` refused: {message}")]
    Protocol {
        /// Which.
        server: String,
        /// Code of JSON-RPC.
        code: i32,
        /// What it said.
        message: String,
        /// What else it said.
        data: Option<Value>,
    },
    /// It needs to know who asks.
    #[error("the MCP server `{server}` wants to know who asks")]
    Unauthorized {
        /// Which.
        server: String,
        /// What it or its authorization server said.
        problem: String,
    },
    /// A project names it and nobody trusts that project.
    #[error("the MCP server `{server}` is named by the project alone: {problem}")]
    Untrusted {
        /// Which.
        server: String,
        /// Why the project is not trusted.
        problem: String,
    },
    /// Its definition is not what a person agreed to.
    #[error("the tool `{tool}` is in quarantine: {why}")]
    Quarantined {
        /// Which tool.
        tool: String,
        /// Its server.
        server: String,
        /// Why.
        why: String,
    },
}

impl McpError {
    /// A space that does not give or take what is kept in it.
    #[expect(clippy::needless_pass_by_value, reason = "it is what `map_err` hands over")]
    pub(crate) fn store(error: SpaceError) -> Self {
        Self::Store { problem: error.to_string() }
    }
}

impl From<SpaceError> for McpError {
    fn from(error: SpaceError) -> Self {
        Self::store(error)
    }
}

impl Explain for McpError {
    fn kind(&self) -> ErrorKind {
        match self {
            Self::UnknownServer { .. } => ErrorKind::NotFound,
            Self::BadRegistry { .. } | Self::BadEntry { .. } => ErrorKind::Usage,
            Self::Store { .. } => ErrorKind::Internal,
            Self::Unavailable { .. } | Self::Unauthorized { .. } => ErrorKind::UpstreamUnavailable,
            Self::Timeout { .. } | Self::LateStart { .. } => ErrorKind::Timeout,
            Self::Cancelled | Self::Protocol { .. } => ErrorKind::ToolFailed,
            Self::Untrusted { .. } => ErrorKind::Denied,
            Self::Quarantined { .. } | Self::Damaged { .. } => ErrorKind::IntegrityMismatch,
        }
    }

    fn hint(&self) -> Option<String> {
        Some(match self {
            Self::UnknownServer { known, .. } if known.is_empty() => {
                "`kiwi mcp add NAME -- COMMAND` adds one".to_owned()
            }
            Self::UnknownServer { known, .. } => format!("there are: {}", known.join(", ")),
            Self::BadRegistry { .. } => "mend the file at that place".to_owned(),
            Self::BadEntry { hint, .. } => hint.clone(),
            Self::Damaged { server, .. } => {
                format!(
                    "if the change is not yours, find out whose it is; `kiwi mcp review {server} --forget` lets its tools be agreed to anew"
                )
            }
            Self::Store { .. } => "look at the folder's permissions and free space".to_owned(),
            Self::Unavailable { server, .. } => {
                format!("`kiwi mcp refresh {server}` tries again and shows more")
            }
            Self::Timeout { .. } => "give it more time with `timeout` in mcp_registry.yaml".to_owned(),
            Self::LateStart { .. } => {
                "give it more time with `start_timeout` in mcp_registry.yaml".to_owned()
            }
            Self::Cancelled | Self::Protocol { .. } => return None,
            Self::Unauthorized { server, .. } => format!("`kiwi mcp login {server}` asks for access"),
            Self::Untrusted { .. } => "`kiwi trust add` in the project says that you trust it".to_owned(),
            Self::Quarantined { server, .. } => format!("`kiwi mcp review {server}` shows the difference"),
        })
    }

    fn details(&self) -> Value {
        match self {
            Self::Unavailable { server, stderr, .. } => json!({"server": server, "stderr": stderr}),
            Self::Protocol { server, code, data, .. } => {
                json!({"server": server, "code": code, "data": data})
            }
            Self::Unauthorized { server, problem } => json!({"server": server, "problem": problem}),
            Self::Timeout { server, .. }
            | Self::LateStart { server, .. }
            | Self::Untrusted { server, .. } => {
                json!({"server": server})
            }
            Self::Quarantined { server, tool, why } => {
                json!({"server": server, "tool": tool, "quarantine": why})
            }
            Self::BadRegistry { file, .. } => json!({"file": file}),
            Self::Damaged { server, file, .. } => json!({"server": server, "file": file}),
            _ => Value::Null,
        }
    }
}
