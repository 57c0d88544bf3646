//! Everything that can be called: what lies in the spaces, and what upstream servers offer.

use kiwi_chain::{Candidate, Catalog, Identity, Signature, Tool};
use kiwi_mcp::Upstreams;
use kiwi_model::{Explain as _, Fault, Space, ToolId};
use kiwi_space::{SignedSource, Spaces};
use std::collections::BTreeSet;
use std::sync::Arc;

use crate::admission::denied_by;

/// The spaces and the upstream servers. A tool in a space comes before one of a server with the same id.
#[derive(Clone)]
pub(crate) struct Catalogue {
    pub spaces: Arc<Spaces>,
    pub upstreams: Arc<Upstreams>,
    /// Whose tools have to be signed by a key that is trusted.
    pub signed: BTreeSet<SignedSource>,
}

impl Catalogue {
    /// Whether what lies in a space may have to be signed.
    pub fn may_want_signature(&self, space: Space) -> bool {
        space != Space::System && !self.signed.is_empty()
    }

    /// A tool with a signature that counts here, or none where none is asked for. A key that nobody here trusts signs
    /// nothing.
    fn vouched(&self, tool: Arc<Tool>) -> Result<Arc<Tool>, Fault> {
        let key = match &tool.signature {
            Signature::By(key) if self.spaces.trusts(key).map_err(|error| error.fault())? => return Ok(tool),
            Signature::By(key) => Some(key),
            Signature::None => None,
            // Whoever verifies it says what is wrong with it.
            Signature::Wrong(_) => return Ok(tool),
        };
        if source(&tool).is_some_and(|source| self.signed.contains(&source)) {
            return Err(unsigned(&tool, key.map(String::as_str)));
        }
        let Some(key) = key else { return Ok(tool) };
        let warning = format!("{} is signed by `{key}`, which is not trusted here", tool.name());
        let warnings = tool.warnings.iter().cloned().chain([warning]).collect();
        Ok(Arc::new(Tool { warnings, ..Tool::clone(&tool) }))
    }
}

/// Where a tool comes from, as far as signatures are concerned.
fn source(tool: &Tool) -> Option<SignedSource> {
    match (tool.space, &tool.identity) {
        (Space::System, _) => None,
        (_, Identity::Recorded { .. } | Identity::RecordMissing { .. }) => Some(SignedSource::Registry),
        (Space::Project, Identity::Computed) => Some(SignedSource::Project),
        (Space::User, Identity::Computed) => Some(SignedSource::User),
    }
}

fn unsigned(tool: &Tool, key: Option<&str>) -> Fault {
    let (by, hint) = match key {
        Some(key) => (
            format!(": `{key}` is not"),
            format!("`kiwi trust key add {key}` trusts it, if you know whose it is"),
        ),
        None => (
            String::new(),
            format!(
                "`trust.require_signature` asks for one; `kiwi tool sign {}` signs it",
                tool.manifest.tool_id
            ),
        ),
    };
    let message = format!("{} is not signed by a key that is trusted here{by}", tool.name());
    denied_by("signature", message).with_hint(hint)
}

impl Catalog for Catalogue {
    fn candidates(&self, id: &ToolId, space: Space) -> Result<Vec<Candidate>, Fault> {
        let mut here = self.spaces.candidates(id, space)?;
        if !here.is_empty() {
            for candidate in &mut here {
                // One that may not be used is loaded again, and whoever does that is told why.
                candidate.loaded = candidate.loaded.take().and_then(|tool| self.vouched(tool).ok());
            }
            return Ok(here);
        }
        let offered = self.upstreams.tool(id).map_err(|error| error.fault())?;
        let candidate = |tool: Arc<Tool>| Candidate {
            id: id.clone(),
            version: tool.manifest.version.clone(),
            space,
            handle: String::new(),
            loaded: Some(tool),
        };
        Ok(offered.filter(|tool| tool.space == space).map(candidate).into_iter().collect())
    }

    fn load(&self, candidate: &Candidate) -> Result<Arc<Tool>, Fault> {
        self.vouched(self.spaces.load(candidate)?)
    }

    fn ids(&self) -> Vec<ToolId> {
        let mut ids = self.spaces.ids();
        ids.extend(self.upstreams.tools().iter().map(|tool| tool.manifest.tool_id.clone()));
        ids
    }
}
