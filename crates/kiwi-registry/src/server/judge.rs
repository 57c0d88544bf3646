//! Whether a publication is what it says it is. Nothing that it says is believed.

use kiwi_model::manifest::Source;
use kiwi_model::yaml::{Document, MAX_BYTES};
use kiwi_model::{FileEntry, Manifest, ToolId, Version, integrity_of};
use kiwi_space::ItemSignature;

use crate::error::RegistryError;
use crate::protocol::{Publication, problems};

/// As much of a description as is told.
const LONGEST_DESCRIPTION: usize = 1000;

/// What a publication turned out to be.
pub(super) struct Judged {
    pub manifest: Manifest,
    pub description: String,
}

/// Everything that can be judged without the bytes of its files.
pub(super) fn judge(
    tool_id: &ToolId,
    version: &Version,
    publication: &Publication,
) -> Result<Judged, RegistryError> {
    if tool_id.is_reserved() {
        return Err(RegistryError::Reserved { name: tool_id.to_string() });
    }
    let problems = problems(&publication.files);
    if !problems.is_empty() {
        let problems = problems.iter().map(ToString::to_string).collect();
        return Err(RegistryError::BadFiles { problems });
    }
    let manifest = read(tool_id, version, publication)?;
    let entries: Vec<FileEntry> = publication.files.iter().map(crate::protocol::FileInfo::entry).collect();
    let unhashable =
        |error: kiwi_model::CanonicalError| RegistryError::BadManifest { problem: error.to_string() };
    let computed = integrity_of(tool_id, version, &publication.manifest, &entries).map_err(unhashable)?;
    let said = publication.integrity;
    if computed != said {
        return Err(RegistryError::Mismatch { what: format!("{tool_id}@{version}"), computed, said });
    }
    if let Some(signature) = &publication.signature {
        let sound = ItemSignature {
            integrity: computed.to_string(),
            key: signature.key.clone(),
            signature: signature.signature.clone(),
        };
        if !sound.is_sound() {
            let key = signature.key.chars().take(80).filter(|c| !c.is_control()).collect();
            return Err(RegistryError::BadSignature { key, integrity: computed });
        }
    }
    let description = manifest.description.as_deref().unwrap_or_default();
    let description = description.chars().filter(|c| *c != '\0').take(LONGEST_DESCRIPTION).collect();
    Ok(Judged { manifest, description })
}

/// The manifest, which must be of this tool and this version.
fn read(tool_id: &ToolId, version: &Version, publication: &Publication) -> Result<Manifest, RegistryError> {
    let bad = |problem: String| RegistryError::BadManifest { problem };
    if publication.manifest.to_string().len() > MAX_BYTES {
        return Err(bad(format!("it has more than {MAX_BYTES} bytes")));
    }
    // A version whose files are one script has its manifest in it, and may leave out what the script's place says.
    let mut paths = publication.files.iter().map(|file| file.path.as_str());
    let script =
        paths.clone().all(|path| path != "tool.yaml").then(|| paths.find(|path| is_main(path, tool_id)));
    let script = script.flatten();
    let source =
        Source { file: "the manifest".to_owned(), id: tool_id.clone(), script: script.map(str::to_owned) };
    let document = Document::synthetic(publication.manifest.clone());
    let (hashed, manifest, _) = Manifest::read(&document, &source).map_err(|error| bad(error.to_string()))?;
    if hashed != publication.manifest {
        return Err(bad("it is not in the form that is hashed".to_owned()));
    }
    if manifest.tool_id != *tool_id || manifest.version != *version {
        return Err(bad(format!("it is of `{}@{}`", manifest.tool_id, manifest.version)));
    }
    if manifest.tool_type == "primitive" {
        return Err(bad("primitives belong to the system".to_owned()));
    }
    Ok(manifest)
}

/// Whether a file is the script of a tool: its last name, and an extension.
fn is_main(path: &str, tool_id: &ToolId) -> bool {
    let name = tool_id.as_str().rsplit('.').next().unwrap_or_default();
    path.rsplit_once('.').is_some_and(|(stem, _)| stem == name || stem == tool_id.as_str())
}
