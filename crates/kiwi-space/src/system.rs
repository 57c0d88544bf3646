//! The system space: files inside the binary, checked against the digests taken when it was built.

use kiwi_chain::{Candidate, Identity, Tool, changes};
use kiwi_model::yaml::Document;
use kiwi_model::{Content, Digest, File, FileEntry, Space, ToolId};
use std::sync::Arc;

use crate::assemble::Raw;
use crate::checksum::{checksum, join};
use crate::counters::Counter;
use crate::error::SpaceError;
use crate::kind::{Kind, MANIFEST};
use crate::loader::{Caches, ToolKey};

/// One embedded file.
pub(crate) struct Embedded {
    /// Its path below `system/`.
    pub(crate) path: &'static str,
    /// Its bytes, as they lie in the binary.
    pub(crate) bytes: &'static [u8],
    /// Their digest when the binary was built.
    pub(crate) sha256: &'static str,
    pub(crate) is_executable: bool,
    /// What it says, if it is a manifest.
    pub(crate) reading: Option<Reading>,
}

/// What a YAML file said when the binary was built, in JSON: reading YAML would be most of what a first call costs.
pub(crate) struct Reading {
    json: &'static [u8],
    sha256: &'static str,
}

mod table {
    use super::{Embedded, Reading};
    include!(concat!(env!("OUT_DIR"), "/system.rs"));
}

/// The embedded files and tools, both sorted.
pub(crate) struct System {
    files: &'static [Embedded],
    tools: &'static [(&'static str, &'static str)],
}

impl System {
    pub(crate) fn embedded() -> Self {
        Self { files: table::FILES, tools: table::TOOLS }
    }

    pub(crate) fn ids(&self) -> impl Iterator<Item = ToolId> {
        self.tools.iter().filter_map(|(id, _)| ToolId::parse(id).ok())
    }

    pub(crate) fn has(&self, id: &ToolId) -> bool {
        self.tools.binary_search_by(|(known, _)| (*known).cmp(id.as_str())).is_ok()
    }

    /// The bytes of an embedded file, if they are those it was built with.
    pub(crate) fn file(&self, path: &str) -> Result<Option<&'static [u8]>, SpaceError> {
        let Some(file) =
            self.files.binary_search_by(|file| file.path.cmp(path)).ok().and_then(|at| self.files.get(at))
        else {
            return Ok(None);
        };
        let (now, then) = (file.entry_now(path), file.entry_then(path)?);
        let changes = changes(&[then], &[now]);
        if changes.is_empty() {
            Ok(Some(file.bytes))
        } else {
            Err(SpaceError::Changed { tool: format!("system:{path}"), changes })
        }
    }

    /// The paths of all embedded files below a folder.
    pub(crate) fn paths(&self, folder: &str) -> impl Iterator<Item = &'static str> {
        self.below(&format!("{folder}/")).iter().map(|file| file.path)
    }

    pub(crate) fn candidates(&self, id: &ToolId, caches: &Caches) -> Result<Vec<Candidate>, SpaceError> {
        let start = self.tools.partition_point(|(known, _)| *known < id.as_str());
        let paths = self.tools.iter().skip(start).take_while(|(known, _)| *known == id.as_str());
        paths
            .map(|(_, path)| {
                let tool = self.load(id, path, caches)?;
                let version = tool.manifest.version.clone();
                Ok(Candidate {
                    id: id.clone(),
                    version,
                    space: Space::System,
                    handle: (*path).to_owned(),
                    loaded: Some(tool),
                })
            })
            .collect()
    }

    /// Every tool, by the path of its manifest or script.
    pub(crate) fn tools(&self) -> impl Iterator<Item = (&'static str, &'static str)> {
        self.tools.iter().copied()
    }

    /// One number for what was embedded at a path, a file or a folder.
    pub(crate) fn stamp(&self, path: &str) -> u64 {
        let folder = format!("{path}/");
        let files =
            self.below(path).iter().filter(|file| file.path == path || file.path.starts_with(&folder));
        files.fold(0, |sum, file| {
            let said = format!("{} {} {}", file.path, file.sha256, file.is_executable);
            join(sum, checksum(said.as_bytes()))
        })
    }

    pub(crate) fn load(&self, id: &ToolId, path: &str, caches: &Caches) -> Result<Arc<Tool>, SpaceError> {
        let shown = format!("system:{path}");
        let (folder, name) = path.rsplit_once('/').unwrap_or(("", path));
        let (kind, category, below, prefix) = if name == MANIFEST {
            (
                Kind::Folder,
                folder.rsplit_once('/').map_or("", |(outer, _)| outer),
                format!("{folder}/"),
                folder.len() + 1,
            )
        } else {
            let kind = Kind::of_file(name).map_or(Kind::Yaml, |(_, kind)| kind);
            (kind, folder, path.to_owned(), folder.len() + 1)
        };
        let category = category.split_once('/').map_or("", |(_, category)| category);
        let embedded: Vec<&Embedded> =
            self.below(&below).iter().filter(|file| kind == Kind::Folder || file.path == path).collect();
        let inside = |file: &Embedded| file.path.get(prefix..).unwrap_or_default().to_owned();
        // The bytes are hashed at every load: they may have been patched since the binary was built.
        let now: Vec<FileEntry> = embedded.iter().map(|file| file.entry_now(&inside(file))).collect();
        let key = ToolKey {
            space: Space::System,
            path: shown.clone(),
            files: now.clone(),
            evidence: (None, None),
            signature: None,
        };
        if let Some(tool) = caches.tools.get(&key) {
            caches.counters.add(Counter::ToolHits);
            return Ok(tool);
        }
        caches.counters.add(Counter::ToolMisses);
        let then =
            embedded.iter().map(|file| file.entry_then(&inside(file))).collect::<Result<Vec<_>, _>>()?;
        let is_whole = now == then;
        // About bytes that were patched it says nothing.
        let main = embedded.iter().find(|file| is_whole && file.path == path);
        let reading = main.and_then(|file| file.document());
        let content = |file: &Embedded| Content::Bytes(Arc::from(file.bytes));
        let files = now
            .into_iter()
            .zip(embedded)
            .map(|(entry, file)| File { entry, content: content(file) })
            .collect();
        let raw = Raw {
            id,
            space: Space::System,
            kind,
            path: shown,
            main: name,
            category: Some(category),
            files,
            reading,
        };
        let meaning = raw.understand().map_err(|error| raw.judge(&then, id.as_str(), error))?;
        let recorded = raw.integrity(&meaning, &then)?;
        let integrity = if is_whole { recorded } else { raw.integrity(&meaning, &raw.entries())? };
        let identity = Identity::Recorded { integrity: recorded, files: then };
        let tool = Arc::new(raw.finish_as(integrity, meaning, identity));
        caches.tools.insert(key, Arc::clone(&tool));
        Ok(tool)
    }

    /// The files whose path starts with `prefix`: they stand together.
    fn below(&self, prefix: &str) -> &'static [Embedded] {
        let start = self.files.partition_point(|file| file.path < prefix);
        let rest = self.files.get(start..).unwrap_or_default();
        let count = rest.iter().take_while(|file| file.path.starts_with(prefix)).count();
        rest.get(..count).unwrap_or_default()
    }
}

impl Embedded {
    /// What it said when the binary was built; `None` where that was patched or never read.
    fn document(&self) -> Option<Document> {
        let Reading { json, sha256 } = self.reading.as_ref()?;
        let is_whole = Digest::parse(sha256).is_ok_and(|then| then == Digest::of(json));
        let value = is_whole.then(|| serde_json::from_slice(json).ok()).flatten()?;
        Some(Document::known(value, std::str::from_utf8(self.bytes).ok()?))
    }

    fn entry_now(&self, path: &str) -> FileEntry {
        FileEntry { path: path.to_owned(), sha256: Digest::of(self.bytes), is_executable: self.is_executable }
    }

    fn entry_then(&self, path: &str) -> Result<FileEntry, SpaceError> {
        // A digest that is no digest was patched too.
        let sha256 = Digest::parse(self.sha256).map_err(|error| SpaceError::Unfit {
            tool: format!("system:{}", self.path),
            why: error.to_string(),
        })?;
        Ok(FileEntry { path: path.to_owned(), sha256, is_executable: self.is_executable })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kiwi_model::{ErrorKind, Explain as _, yaml};

    const MANIFEST_TEXT: &[u8] = b"tool_id: probe\nversion: \"1.0.0\"\ntool_type: primitive\n";

    fn read(yaml: &[u8]) -> serde_json::Value {
        yaml::parse(yaml).expect("document").value
    }

    fn system(manifest: &[u8], runner: &[u8], patch: impl FnOnce(&mut Vec<u8>, &mut Vec<u8>)) -> System {
        let digest = |bytes: &[u8]| -> &'static str { Digest::of(bytes).to_string().leak() };
        let (manifest_then, runner_then) = (digest(manifest), digest(runner));
        let json: &'static [u8] = read(manifest).to_string().into_bytes().leak();
        let reading = Reading { json, sha256: digest(json) };
        let (mut manifest, mut runner) = (manifest.to_vec(), runner.to_vec());
        patch(&mut manifest, &mut runner);
        let file = |path, bytes: Vec<u8>, sha256, reading| Embedded {
            path,
            bytes: bytes.leak(),
            sha256,
            is_executable: false,
            reading,
        };
        let files = vec![
            file("tools/core/probe/run/main.py", runner, runner_then, None),
            file("tools/core/probe/tool.yaml", manifest, manifest_then, Some(reading)),
        ];
        System { files: files.leak(), tools: &[("probe", "tools/core/probe/tool.yaml")] }
    }

    fn load(system: &System) -> Result<Arc<Tool>, SpaceError> {
        let id = ToolId::parse("probe").expect("id");
        system
            .candidates(&id, &Caches::new())
            .map(|found| found.into_iter().next().and_then(|found| found.loaded).expect("loaded"))
    }

    #[test]
    fn an_untouched_tool_is_what_was_recorded() {
        let tool = load(&system(MANIFEST_TEXT, b"print()", |_, _| {})).expect("tool");
        let Identity::Recorded { integrity, files } = &tool.identity else { panic!("{:?}", tool.identity) };
        assert_eq!(*integrity, tool.integrity);
        assert_eq!(
            files.iter().map(|file| file.path.as_str()).collect::<Vec<_>>(),
            ["run/main.py", "tool.yaml"]
        );
        assert_eq!(
            (tool.category.as_str(), tool.path.as_str()),
            ("core", "system:tools/core/probe/tool.yaml")
        );
    }

    #[test]
    fn any_patched_byte_shows_and_names_its_file() {
        for at in 0..MANIFEST_TEXT.len() {
            match load(&system(MANIFEST_TEXT, b"print()", |manifest, _| manifest[at] ^= 1)) {
                Ok(tool) => {
                    let Identity::Recorded { integrity, files } = &tool.identity else { panic!() };
                    assert_ne!(*integrity, tool.integrity);
                    let now: Vec<FileEntry> = tool.files.iter().map(|file| file.entry.clone()).collect();
                    let changed: Vec<String> = changes(files, &now).iter().map(ToString::to_string).collect();
                    assert_eq!(changed, ["`tool.yaml` changed"]);
                }
                Err(error) => {
                    assert_eq!(error.kind(), ErrorKind::IntegrityMismatch, "{error}");
                    assert!(error.to_string().contains("`tool.yaml`"), "{error}");
                }
            }
        }
        let tool = load(&system(MANIFEST_TEXT, b"print()", |_, runner| runner[3] ^= 1)).expect("tool");
        assert!(
            matches!(&tool.identity, Identity::Recorded { integrity, .. } if *integrity != tool.integrity)
        );
    }

    #[test]
    fn a_patched_file_is_not_handed_out() {
        let system = system(MANIFEST_TEXT, b"print()", |_, runner| runner[0] ^= 1);
        assert_eq!(system.file("tools/core/probe/tool.yaml").expect("file"), Some(MANIFEST_TEXT));
        assert_eq!(
            system.file("tools/core/probe/run/main.py").map_err(|error| error.kind()),
            Err(ErrorKind::IntegrityMismatch)
        );
        assert_eq!(system.file("nope").expect("none"), None);
    }

    #[test]
    fn what_was_read_at_build_time_is_what_reading_gives_now() {
        let is_manifest = |path| Kind::of_file(path).is_some_and(|(_, kind)| kind == Kind::Yaml);
        let tools: Vec<&str> =
            table::TOOLS.iter().map(|(_, path)| *path).filter(|path| is_manifest(path)).collect();
        assert!(tools.len() >= 9, "{tools:?}");
        for file in table::FILES.iter().filter(|file| tools.contains(&file.path)) {
            let built = file.document().unwrap_or_else(|| panic!("{} was not read", file.path));
            let parsed = yaml::parse(file.bytes).unwrap_or_else(|error| panic!("{}: {error}", file.path));
            // The text is compared too, for the places in it and for the order and spelling of what is in the value.
            assert_eq!(built, parsed, "{}", file.path);
            assert_eq!(built.value.to_string(), parsed.value.to_string(), "{}", file.path);
            for pointer in ["/tool_id", "/version", "/config", "/validation/child_schemas/0", "/nowhere"] {
                assert_eq!(built.place(pointer), parsed.place(pointer), "{} {pointer}", file.path);
            }
            assert_ne!(built.place("/version").line, 1, "{}", file.path);
        }
    }

    #[test]
    fn a_patched_reading_is_passed_over_for_the_manifest_itself() {
        let whole = system(MANIFEST_TEXT, b"print()", |_, _| {});
        let expect = load(&whole).expect("tool");
        let json = read(MANIFEST_TEXT).to_string().replace("primitive", "something");
        let [runner, manifest] = whole.files else { panic!("two files") };
        let sha256 = manifest.reading.as_ref().expect("reading").sha256;
        let reading = Some(Reading { json: json.into_bytes().leak(), sha256 });
        let copy = |file: &Embedded, reading| Embedded {
            path: file.path,
            bytes: file.bytes,
            sha256: file.sha256,
            is_executable: file.is_executable,
            reading,
        };
        let files = vec![copy(runner, None), copy(manifest, reading)].leak();
        let tool = load(&System { files, tools: whole.tools }).expect("tool");
        assert_eq!((&tool.document, tool.integrity), (&expect.document, expect.integrity));
    }

    #[test]
    fn what_is_embedded_loads() {
        let system = System::embedded();
        assert!(system.tools.is_sorted() && system.files.is_sorted_by_key(|file| file.path));
        let caches = Caches::new();
        for (id, path) in system.tools() {
            let id = ToolId::parse(id).expect("id");
            assert!(system.has(&id));
            let tool = system.load(&id, path, &caches).unwrap_or_else(|error| panic!("{error}"));
            assert!(
                matches!(&tool.identity, Identity::Recorded { integrity, .. } if *integrity == tool.integrity),
                "{path}"
            );
        }
    }
}
