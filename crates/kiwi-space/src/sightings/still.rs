//! Whether a tool is as it was, without reading it.

use kiwi_model::{Space, ToolId};

use super::mark::Moment;
use crate::kind::Kind;
use crate::packages;
use crate::root::Root;
use crate::signature;
use crate::spaces::Spaces;

impl Spaces {
    /// Whether the tool at a key is the only one of its name in its space, can be opened, and has the stamp that it had
    /// once. Then it is what it was, the modules aside that it shares with others. `false` only means that it has to be read
    /// to know: so it is for tools of more than one file, and for signed ones.
    pub fn is_still(&self, space: Space, id: &ToolId, key: &str, stamp: u64) -> bool {
        let Some(home) = self.home(space).filter(|_| !id.is_reserved()) else { return false };
        let Ok(Some(root)) = Root::open(&home.ai) else { return false };
        let Ok(items) = home.index.find(&root, id, &self.caches().counters) else { return false };
        let [item] = items.as_slice() else { return false };
        let is_there = item.kind() != Kind::Folder && item.relative() == key;
        let moment = Moment::now();
        let mark = || moment.entry(&root, root.fd(), key, || key.to_owned());
        is_there
            && packages::versions(&root, id).is_ok_and(|(versions, _)| versions.is_empty())
            && mark().is_some_and(|mark| moment.stamp(mark) == stamp)
            && root.open_file(key).is_ok()
            && root.stat(&signature::beside(item)).is_none()
    }
}
