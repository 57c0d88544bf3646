//! Looking at many items: each folder is opened once, and its files are asked about through it.

use kiwi_model::ToolId;
use rustix::fs::FileType;
use std::os::fd::AsFd as _;

use super::lot::{Lot, Spot};
use super::mark::{Mark, Moment};
use super::{Form, IsKnown, Sighting};
use crate::kind::{Item, Kind};
use crate::list::beside_each_other;
use crate::loader::lacks_manifest;
use crate::packages::{FOLDER, note_path, record_path};
use crate::root::Root;

/// Items that one thread looks at before it takes the next ones.
const PIECE: usize = 1024;

/// One look at a space.
pub(super) struct Look<'a> {
    pub(super) root: &'a Root,
    /// The user space, where packages are noted.
    user: Option<&'a Root>,
    /// Under which name this space's packages are noted.
    owner: &'a str,
    is_known: IsKnown<'a>,
    moment: Moment,
}

/// What a look showed.
#[derive(Default)]
pub(super) struct Looked {
    pub(super) sightings: Vec<Sighting>,
    /// Whether a folder that should be a tool is none.
    pub(super) is_out_of_date: bool,
}

impl<'a> Look<'a> {
    pub(super) fn new(root: &'a Root, user: Option<&'a Root>, owner: &'a str, is_known: IsKnown<'a>) -> Self {
        Self { root, user, owner, is_known, moment: Moment::now() }
    }

    /// Looks at everything in a lot.
    pub(super) fn at(&self, folders: &[String], lot: &Lot) -> Looked {
        let pieces = lot.pieces(PIECE);
        let looked = beside_each_other(&pieces, |(folder, piece)| {
            folders.get(*folder).map(|folder| self.piece(folder, lot, piece)).unwrap_or_default()
        });
        let mut all = Looked::default();
        all.sightings.reserve_exact(looked.iter().map(|piece| piece.sightings.len()).sum());
        for piece in looked {
            all.sightings.extend(piece.sightings);
            all.is_out_of_date |= piece.is_out_of_date;
        }
        all
    }

    /// Looks at some items of one folder.
    fn piece(&self, path: &str, lot: &Lot, piece: &[Spot]) -> Looked {
        let mut looked = Looked::default();
        // Gone since it was read, perhaps.
        let Ok(fd) = self.root.open_plain_folder(path) else { return looked };
        let mut keys = String::new();
        let mut there = Vec::with_capacity(piece.len());
        for spot in piece {
            let start = keys.len();
            add_key(&mut keys, path, lot.name(*spot), spot.form);
            let key = keys.get(start..).unwrap_or_default();
            let mark = if spot.form == Form::Tool(Kind::Folder) {
                self.tool_folder(path, lot.name(*spot), key, &mut looked.is_out_of_date)
            } else {
                let name = key.get(path.len() + 1..).unwrap_or_default();
                self.moment.entry(self.root, fd.as_fd(), name, || key.to_owned())
            };
            there.extend(mark.map(|mark| (start..keys.len(), mark, spot.form)));
        }
        // Whoever knows them is asked one after the other, without a call of the system in between that empties the
        // processor's caches.
        for (span, mark, form) in there {
            let key = keys.get(span).unwrap_or_default();
            looked.sightings.extend(self.sighting(key, path.len(), form, mark));
        }
        looked
    }

    fn tool_folder(&self, folder: &str, id: &str, key: &str, is_out_of_date: &mut bool) -> Option<Mark> {
        let stat = self.root.stat(key)?;
        let id = ToolId::parse(id).ok()?;
        if lacks_manifest(self.root, &Item::Tool { id, folder: folder.to_owned(), kind: Kind::Folder }) {
            // A symlink is never a category, so nothing else is found in it.
            *is_out_of_date |= FileType::from_raw_mode(stat.st_mode) == FileType::Directory;
            return None;
        }
        Some(self.moment.tree(self.root, key))
    }

    /// Looks at packages, and at what was written down about them.
    pub(super) fn packages(&self, items: &[Item]) -> Vec<Sighting> {
        let one = |item: &Item| {
            let Item::Package { id, version } = item else { return None };
            let relative = item.relative();
            let record = self.moment.file(self.root, &record_path(id, version));
            let note = self
                .user
                .map(|user| self.moment.file(user, &note_path(self.owner, id, version)))
                .unwrap_or_default();
            let mark = self.moment.tree(self.root, &relative).and(record).and(note);
            self.sighting(&relative, FOLDER.len(), Form::Package, mark)
        };
        beside_each_other(items, one).into_iter().flatten().collect()
    }

    /// What is to be told of an item: nothing where it is known.
    fn sighting(&self, key: &str, folder: usize, form: Form, mark: Mark) -> Option<Sighting> {
        let stamp = self.moment.stamp(mark);
        if (self.is_known)(key, stamp) {
            return None;
        }
        Some(Sighting { key: key.into(), stamp, folder: u32::try_from(folder).unwrap_or(0), form })
    }
}

/// Adds where an item lies.
fn add_key(keys: &mut String, folder: &str, name: &str, form: Form) {
    let extension = match form {
        Form::Tool(kind) => kind.extension(),
        Form::Package | Form::Text(_) => None,
    };
    keys.push_str(folder);
    keys.push('/');
    keys.push_str(name);
    if let Some(extension) = extension {
        keys.push('.');
        keys.push_str(extension);
    }
}
