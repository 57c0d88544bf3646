//! The four tools, described by what is here.

use kiwi_gate::{Kernel, Overview};
use kiwi_model::{Digest, Hasher};
use rmcp::model::Tool;

use super::Reading;
use crate::meta::{NAMED, definitions};

/// The four tools at one moment.
pub(crate) struct Board {
    pub tools: Vec<Tool>,
    digest: Digest,
}

impl Board {
    fn of(overview: &Overview) -> Self {
        let tools = definitions(overview);
        let mut hasher = Hasher::default();
        for tool in &tools {
            hasher.update(tool.description.as_deref().unwrap_or_default().as_bytes());
        }
        Self { tools, digest: hasher.finish() }
    }
}

impl Reading for Board {
    /// What it is made from is an index, which follows what changes when it comes to it.
    const HOLDS_IN_A_LULL: bool = false;

    /// Without an index the four are there all the same; a search tells what is wrong.
    fn read(kernel: &Kernel) -> Self {
        Self::of(&kernel.overview(NAMED).unwrap_or_default())
    }

    fn empty() -> Self {
        Self::of(&Overview::default())
    }

    fn digest(&self) -> Digest {
        self.digest
    }
}
