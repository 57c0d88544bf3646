//! One link of a chain, and the hash over a chain.

use serde::{Deserialize, Serialize};

use crate::{Digest, Integrity, Space, ToolId, Version};

/// One link of a resolved chain, as records, lockfiles and `--json` show it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Link {
    /// Which tool.
    pub tool_id: ToolId,
    /// Which version.
    pub version: Version,
    /// Where it was found.
    pub space: Space,
    /// Its identity.
    pub integrity: Integrity,
    /// The next link's id; `None` for a primitive.
    pub executor: Option<ToolId>,
}

/// The hash over a chain: `id@version:integrity` joined by `|`, leaf first.
pub fn chain_hash(links: &[Link]) -> Digest {
    let text: Vec<String> =
        links.iter().map(|link| format!("{}@{}:{}", link.tool_id, link.version, link.integrity)).collect();
    Digest::of(text.join("|").as_bytes())
}
