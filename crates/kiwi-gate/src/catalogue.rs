//! Everything that can be called: what lies in the spaces, and what upstream servers offer.

use kiwi_chain::{Candidate, Catalog, Tool};
use kiwi_mcp::Upstreams;
use kiwi_model::{Explain as _, Fault, Space, ToolId};
use kiwi_space::Spaces;
use std::sync::Arc;

/// The spaces and the upstream servers. A tool in a space comes before one of a server with the same id.
pub(crate) struct Catalogue {
    pub spaces: Arc<Spaces>,
    pub upstreams: Arc<Upstreams>,
}

impl Catalog for Catalogue {
    fn candidates(&self, id: &ToolId, space: Space) -> Result<Vec<Candidate>, Fault> {
        let here = self.spaces.candidates(id, space)?;
        if !here.is_empty() {
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
        self.spaces.load(candidate)
    }

    fn ids(&self) -> Vec<ToolId> {
        let mut ids = self.spaces.ids();
        ids.extend(self.upstreams.tools().iter().map(|tool| tool.manifest.tool_id.clone()));
        ids
    }
}
