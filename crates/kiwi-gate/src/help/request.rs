//! What an agent asks for.

use kiwi_model::{ErrorKind, Fault};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// No signal is longer, written as JSON.
const MOST_BYTES: usize = 64 << 10;
/// No question has more options.
const MOST_OPTIONS: usize = 32;

/// A help signal.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(tag = "action", rename_all = "snake_case", deny_unknown_fields)]
pub enum HelpRequest {
    /// How something works.
    Guidance {
        /// About what; left out, the topics are listed.
        #[serde(default)]
        topic: Option<String>,
    },
    /// It does not get anywhere.
    Stuck {
        /// Which session; left out, its own.
        #[serde(default)]
        session_id: Option<String>,
        /// Why.
        reason: String,
        /// What was tried: how often, or a list.
        #[serde(default)]
        attempts: Attempts,
        /// What a person should know.
        #[serde(default)]
        context: Value,
    },
    /// A person has to say.
    Escalate {
        /// What.
        question: String,
        /// What can be answered, beside yes and no.
        #[serde(default)]
        options: Vec<String>,
    },
    /// A place to come back to.
    Checkpoint {
        /// Why here.
        #[serde(default)]
        reason: Option<String>,
    },
}

/// What was tried.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Attempts {
    /// How often.
    Times(u64),
    /// What.
    List(Vec<Value>),
}

impl Default for Attempts {
    fn default() -> Self {
        Self::Times(0)
    }
}

impl Attempts {
    /// How often.
    pub(crate) fn count(&self) -> u64 {
        match self {
            Self::Times(times) => *times,
            Self::List(list) => u64::try_from(list.len()).unwrap_or(u64::MAX),
        }
    }
}

impl HelpRequest {
    /// Reads the parameters of the meta-tool `help`.
    pub fn parse(params: &Value) -> Result<Self, Fault> {
        if params.to_string().len() > MOST_BYTES {
            return Err(invalid(format!("a help signal may have {MOST_BYTES} bytes")));
        }
        let request: Self = serde_json::from_value(params.clone()).map_err(invalid)?;
        match &request {
            Self::Stuck { session_id: Some(id), .. } if !is_session(id) => {
                Err(invalid(format!("`{}` is not a session", id.escape_debug())))
            }
            Self::Stuck { reason: text, .. } | Self::Escalate { question: text, .. }
                if text.trim().is_empty() =>
            {
                Err(invalid("a signal that says nothing helps nobody"))
            }
            Self::Escalate { options, .. } if options.len() > MOST_OPTIONS => {
                Err(invalid(format!("a question may have {MOST_OPTIONS} options")))
            }
            _ => Ok(request),
        }
    }

    /// The stable spelling of the action.
    pub const fn action(&self) -> &'static str {
        match self {
            Self::Guidance { .. } => "guidance",
            Self::Stuck { .. } => "stuck",
            Self::Escalate { .. } => "escalate",
            Self::Checkpoint { .. } => "checkpoint",
        }
    }
}

/// Whether a text is the name of a session, and so of a file.
pub(super) fn is_session(text: &str) -> bool {
    !text.is_empty()
        && text.len() <= 64
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
}

fn invalid(why: impl std::fmt::Display) -> Fault {
    Fault::new(ErrorKind::InvalidParams, format!("help: {why}")).with_hint(
        "actions are guidance, stuck, escalate and checkpoint; help(action=\"guidance\") lists topics",
    )
}
