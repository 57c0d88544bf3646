//! Making an image ready: it is here, or it is built from the tool's own files, or it is pulled.

use kiwi_model::{Hasher, Piece, Text};
use std::os::fd::AsFd;

use super::ask::{Errand, last_line};
use super::error::ContainerError;
use super::{Containers, Engine};
use crate::environment::{Progress, last_words, lock, make_private};
use crate::error::ExecError;
use crate::process::{Finished, Package, PackageForm};

/// What built images are called. The name has a host that is no registry, so nobody ever looks for it elsewhere.
pub(super) const BUILT: &str = "localhost/kiwi-built";

/// Where an image comes from.
#[derive(Debug, Clone)]
pub enum ImageSource {
    /// A name.
    Named {
        /// The image.
        image: String,
        /// Whether it may be pulled when it is not here.
        may_pull: bool,
    },
    /// The verified files of a tool.
    Built {
        /// The tool's files.
        package: Package,
        /// The folder that is sent to the builder; empty for all files.
        context: String,
        /// The build file in it, if not `Dockerfile`.
        dockerfile: Option<String>,
    },
}

impl ImageSource {
    /// The name the image has or will have. A built one is named after everything that is in it.
    pub fn name(&self) -> String {
        match self {
            Self::Named { image, .. } => image.clone(),
            Self::Built { package, context, dockerfile } => {
                let mut hasher = Hasher::default();
                hasher.update(dockerfile.as_deref().unwrap_or("Dockerfile").as_bytes());
                let mut files: Vec<_> = package
                    .files
                    .iter()
                    .filter_map(|file| Some((within(&file.entry.path, context)?, &file.entry)))
                    .collect();
                files.sort_unstable_by_key(|(path, _)| *path);
                for (path, entry) in files {
                    hasher.update(format!("\n{path}\0{}{}", entry.sha256, entry.is_executable).as_bytes());
                }
                let digest: String = hasher.finish().hex().chars().take(32).collect();
                format!("{BUILT}:{digest}")
            }
        }
    }

    /// What the manifest itself gets wrong.
    pub fn check(&self) -> Result<(), ContainerError> {
        let Self::Built { package, context, dockerfile } = self else { return Ok(()) };
        let wanted = dockerfile.as_deref().unwrap_or("Dockerfile");
        let is_there = package.files.iter().any(|file| within(&file.entry.path, context) == Some(wanted));
        let path = || [trimmed(context), wanted].join("/").trim_start_matches('/').to_owned();
        if is_there { Ok(()) } else { Err(ContainerError::NoBuildFile { path: path() }) }
    }
}

impl Containers {
    /// Whether the image is here.
    pub async fn has_image(&self, engine: &Engine, image: &str) -> Result<bool, ExecError> {
        let format = "{{.Id}}";
        let found = self.ask(engine, Errand::of(&["image", "inspect", "--format", format, image])).await?;
        if found.exit.is_success() {
            return Ok(true);
        }
        let why = last_line(&found);
        let unknown = ["o such image", "image not known", "o such object"];
        if unknown.iter().any(|words| why.contains(words)) {
            return Ok(false);
        }
        Err(ContainerError::EngineSilent { engine: engine.kind.as_str(), why }.into())
    }

    /// The name of an image that is here. It is built or pulled when it was not; of several callers one does.
    pub async fn prepare(
        &self,
        engine: &Engine,
        source: &ImageSource,
        progress: Progress<'_>,
    ) -> Result<String, ExecError> {
        source.check()?;
        let image = source.name();
        if self.has_image(engine, &image).await? {
            return Ok(image);
        }
        match source {
            ImageSource::Named { may_pull: false, .. } => Err(missing(engine, image, None)),
            ImageSource::Named { .. } => {
                progress(&format!("pulling {image}"));
                let pulled = self.ask(engine, Errand::of(&["pull", "--", &image]).told(progress)).await?;
                if pulled.exit.is_success() {
                    return Ok(image);
                }
                Err(missing(engine, image, Some(last_line(&pulled))))
            }
            ImageSource::Built { package, context, dockerfile } => {
                make_private(&self.uses)?;
                let lock = lock(&self.uses.join(format!("{}.lock", tag(&image))), progress).await?;
                // Somebody else may have built it while we waited.
                if self.has_image(engine, &image).await? {
                    return Ok(image);
                }
                progress("building the image of the tool");
                let args = build_words(package.link, &image, context, dockerfile.as_deref());
                let package = Package { form: PackageForm::Folder, ..package.clone() };
                let errand = Errand {
                    args,
                    packages: vec![package],
                    progress: Some(progress),
                    lock: Some(lock.as_fd()),
                    ..Errand::default()
                };
                let built = self.ask(engine, errand).await?;
                if built.exit.is_success() { Ok(image) } else { Err(failed(engine, &built)) }
            }
        }
    }
}

fn build_words(link: usize, image: &str, context: &str, dockerfile: Option<&str>) -> Vec<Text> {
    let inside = |rest: &str| {
        let path = [trimmed(context), rest].join("/");
        Text(vec![Piece::Folder { link }, Piece::Literal(format!("/{}", path.trim_matches('/')))])
    };
    let owner = format!("kiwi.owner={}", rustix::process::getuid().as_raw());
    let mut words: Vec<Text> =
        ["build", "--force-rm", "--label", &owner, "--label", "kiwi.built=1", "-t", image]
            .into_iter()
            .map(Text::literal)
            .collect();
    if let Some(dockerfile) = dockerfile {
        words.extend([Text::literal("-f"), inside(dockerfile)]);
    }
    words.push(inside(""));
    words
}

fn missing(engine: &Engine, image: String, why: Option<String>) -> ExecError {
    ContainerError::ImageMissing { engine: engine.kind.as_str(), image, why }.into()
}

fn failed(engine: &Engine, built: &Finished) -> ExecError {
    let (why, output) = (last_line(built), last_words(built));
    ContainerError::BuildFailed { engine: engine.kind.as_str(), why, output }.into()
}

/// The part of an image's name that is unique among built ones.
pub(super) fn tag(image: &str) -> &str {
    image.rsplit(':').next().unwrap_or(image)
}

/// The path of a package's file as the builder sees it, if it sees it.
fn within<'a>(path: &'a str, context: &str) -> Option<&'a str> {
    match trimmed(context) {
        "" => Some(path),
        folder => path.strip_prefix(folder)?.strip_prefix('/'),
    }
}

fn trimmed(context: &str) -> &str {
    let context = context.trim_start_matches("./").trim_matches('/');
    if context == "." { "" } else { context }
}
