//! Signatures of items: a file beside the item, over its integrity, by the user's key.

use kiwi_chain::{Signature, Tool};
use kiwi_model::Space;
use serde::{Deserialize, Serialize};
use std::io::Read as _;
use std::path::{Path, PathBuf};

use crate::durable;
use crate::error::{PathProblem, SpaceError};
use crate::gather::SIGNATURE;
use crate::keys::{KeyPurpose, PublicKey};
use crate::kind::{Item, Kind, MANIFEST};
use crate::root::Root;
use crate::settings::lies_in;
use crate::spaces::Spaces;

/// What a signature is over, before the hash: it means nothing else.
const MEANING: &str = "kiwi item\n";

/// A signature of an item.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ItemSignature {
    /// What is signed: `sha256:` and 64 digits.
    pub integrity: String,
    /// Whose signature it is.
    pub key: String,
    /// The signature, hexadecimal.
    pub signature: String,
}

impl ItemSignature {
    /// Whether the key it names made it, over what it names.
    pub fn is_sound(&self) -> bool {
        let key = PublicKey::parse(&self.key);
        key.is_some_and(|key| key.verifies(message(&self.integrity).as_bytes(), &self.signature))
    }
}

impl Spaces {
    /// Signs an item of a space. A folder has its signature inside, a file beside it.
    pub fn sign(
        &self,
        space: Space,
        item: &Path,
        integrity: &str,
    ) -> Result<(PathBuf, ItemSignature), SpaceError> {
        let home = self.home(space).ok_or(SpaceError::NoSpace { space })?;
        let file = place(&home.folder.join(item));
        if !lies_in(&file, &home.ai) {
            return Err(SpaceError::bad_path(file, PathProblem::LeavesSpace));
        }
        let signature = self.signature(integrity)?;
        let text = serde_json::to_vec_pretty(&signature)
            .map_err(|error| SpaceError::unwritable(&file, std::io::Error::other(error)))?;
        // A link of that name is replaced, not followed.
        durable::write(&file, &text)?;
        Ok((file, signature))
    }

    /// Takes away the signature of an item of the project that is another now, or none. One that has none keeps none.
    pub fn unsign(&self, item: &Path) -> Result<(), SpaceError> {
        let home = self.home(Space::Project).ok_or(SpaceError::NoSpace { space: Space::Project })?;
        let file = place(&home.folder.join(item));
        if !lies_in(&file, &home.ai) {
            return Ok(());
        }
        match std::fs::remove_file(&file) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                Err(SpaceError::unwritable(file, error))
            }
            _ => Ok(()),
        }
    }

    /// The user's signature over an integrity; their key is made where they have none.
    pub fn signature(&self, integrity: &str) -> Result<ItemSignature, SpaceError> {
        let key = self.keys()?.get_or_make(KeyPurpose::User)?;
        Ok(ItemSignature {
            integrity: integrity.to_owned(),
            key: key.public().to_string(),
            signature: key.sign(message(integrity).as_bytes()),
        })
    }
}

/// No signature is longer.
const MOST_BYTES: u64 = 4096;

/// Where the signature of an item lies, from its space's root.
pub(crate) fn beside(item: &Item) -> String {
    match item {
        Item::Package { .. } | Item::Tool { kind: Kind::Folder, .. } => {
            format!("{}/{SIGNATURE}", item.relative())
        }
        Item::Tool { .. } => format!("{}.{SIGNATURE}", item.relative()),
    }
}

/// What lies there, if anything does.
pub(crate) fn read(root: &Root, relative: &str) -> Result<Option<Vec<u8>>, SpaceError> {
    let opened = match root.open_file(relative) {
        Err(error) if error.is_absent() => return Ok(None),
        opened => opened?,
    };
    let mut bytes = Vec::new();
    let read = opened.file.take(MOST_BYTES).read_to_end(&mut bytes);
    read.map_err(|error| SpaceError::unreadable(root.absolute(relative), error))?;
    Ok(Some(bytes))
}

/// Whether these bytes are a signature of a tool.
pub(crate) fn judge(bytes: &[u8], tool: &Tool, file: impl FnOnce() -> String) -> Signature {
    match serde_json::from_slice::<ItemSignature>(bytes) {
        Ok(signature) if signature.integrity == tool.integrity.to_string() && signature.is_sound() => {
            Signature::By(signature.key)
        }
        _ => Signature::Wrong(file()),
    }
}

fn message(integrity: &str) -> String {
    format!("{MEANING}{integrity}")
}

/// Where the signature of an item lies.
fn place(item: &Path) -> PathBuf {
    if item.is_dir() {
        return item.join(SIGNATURE);
    }
    let name = item.file_name().unwrap_or_default().to_string_lossy();
    if name == MANIFEST || item.with_file_name(MANIFEST).is_file() {
        item.with_file_name(SIGNATURE)
    } else {
        item.with_file_name(format!("{name}.{SIGNATURE}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spaces::Locations;

    #[test]
    fn a_signature_is_over_one_hash_by_one_key_and_stays_in_the_space() {
        let folder = tempfile::tempdir().unwrap();
        let (project, user) = (folder.path().join("p"), folder.path().join("h"));
        let tools = project.join(".ai/tools");
        std::fs::create_dir_all(tools.join("x/deep")).unwrap();
        std::fs::create_dir_all(&user).unwrap();
        std::fs::write(tools.join("one.sh"), "echo\n").unwrap();
        std::fs::write(tools.join("x/deep/tool.yaml"), "a: 1\n").unwrap();
        let spaces =
            Spaces::open(Locations { project: None, cwd: project.clone(), user: Some(user) }).unwrap();
        for (item, expected) in [
            (".ai/tools/one.sh", "one.sh.kiwi.sig"),
            (".ai/tools/x/deep/tool.yaml", "x/deep/kiwi.sig"),
            (".ai/tools/x/deep", "x/deep/kiwi.sig"),
        ] {
            let (file, signature) = spaces.sign(Space::Project, Path::new(item), "sha256:00").unwrap();
            assert_eq!(file, tools.join(expected));
            assert!(signature.is_sound());
            assert!(!ItemSignature { integrity: "sha256:01".into(), ..signature.clone() }.is_sound());
            let read: ItemSignature = serde_json::from_slice(&std::fs::read(file).unwrap()).unwrap();
            assert_eq!(read, signature);
        }
        let outside = folder.path().join("outside");
        std::fs::create_dir(&outside).unwrap();
        std::os::unix::fs::symlink(&outside, tools.join("away")).unwrap();
        assert!(spaces.sign(Space::Project, Path::new(".ai/tools/away/t.sh"), "sha256:00").is_err());
        std::fs::write(outside.join("kept"), "as it was").unwrap();
        std::os::unix::fs::symlink(outside.join("kept"), tools.join("two.sh.kiwi.sig")).unwrap();
        spaces.sign(Space::Project, Path::new(".ai/tools/two.sh"), "sha256:00").unwrap();
        assert_eq!(std::fs::read_to_string(outside.join("kept")).unwrap(), "as it was");
    }
}
