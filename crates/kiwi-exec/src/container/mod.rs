//! Containers: engines are found, images are made ready, and what a killed Kiwi left running is removed.
//!
//! An engine's client that is killed leaves its container running, because the container is not its child. So a helper
//! of the binary ([`container_main`]) runs the client under the launcher, and whatever ends the helper in order ends
//! the container first. If even the helper is killed, the container's name tells whose it was, and the next container
//! call of the same user removes it.
//!
//! An engine may also build the walls of a sandbox ([`ContainerWalls`]); there the launcher runs the client itself.

mod ask;
mod client;
mod engine;
mod error;
mod image;
mod keep;
mod life;
mod log;
mod reap;
mod run;
mod walls;

use std::path::PathBuf;

use crate::process::Launcher;

pub use ask::telling;
pub use client::Client;
pub use engine::{Engine, holds_limits};
pub use error::ContainerError;
pub use image::ImageSource;
pub use keep::{KeptImage, Leftover};
pub use kiwi_launcher::plan::EngineKind;
pub use life::Life;
pub use run::{ContainerEnd, container_main};
pub use walls::ContainerWalls;

/// How containers are prepared and looked after.
#[derive(Debug, Clone)]
pub struct Containers {
    /// What runs the engines' clients.
    pub launcher: Launcher,
    /// Where `docker` and `podman` are looked for.
    pub search_path: String,
    /// The environment their clients get.
    pub env: Vec<(String, String)>,
    /// The folder that remembers when built images were last used.
    pub uses: PathBuf,
}
