//! How a package lay when it was last hashed, so that whoever only asks whether it is there need not hash it again.
//!
//! It lies in the user space, beside the note, where whoever changes a project cannot reach it. A call hashes what it runs
//! all the same.

use kiwi_model::{Digest, Integrity, ToolId, Version};
use serde::{Deserialize, Serialize};
use std::fmt::Write as _;
use std::path::PathBuf;

use super::{Packages, note_path, record_path};
use crate::durable;
use crate::gather::SIGNATURE;
use crate::kind::Item;
use crate::root::Root;
use crate::stamp::{Stamp, now};
use crate::tree;

#[derive(Serialize, Deserialize)]
struct Standing {
    /// What it was.
    integrity: Integrity,
    /// A digest over the stamps of everything it is made of.
    stamps: Digest,
}

impl Packages<'_> {
    /// The integrity that a package had when it was last hashed, if nothing of it was touched since.
    pub fn standing(&self, id: &ToolId, version: &Version) -> Option<Integrity> {
        let bytes = std::fs::read(self.standing_file(id, version)?).ok()?;
        let standing: Standing = serde_json::from_slice(&bytes).ok()?;
        (self.stamps(id, version)? == standing.stamps).then_some(standing.integrity)
    }

    /// Keeps how a package lies that was just found to have this integrity. Where that cannot be told, nothing is kept.
    pub fn keep_standing(&self, id: &ToolId, version: &Version, integrity: Integrity) {
        let Some((file, stamps)) = self.standing_file(id, version).zip(self.stamps(id, version)) else {
            return;
        };
        if let Ok(text) = serde_json::to_vec(&Standing { integrity, stamps }) {
            // Without it somebody hashes once more.
            let _ = durable::write(&file, &text);
        }
    }

    pub(super) fn standing_file(&self, id: &ToolId, version: &Version) -> Option<PathBuf> {
        self.note_file(id, version).map(|note| note.with_added_extension("standing"))
    }

    /// `None` where a later change might not show, or where something lies elsewhere.
    fn stamps(&self, id: &ToolId, version: &Version) -> Option<Digest> {
        let begun = now();
        let root = Root::open(&self.home.ai).ok()??;
        let user = Root::open(self.spaces.user_ai()?).ok()??;
        let folder = Item::Package { id: id.clone(), version: version.clone() }.relative();
        let mut parts: Vec<(String, bool)> = vec![(String::new(), true)];
        let mut is_plain = true;
        let walked = tree::walk(&root, &folder, &mut |met| {
            is_plain &= !met.is_link;
            parts.push((met.path.to_owned(), met.kind == rustix::fs::FileType::Directory));
        });
        walked.ok().filter(|()| is_plain)?;
        parts.sort_unstable();
        let mut text = String::new();
        let mut add = |stamp: Stamp, name: &str| {
            let Stamp { device, inode, size, modified, changed } = stamp;
            // Writing to a String cannot fail.
            let _ = writeln!(text, "{device} {inode} {size} {modified:?} {changed:?} {name}");
            stamp.is_settled(begun).then_some(())
        };
        for (part, is_folder) in &parts {
            let path = if part.is_empty() { folder.clone() } else { format!("{folder}/{part}") };
            let stat = root.stat(&path)?;
            add(if *is_folder { Stamp::of_folder(&stat) } else { Stamp::of_file(&stat) }, part)?;
        }
        if let Some(stat) = root.stat(&format!("{folder}/{SIGNATURE}")) {
            add(Stamp::of_file(&stat), SIGNATURE)?;
        }
        add(Stamp::of_file(&root.stat(&record_path(id, version))?), "record")?;
        add(Stamp::of_file(&user.stat(&note_path(&self.home.owner, id, version))?), "note")?;
        Some(Digest::of(text.as_bytes()))
    }
}
