//! What a call came to.

use kiwi_chain::Plan;
use kiwi_model::{Digest, Fault, Integrity, Link, Status, ToolId, Version};
use serde::Serialize;
use serde_json::Value;

/// The tool that was called.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ToolIdentity {
    /// Which tool.
    pub id: ToolId,
    /// Which version.
    pub version: Version,
    /// Its identity.
    pub integrity: Integrity,
}

/// Where the time went, in microseconds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Timing {
    /// Resolving, verifying, validating, merging, checking parameters.
    pub plan: u64,
    /// Stages around the effect, records included.
    pub gate: u64,
    /// The effect itself.
    pub execute: u64,
}

/// What every face shows of a call. Serialised, it is the one object that `kiwi run --json` prints.
#[derive(Debug, Clone, Serialize)]
pub struct Outcome {
    /// How it ended.
    pub status: Status,
    /// What was called, once that is known.
    pub tool: Option<ToolIdentity>,
    /// The chain, leaf first.
    pub chain: Vec<Link>,
    /// The hash over the chain.
    pub chain_hash: Option<Digest>,
    /// What the tool printed: a JSON value if it is one, else text.
    pub result: Value,
    /// An upstream server's answer as it gave it, where one was asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub content: Option<Value>,
    /// What it printed beside that.
    pub stderr: String,
    /// What went wrong.
    pub error: Option<Fault>,
    /// Worth saying.
    pub warnings: Vec<String>,
    /// That the session goes round in circles, where it does.
    #[serde(rename = "loop", skip_serializing_if = "Option::is_none")]
    pub loop_notice: Option<Value>,
    /// The session it belongs to.
    pub session: String,
    /// Where the time went.
    pub timing_us: Timing,
}

impl Outcome {
    /// A call that did not get as far as a plan.
    pub(crate) fn unplanned(session: String, fault: Fault, timing_us: Timing) -> Self {
        Self {
            status: fault.kind.status(),
            tool: None,
            chain: Vec::new(),
            chain_hash: None,
            result: Value::Null,
            content: None,
            stderr: String::new(),
            error: Some(fault),
            warnings: Vec::new(),
            loop_notice: None,
            session,
            timing_us,
        }
    }

    /// The same call with what its plan says about it.
    #[must_use]
    pub(crate) fn planned(mut self, plan: &Plan) -> Self {
        self.tool = plan.links().first().map(|link| ToolIdentity {
            id: link.tool_id.clone(),
            version: link.version.clone(),
            integrity: link.integrity,
        });
        self.chain = plan.links().to_vec();
        self.chain_hash = Some(plan.chain_hash());
        self
    }

    /// The exit code of a command that made this call.
    pub fn exit_code(&self) -> u8 {
        self.error.as_ref().map_or(0, |fault| fault.kind.exit_code())
    }
}
