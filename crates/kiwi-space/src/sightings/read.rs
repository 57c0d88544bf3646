//! Reading one item, found by where it lies.

use kiwi_chain::Tool;
use kiwi_model::{Explain as _, Fault, Space, ToolId};
use rustix::fs::FileType;
use std::sync::Arc;

use super::{Form, Sighting};
use crate::error::SpaceError;
use crate::items::{TextItem, TextKind, walk};
use crate::kind::{Item, Kind, TREES};
use crate::root::{Root, is_inside};
use crate::spaces::{Home, Spaces};

/// An item that was read.
#[derive(Debug, Clone)]
pub enum Sighted {
    /// A tool, from `tools/`, `scripts/` or `packages/`.
    Tool(Arc<Tool>),
    /// A directive or a knowledge entry.
    Text(Arc<TextItem>),
}

impl Spaces {
    /// Reads one, whole and verified, as a call or a listing would.
    pub fn sighted(&self, space: Space, sighting: &Sighting) -> Result<Sighted, Fault> {
        let nothing = || nothing(space, &sighting.key);
        if space == Space::System {
            return self.system_sighted(&sighting.key).unwrap_or_else(|| Err(nothing()));
        }
        let (home, root) = self.open_home(space)?.ok_or_else(nothing)?;
        self.read(home, &root, &sighting.key, sighting.form)
    }

    /// The same by key alone, for whoever remembers only that; not found if nothing lies there.
    pub fn at_key(&self, space: Space, key: &str) -> Result<Sighted, Fault> {
        let nothing = || nothing(space, key);
        if space == Space::System {
            return self.system_sighted(key).unwrap_or_else(|| Err(nothing()));
        }
        let (home, root) = self.open_home(space)?.ok_or_else(nothing)?;
        let form = self.form_at(home, &root, key).map_err(|error| error.fault())?.ok_or_else(nothing)?;
        self.read(home, &root, key, form)
    }

    fn open_home(&self, space: Space) -> Result<Option<(&Home, Root)>, Fault> {
        let Some(home) = self.home(space) else { return Ok(None) };
        let root = Root::open(&home.ai).map_err(|error| error.fault())?;
        Ok(root.map(|root| (home, root)))
    }

    fn read(&self, home: &Home, root: &Root, key: &str, form: Form) -> Result<Sighted, Fault> {
        let nothing = || nothing(home.space, key);
        if let Form::Text(kind) = form {
            root.stat(key).ok_or_else(nothing)?;
            let listed = walk::one(root, key, kind, home.space).ok_or_else(nothing)?;
            return listed.result.map(Sighted::Text);
        }
        let item = item(key, form).ok_or_else(nothing)?;
        // What was written down about a package that is gone must not make it look damaged.
        root.stat(key).ok_or_else(nothing)?;
        match self.with_loader(home, root, |loader| loader.load(&item)) {
            Ok(tool) => Ok(Sighted::Tool(tool)),
            Err(error) if error.is_absent() => Err(nothing()),
            Err(error) => Err(error.fault()),
        }
    }

    /// What lies at a key, if an item does.
    fn form_at(&self, home: &Home, root: &Root, key: &str) -> Result<Option<Form>, SpaceError> {
        let tree = key.split('/').next().unwrap_or_default();
        let Some(stat) = is_inside(key).then(|| root.stat(key)).flatten() else { return Ok(None) };
        let is_folder = FileType::from_raw_mode(stat.st_mode) == FileType::Directory;
        if TREES.contains(&tree) {
            return self.tool_at(home, root, key, is_folder);
        }
        let kind = [TextKind::Directive, TextKind::Knowledge].into_iter().find(|kind| kind.folder() == tree);
        Ok(match kind {
            Some(kind) => (!is_folder && walk::reaches(root, key, kind)).then_some(Form::Text(kind)),
            None => item(key, Form::Package).map(|_| Form::Package),
        })
    }

    /// Whether the index knows a tool there: it alone decides what is one.
    fn tool_at(
        &self,
        home: &Home,
        root: &Root,
        key: &str,
        is_folder: bool,
    ) -> Result<Option<Form>, SpaceError> {
        let name = key.rsplit('/').next().unwrap_or_default();
        let (id, kind) = match Kind::of_file(name).filter(|_| !is_folder) {
            Some((stem, kind)) => (stem, kind),
            None => (name, Kind::Folder),
        };
        let Ok(id) = ToolId::parse(id) else { return Ok(None) };
        let counters = &self.caches().counters;
        let is_known = || -> Result<bool, SpaceError> {
            let items = home.index.find(root, &id, counters)?;
            Ok(items.iter().any(|item| item.kind() == kind && item.relative() == key))
        };
        if is_known()? {
            return Ok(Some(Form::Tool(kind)));
        }
        // It may lie in a folder that stopped being a tool, which the index has not noticed.
        home.index.rebuild(root, counters)?;
        Ok(is_known()?.then_some(Form::Tool(kind)))
    }
}

/// The item at a key; `None` for a key that no item of this form has.
fn item(key: &str, form: Form) -> Option<Item> {
    let item = match form {
        Form::Tool(Kind::Folder) | Form::Package => Item::of_handle(&format!("folder:{key}"))?,
        Form::Tool(_) => Item::of_handle(&format!("file:{key}"))?,
        Form::Text(_) => return None,
    };
    let is_package = matches!(item, Item::Package { .. });
    (is_package == (form == Form::Package) && item.relative() == key).then_some(item)
}

fn nothing(space: Space, key: &str) -> Fault {
    SpaceError::NothingThere { space, key: key.chars().take(200).collect() }.fault()
}
