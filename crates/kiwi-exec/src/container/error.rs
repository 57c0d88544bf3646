//! What can be missing for a container.

use kiwi_model::{ErrorKind, Explain, Isolation};
use serde_json::{Value, json};

/// Why a container cannot run.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ContainerError {
    /// The engine is installed and does not answer.
    #[error("{engine} does not answer: {why}")]
    EngineSilent {
        /// Which engine.
        engine: &'static str,
        /// What its client said.
        why: String,
    },
    /// The image is not here and could not be had.
    #[error("image `{image}` is not here{}", why.as_ref().map(|why| format!(": {why}")).unwrap_or_default())]
    ImageMissing {
        /// Which engine.
        engine: &'static str,
        /// The image.
        image: String,
        /// Why it could not be pulled, where that was tried.
        why: Option<String>,
    },
    /// The image could not be built.
    #[error("the image cannot be built: {why}")]
    BuildFailed {
        /// Which engine.
        engine: &'static str,
        /// The last line of what the builder wrote.
        why: String,
        /// The last lines of it.
        output: String,
    },
    /// A limit that the engine would only pretend to hold.
    #[error("{engine} cannot hold {limits} for this user")]
    LimitsNotHeld {
        /// Which engine.
        engine: &'static str,
        /// Which limits.
        limits: String,
    },
    /// The engine was to build the walls of a sandbox.
    #[error("isolation level `{level}` cannot be enforced here: {why}")]
    NoWalls {
        /// Which engine.
        engine: &'static str,
        /// The level asked for.
        level: Isolation,
        /// What is missing.
        why: String,
    },
    /// The package has no such file to build from.
    #[error("the package has no `{path}` to build an image from")]
    NoBuildFile {
        /// What is missing.
        path: String,
    },
}

impl Explain for ContainerError {
    fn kind(&self) -> ErrorKind {
        match self {
            Self::EngineSilent { .. } | Self::ImageMissing { .. } | Self::BuildFailed { .. } => {
                ErrorKind::MissingRequirement
            }
            Self::LimitsNotHeld { .. } | Self::NoWalls { .. } => ErrorKind::SandboxUnavailable,
            Self::NoBuildFile { .. } => ErrorKind::InvalidManifest,
        }
    }

    fn hint(&self) -> Option<String> {
        Some(match self {
            Self::EngineSilent { engine, .. } => {
                format!("`{engine} info` shows what is wrong; Docker needs its service to run")
            }
            Self::ImageMissing { engine, image, .. } => {
                format!(
                    "`{engine} pull {image}` gets it where a registry can be reached; `config.build` makes one"
                )
            }
            Self::BuildFailed { .. } => "the output of the build is in the details".into(),
            Self::LimitsNotHeld { .. } => {
                "rootless limits need a system with cgroups v2; Docker and a Podman of root hold them everywhere".into()
            }
            Self::NoWalls { engine, .. } => {
                format!(
                    "`{engine} info` shows what is wrong; `sandbox.backend` in `~/.ai/config/kiwi.toml` says who builds walls, and `auto` means `bwrap` or Kiwi itself"
                )
            }
            Self::NoBuildFile { .. } => "`config.build.context` names a folder of the package".into(),
        })
    }

    fn details(&self) -> Value {
        match self {
            Self::EngineSilent { engine, why } => json!({"engine": engine, "why": why}),
            Self::ImageMissing { engine, image, .. } => json!({"engine": engine, "image": image}),
            Self::BuildFailed { engine, output, .. } => json!({"engine": engine, "output": output}),
            Self::LimitsNotHeld { engine, limits } => json!({"engine": engine, "limits": limits}),
            Self::NoWalls { engine, level, why } => {
                json!({"engine": engine, "level": level.as_str(), "why": why})
            }
            Self::NoBuildFile { path } => json!({"path": path}),
        }
    }
}
