//! The items inside the binary. They are what they were when it was built, so their digests are their stamps.

use kiwi_model::{Explain as _, Fault, ToolId};

use super::{Form, Sighted, Sighting, Wanted};
use crate::items::TextKind;
use crate::kind::{Kind, MANIFEST};
use crate::spaces::Spaces;

const PREFIX: &str = "system:";

impl Spaces {
    pub(super) fn system_sightings(&self, wanted: Wanted<'_>) -> Vec<Sighting> {
        let tools = self.system.tools().map(|(_, path)| {
            let (lies_at, kind) = match path.strip_suffix(MANIFEST).and_then(|path| path.strip_suffix('/')) {
                Some(folder) => (folder, Kind::Folder),
                None => (path, Kind::of_file(path).map_or(Kind::Yaml, |(_, kind)| kind)),
            };
            (lies_at, Form::Tool(kind))
        });
        let texts = [TextKind::Directive, TextKind::Knowledge].into_iter().flat_map(|kind| {
            let paths = self.system.paths(kind.folder());
            paths
                .filter(move |path| crate::items::walk::is_item(path, kind))
                .map(move |path| (path, Form::Text(kind)))
        });
        let sighting = |(path, form): (&str, Form)| {
            let key = format!("{PREFIX}{path}");
            let folder = key.rfind('/').unwrap_or(0);
            let stamp = self.system.stamp(path);
            let folder = u32::try_from(folder).unwrap_or(0);
            Sighting { key: key.into_boxed_str(), stamp, folder, form }
        };
        let is_wanted = |it: &Sighting| wanted.has(it.folder()) && !(wanted.is_known)(&it.key, it.stamp);
        tools.chain(texts).map(sighting).filter(is_wanted).collect()
    }

    /// Reads what is embedded under a key; `None` if nothing is.
    pub(super) fn system_sighted(&self, key: &str) -> Option<Result<Sighted, Fault>> {
        let path = key.strip_prefix(PREFIX)?;
        let manifest = format!("{path}/{MANIFEST}");
        let is_it = |main: &str| main == manifest || (main == path && !path.ends_with(MANIFEST));
        if let Some((id, main)) = self.system.tools().find(|(_, main)| is_it(main)) {
            let id = ToolId::parse(id).ok()?;
            let tool = self.system.load(&id, main, self.caches());
            return Some(tool.map(Sighted::Tool).map_err(|error| error.fault()));
        }
        let kinds = [TextKind::Directive, TextKind::Knowledge];
        let kind = kinds.into_iter().find(|kind| self.system.paths(kind.folder()).any(|it| it == path))?;
        Some(self.system_text(kind, path)?.result.map(Sighted::Text))
    }
}
