//! What there is, as clients see it: read in the background, answered from memory. The four tools only need to be described
//! (`Board`); every tool under its own name has to be read (`Catalogue`), and is, if anybody asks for that.

mod board;
mod entry;
mod shelf;

pub(crate) use board::Board;
pub(crate) use entry::{Entry, Source, is_callable};
pub(crate) use shelf::{Reading, Shelf};

use kiwi_gate::Kernel;
use kiwi_model::{Digest, Hasher, Space};
use kiwi_space::TextKind;
use rmcp::model::Tool;
use std::collections::BTreeMap;
use std::sync::Arc;

use crate::direct::native_tool;

/// Nearest first, as a call looks.
const ORDER: [Space; 3] = [Space::Project, Space::User, Space::System];

/// Everything a client can find, at one moment.
pub(crate) struct Catalogue {
    /// One entry for each item of each space, nearest first.
    pub entries: Vec<Arc<Entry>>,
    /// Every tool under its own name.
    pub native: Vec<Tool>,
    /// Changes when anything of it does.
    pub digest: Digest,
}

impl Reading for Catalogue {
    /// Reads everything. What is broken is not offered; `kiwi tool list` tells about it.
    fn read(kernel: &Kernel) -> Self {
        let mut entries = Vec::new();
        for space in ORDER {
            let mut best: BTreeMap<String, Arc<kiwi_chain::Tool>> = BTreeMap::new();
            for tool in kernel.spaces().list(space).into_iter().filter_map(|listed| listed.result.ok()) {
                let id = tool.manifest.tool_id.to_string();
                let is_better =
                    best.get(&id).is_none_or(|known| known.manifest.version < tool.manifest.version);
                if is_better {
                    best.insert(id, tool);
                }
            }
            // What a space has itself comes before what servers offer there.
            for tool in kernel.upstreams().tools().into_iter().filter(|tool| tool.space == space) {
                best.entry(tool.manifest.tool_id.to_string()).or_insert(tool);
            }
            entries.extend(best.into_values().map(|tool| Arc::new(Entry::of_tool(tool))));
            for kind in [TextKind::Directive, TextKind::Knowledge] {
                let texts = kernel.spaces().texts(kind, space).into_iter();
                entries
                    .extend(texts.filter_map(|it| it.result.ok()).map(|text| Arc::new(Entry::of_text(text))));
            }
        }
        Self::of(entries)
    }

    fn empty() -> Self {
        Self::of(Vec::new())
    }

    fn digest(&self) -> Digest {
        self.digest
    }
}

impl Catalogue {
    fn of(entries: Vec<Arc<Entry>>) -> Self {
        let mut hasher = Hasher::default();
        for entry in &entries {
            hasher.update(entry.fingerprint().as_bytes());
            hasher.update(b"\n");
        }
        let mut catalogue = Self { entries, native: Vec::new(), digest: hasher.finish() };
        catalogue.native = catalogue.visible().filter_map(|entry| native_tool(entry)).collect();
        catalogue
    }

    /// The entries that a name means: those of the nearest space that has one.
    pub fn visible(&self) -> impl Iterator<Item = &Arc<Entry>> {
        let mut seen = std::collections::HashSet::new();
        self.entries.iter().filter(move |entry| seen.insert((entry.kind.family(), entry.id.clone())))
    }
}
