//! Who asks, and how it can be answered.

use kiwi_gate::{Caller, Session};
use kiwi_mcp::Capability;
use rmcp::RoleServer;
use rmcp::model::{ClientCapabilities, LoggingLevel, ProtocolVersion};
use rmcp::service::RequestContext;

/// A client, as one of its requests shows it.
#[derive(Debug, Clone)]
pub(crate) struct Client {
    /// As records name it.
    pub caller: Caller,
    /// What its calls count in.
    pub session: Session,
    /// What it can be asked.
    pub capabilities: Vec<Capability>,
    /// Whether questions are part of an answer, instead of requests of the server's own.
    pub is_modern: bool,
    /// What it wants to hear of logs; `None`: nothing.
    pub log_level: Option<LoggingLevel>,
}

impl Client {
    /// Whether a person can be asked through it.
    pub fn can_ask_a_person(&self) -> bool {
        self.capabilities.contains(&Capability::Elicitation)
    }
}

/// Whether this request is of the revision without sessions.
pub(crate) fn is_modern(context: &RequestContext<RoleServer>) -> bool {
    context
        .protocol_version()
        .is_some_and(|version| version.as_str() >= ProtocolVersion::V_2026_07_28.as_str())
}

/// What a client can be asked. Forms are what questions come as: who only opens pages cannot be asked a question.
pub(crate) fn capabilities(declared: Option<&ClientCapabilities>) -> Vec<Capability> {
    let Some(declared) = declared else { return Vec::new() };
    let elicits = declared.elicitation.as_ref().is_some_and(|it| it.form.is_some() || it.url.is_none());
    let each = [
        (declared.sampling.is_some(), Capability::Sampling),
        (elicits, Capability::Elicitation),
        (declared.roots.is_some(), Capability::Roots),
    ];
    each.into_iter().filter_map(|(can, capability)| can.then_some(capability)).collect()
}
