//! What there is, as clients see it: read in the background, answered from memory. The four tools only need to be described
//! (`Board`); every tool under its own name has to be read (`Catalogue`), and is, if anybody asks for that.

mod board;
mod shelf;

pub(crate) use board::Board;
pub(crate) use shelf::{Reading, Shelf};

use kiwi_gate::Kernel;
use kiwi_model::{Digest, Hasher, Space};
use kiwi_space::TextKind;
use rmcp::model::{Prompt, Resource, Tool};
use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use crate::direct::{native_tool, prompt, resource};

/// Nearest first, as a call looks.
const ORDER: [Space; 3] = [Space::Project, Space::User, Space::System];

/// Everything a client can find, at one moment: what it is shown of it, and no more.
pub(crate) struct Catalogue {
    /// Every tool under its own name.
    pub tools: Vec<Tool>,
    /// Directives.
    pub prompts: Vec<Prompt>,
    /// Knowledge.
    pub resources: Vec<Resource>,
    /// Changes when anything of it does.
    digest: Digest,
}

impl Reading for Catalogue {
    const HOLDS_IN_A_LULL: bool = true;

    /// Reads everything. What is broken is not offered; `kiwi tool list` tells about it.
    fn read(kernel: &Kernel) -> Self {
        let mut catalogue = Self::empty();
        let (mut hasher, mut seen) = (Hasher::default(), HashSet::new());
        // What a name means is what the nearest space has.
        let mut note = |family: &'static str, space: Space, id: &str, content: Digest| {
            hasher.update(format!("{family} {} {id} {content}\n", space.as_str()).as_bytes());
            seen.insert((family, id.to_owned()))
        };
        for space in ORDER {
            for (id, tool) in tools(kernel, space) {
                if note("tool", space, &id, tool.integrity) {
                    catalogue.tools.extend(native_tool(&tool));
                }
            }
            let texts = |kind| {
                let texts = kernel.spaces().texts(kind, space).into_iter();
                texts.filter_map(|it| it.result.ok())
            };
            for text in texts(TextKind::Directive) {
                if note("directive", space, &text.id, text.sha256) {
                    catalogue.prompts.extend(prompt(&text));
                }
            }
            for text in texts(TextKind::Knowledge) {
                if note("knowledge", space, &text.id, text.sha256) {
                    catalogue.resources.extend(resource(&text));
                }
            }
        }
        catalogue.digest = hasher.finish();
        catalogue
    }

    fn empty() -> Self {
        Self { tools: Vec::new(), prompts: Vec::new(), resources: Vec::new(), digest: Digest::of(b"") }
    }

    fn digest(&self) -> Digest {
        self.digest
    }
}

/// The newest of each tool of a space. What a space has itself comes before what servers offer there.
fn tools(kernel: &Kernel, space: Space) -> BTreeMap<String, Arc<kiwi_chain::Tool>> {
    let mut best: BTreeMap<String, Arc<kiwi_chain::Tool>> = BTreeMap::new();
    for tool in kernel.spaces().list(space).into_iter().filter_map(|listed| listed.result.ok()) {
        let id = tool.manifest.tool_id.to_string();
        if best.get(&id).is_none_or(|known| known.manifest.version < tool.manifest.version) {
            best.insert(id, tool);
        }
    }
    for tool in kernel.upstreams().tools().into_iter().filter(|tool| tool.space == space) {
        best.entry(tool.manifest.tool_id.to_string()).or_insert(tool);
    }
    best
}
