//! An engine that builds the walls of sandboxes. Its containers show what a sandbox shows and nothing of an image, so the
//! image has nothing in it.

use std::path::PathBuf;

use super::ask::{Errand, last_line};
use super::error::ContainerError;
use super::{Containers, Engine, EngineKind};
use crate::error::ExecError;
use crate::process::Launcher;

/// The image, which all users share. The name has a host that is no registry, so nobody ever looks for it elsewhere.
const IMAGE: &str = "localhost/kiwi-nothing:1";
/// Two blocks of zeros: an archive with nothing in it.
const NOTHING: [u8; 1024] = [0; 1024];

/// Which engine, and how its client is found and spoken to.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ContainerWalls {
    /// Which one.
    pub kind: EngineKind,
    /// Where its client is looked for.
    pub search_path: String,
    /// The environment the client gets.
    pub env: Vec<(String, String)>,
    /// The folder that remembers when images were last used.
    pub uses: PathBuf,
}

impl ContainerWalls {
    /// The engine's client, and the name of the image, which is there.
    pub async fn ready(&self, launcher: &Launcher) -> Result<(Engine, &'static str), ExecError> {
        let Self { kind, search_path, env, uses } = self.clone();
        let containers = Containers { launcher: launcher.clone(), search_path, env, uses };
        let engine = containers.engine(kind.as_str())?;
        let image = containers.nothing(&engine).await?;
        Ok((engine, image))
    }
}

impl Containers {
    /// This engine as a builder of walls.
    pub fn walls(&self, kind: EngineKind) -> ContainerWalls {
        let Self { search_path, env, uses, .. } = self.clone();
        ContainerWalls { kind, search_path, env, uses }
    }

    /// The image with nothing in it. It is asked for each time, because anybody may have removed it since.
    async fn nothing(&self, engine: &Engine) -> Result<&'static str, ExecError> {
        if self.has_image(engine, IMAGE).await? {
            return Ok(IMAGE);
        }
        let words = ["import", "-", IMAGE];
        let imported = self.ask(engine, Errand { stdin: NOTHING.to_vec(), ..Errand::of(&words) }).await?;
        if imported.exit.is_success() {
            return Ok(IMAGE);
        }
        let (engine, why) = (engine.kind.as_str(), last_line(&imported));
        Err(ContainerError::EngineSilent { engine, why }.into())
    }
}
