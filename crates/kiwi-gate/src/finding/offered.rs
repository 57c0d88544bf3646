//! What a registry offers, as one more tier: it says what may be meant, and it is ranked here among the rest.

use kiwi_model::{ErrorKind, Fault};
use kiwi_registry::Registry;
use kiwi_search::{Document, Index, StaticEmbedder, View};
use std::sync::Arc;

use super::document::of_offer;
use super::{Search, Source, fault};
use crate::kernel::Kernel;
use crate::stages::client;

/// Candidates that are asked for.
const MOST: usize = 50;

impl Kernel {
    /// What the registry offers for a query. Where nobody asked for the registry by name, it may be silent: that is told, and
    /// the rest is found all the same.
    pub(super) fn offered(
        &self,
        search: &Search,
        warnings: &mut Vec<String>,
    ) -> Result<Option<Arc<View>>, Fault> {
        let is_meant = match search.source {
            Some(Source::Space(_)) => false,
            Some(Source::Registry) => true,
            None => self.has_registry(),
        };
        if !is_meant || search.text.trim().is_empty() {
            return Ok(None);
        }
        match self.ask_registry(search.text.trim()) {
            Ok(view) => Ok(Some(view)),
            Err(problem) if search.source.is_none() => {
                warnings.push(format!("{}; what it has is left out", problem.message));
                Ok(None)
            }
            Err(problem) => Err(problem),
        }
    }

    fn ask_registry(&self, text: &str) -> Result<Arc<View>, Fault> {
        let sharing = self.sharing(None)?;
        // Connections of its own: they end with the runtime that opened them.
        let registry: Registry = sharing.registry().clone().by(Arc::new(client(&self.host))).hurried();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime
            .map_err(|error| Fault::new(ErrorKind::Internal, format!("no room for connections: {error}")))?;
        let found = runtime.block_on(registry.search(text, MOST)).map_err(Fault::from)?;
        let documents: Vec<Document> = found
            .hits
            .iter()
            .map(|hit| Document {
                key: format!("registry:{}", hit.tool_id),
                group: "registry".to_owned(),
                stamp: 0,
                item: Some(of_offer(hit).bounded()),
            })
            .collect();
        let index = Index::in_memory(Arc::new(StaticEmbedder::new())).map_err(|error| fault(&error))?;
        let fill = || {
            let mut writer = index.write()?;
            writer.add(index.prepare(&documents)?)?;
            writer.commit(true)?;
            writer.finish()?;
            index.view()
        };
        fill().map_err(|error| fault(&error))
    }
}
