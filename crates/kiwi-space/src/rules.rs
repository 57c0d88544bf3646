//! The rule files of the spaces: `rules/*.kappa`, read whole or not at all.

use kiwi_model::Space;
use std::io::Read as _;
use std::path::Path;
use std::time::SystemTime;

use crate::error::SpaceError;
use crate::root::Root;
use crate::spaces::{Home, Spaces};
use crate::stamp::{Stamp, now};

const FOLDER: &str = "rules";
const SUFFIX: &str = ".kappa";
/// One byte more than a rule file may have, so that too many are seen as such.
const MOST_BYTES: u64 = (1 << 20) + 1;

/// One rule file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RuleText {
    /// Whose it is and what it is called: `project:rules/team.kappa`.
    pub name: String,
    /// What it says.
    pub bytes: Vec<u8>,
}

/// The rule files of one space, as they were at one moment.
#[derive(Debug, Clone, Default)]
pub struct RuleFolder {
    /// By name.
    pub texts: Vec<RuleText>,
    folder: Option<Stamp>,
    files: Vec<(String, Stamp)>,
    /// Whether any later change must show in the stamps.
    is_settled: bool,
}

impl Spaces {
    /// The rule files of a space. An entry that is no readable file is an error: what it would have said is not known.
    pub fn rules(&self, space: Space) -> Result<RuleFolder, SpaceError> {
        let Some(home) = self.home(space) else {
            let texts = if space == Space::System { self.system_rules()? } else { Vec::new() };
            return Ok(RuleFolder { texts, is_settled: true, ..RuleFolder::default() });
        };
        read(home)
    }

    /// Whether the rule files of a space are still what they were.
    pub fn has_rules(&self, space: Space, before: &RuleFolder) -> bool {
        let Some(home) = self.home(space) else { return true };
        before.is_settled
            && folder_stamp(&home.ai.join(FOLDER)).ok() == Some(before.folder)
            && before.files.iter().all(|(name, stamp)| file_stamp(&home.ai.join(name)).ok() == Some(*stamp))
    }

    fn system_rules(&self) -> Result<Vec<RuleText>, SpaceError> {
        let mut texts = Vec::new();
        for path in self.system_files(FOLDER).into_iter().filter(|path| path.ends_with(SUFFIX)) {
            let bytes = self.system_file(path)?.unwrap_or_default().to_vec();
            texts.push(RuleText { name: format!("system:{path}"), bytes });
        }
        Ok(texts)
    }
}

fn read(home: &Home) -> Result<RuleFolder, SpaceError> {
    let begun = now();
    let folder = home.ai.join(FOLDER);
    let stamp = folder_stamp(&folder)?;
    let mut names = Vec::new();
    if stamp.is_some() {
        for entry in std::fs::read_dir(&folder).map_err(|error| SpaceError::unreadable(&folder, error))? {
            let name = entry.map_err(|error| SpaceError::unreadable(&folder, error))?.file_name();
            // A name that is no text cannot be shown, but it can end like a rule file.
            if name.as_encoded_bytes().ends_with(SUFFIX.as_bytes()) {
                names.push(format!("{FOLDER}/{}", name.to_string_lossy()));
            }
        }
    }
    names.sort();
    let (mut texts, mut files) = (Vec::new(), Vec::new());
    if let Some(root) = Root::open(&home.ai)? {
        for name in names {
            let opened = root.open_file(&name)?;
            let mut bytes = Vec::new();
            let unreadable = |error| SpaceError::unreadable(root.absolute(&name), error);
            opened.file.take(MOST_BYTES).read_to_end(&mut bytes).map_err(unreadable)?;
            texts.push(RuleText { name: format!("{}:{name}", home.space.as_str()), bytes });
            files.push((name, Stamp::of_file(&opened.stat)));
        }
    }
    let is_settled = settled(stamp.iter().chain(files.iter().map(|(_, stamp)| stamp)), begun);
    Ok(RuleFolder { texts, folder: stamp, files, is_settled })
}

fn settled<'a>(mut stamps: impl Iterator<Item = &'a Stamp>, at: SystemTime) -> bool {
    stamps.all(|stamp| stamp.is_settled(at))
}

/// `None` where there is no such folder; an error where that cannot be told.
fn folder_stamp(path: &Path) -> Result<Option<Stamp>, SpaceError> {
    match rustix::fs::stat(path) {
        Ok(stat) => Ok(Some(Stamp::of_folder(&stat))),
        Err(rustix::io::Errno::NOENT) => Ok(None),
        Err(error) => Err(SpaceError::unreadable(path, error)),
    }
}

fn file_stamp(path: &Path) -> Result<Stamp, SpaceError> {
    rustix::fs::stat(path)
        .map(|stat| Stamp::of_file(&stat))
        .map_err(|error| SpaceError::unreadable(path, error))
}
