//! Where the verified bytes a process refers to will lie: in sealed memory or in a private folder.

use kiwi_model::{Content, Piece};
use std::collections::{BTreeMap, BTreeSet};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use crate::error::ExecError;
use crate::memfd::sealed_file;
use crate::order::absolute;
use crate::process::{Package, PackageForm, Process};
use crate::snapshot::{Snapshot, folder_of, inside, random_name};
use kiwi_launcher::wire::{Part, Raw};

/// The decision, before anything is written.
#[derive(Debug)]
pub struct Placement {
    /// The folder for this run, when one is needed.
    snapshot: Option<PathBuf>,
    /// Links whose files all go into the folder.
    folders: BTreeSet<usize>,
    /// Files that go into sealed memory each, in the order in which the tool inherits them.
    sealed: Vec<(usize, String)>,
}

/// The bytes in their places.
#[derive(Debug, Default)]
pub struct Placed {
    pub snapshot: Option<Snapshot>,
    pub sealed: Vec<OwnedFd>,
}

/// What a text refers to of one link.
#[derive(Default)]
struct Wanted<'a> {
    folder: bool,
    files: BTreeSet<&'a str>,
}

impl Placement {
    /// Decides from what the process's texts refer to; what nobody refers to is not placed.
    pub fn decide(process: &Process, scratch: &Path) -> Result<Self, ExecError> {
        let mut placement = Self { snapshot: None, folders: BTreeSet::new(), sealed: Vec::new() };
        for (link, wanted) in wanted(process) {
            let package = package(&process.packages, link)?;
            for path in &wanted.files {
                inside(path)?;
                if !package.files.iter().any(|file| file.entry.path == *path) {
                    return Err(ExecError::UnknownFile { link, path: (*path).to_owned() });
                }
            }
            // The leaf's files expect each other; of a runtime usually only its runner is wanted.
            let belong_together =
                package.form == PackageForm::Folder && (link == 0 || wanted.files.len() > 1);
            if wanted.folder || belong_together {
                placement.folders.insert(link);
            } else {
                placement.sealed.extend(wanted.files.into_iter().map(|path| (link, path.to_owned())));
            }
        }
        if !placement.folders.is_empty() {
            placement.snapshot = Some(folder_of(&absolute(scratch)?, &random_name()?));
        }
        Ok(placement)
    }

    /// The folder that will be made.
    pub fn snapshot(&self) -> Option<&Path> {
        self.snapshot.as_deref()
    }

    /// How the tool will spell a symbolic piece that stands for verified bytes.
    pub fn part(&self, link: usize, path: Option<&str>) -> Result<Part, ExecError> {
        let unknown = || ExecError::UnknownFile { link, path: path.unwrap_or_default().to_owned() };
        if self.folders.contains(&link) {
            let folder = self.snapshot.as_deref().ok_or_else(unknown)?.join(link.to_string());
            return Ok(Part::Text(Raw::of(path.map_or_else(|| folder.clone(), |path| folder.join(path)))));
        }
        let index = self.sealed.iter().position(|(of, name)| *of == link && Some(name.as_str()) == path);
        index.map(Part::Inherited).ok_or_else(unknown)
    }

    /// Whether putting the bytes in place may take long enough to be worth a thread.
    pub fn is_heavy(&self, packages: &[Package]) -> bool {
        const LIGHT: usize = 1 << 20;
        let is_wanted = |package: &&Package| {
            self.folders.contains(&package.link) || self.sealed.iter().any(|(link, _)| *link == package.link)
        };
        let sizes = packages.iter().filter(is_wanted).flat_map(|package| &package.files).map(|file| {
            match &file.content {
                Content::Bytes(bytes) => bytes.len(),
                Content::OnDisk(_) => LIGHT,
            }
        });
        sizes.fold(0, usize::saturating_add) >= LIGHT
    }

    /// Puts the bytes in place.
    pub fn fill(&self, packages: &[Package]) -> Result<Placed, ExecError> {
        let mut placed = Placed::default();
        if let Some(path) = &self.snapshot {
            let snapshot = placed.snapshot.insert(Snapshot::new(path.clone()));
            snapshot.create()?;
            for link in &self.folders {
                snapshot.add(package(packages, *link)?)?;
            }
        }
        for (link, path) in &self.sealed {
            let files = &package(packages, *link)?.files;
            let file = files.iter().find(|file| file.entry.path == *path);
            let file = file.ok_or_else(|| ExecError::UnknownFile { link: *link, path: path.clone() })?;
            placed.sealed.push(sealed_file(file)?);
        }
        Ok(placed)
    }
}

fn wanted(process: &Process) -> BTreeMap<usize, Wanted<'_>> {
    let mut wanted: BTreeMap<usize, Wanted<'_>> = BTreeMap::new();
    let texts = std::iter::once(&process.program)
        .chain(&process.args)
        .chain(process.env.iter().map(|(_, value)| value));
    for piece in texts.flat_map(|text| &text.0) {
        match piece {
            Piece::File { link, path } => {
                wanted.entry(*link).or_default().files.insert(path);
            }
            Piece::Folder { link } => wanted.entry(*link).or_default().folder = true,
            Piece::Literal(_) | Piece::Project | Piece::Kiwi => {}
        }
    }
    wanted
}

fn package(packages: &[Package], link: usize) -> Result<&Package, ExecError> {
    packages
        .iter()
        .find(|package| package.link == link)
        .ok_or(ExecError::UnknownFile { link, path: String::new() })
}
