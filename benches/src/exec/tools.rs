//! Whole tools: cold, as a person at a prompt has them, and warm, as a client of a server has them.

use anyhow::{Result, bail};
use std::path::{Path, PathBuf};
use std::process::Command;

use super::Programs;
use super::answering::Answering;
use super::uv::Uv;
use super::warm::Warm;
use super::words::{self, Words};
use crate::cold::{find, once};
use crate::fixture::Project;
use crate::stats::{Samples, Side, rotate, side};

const COLD_TURNS: usize = 150;
const WARM_TURNS: usize = 60;

/// Processes from start to end.
pub struct Cold {
    pub python: Samples,
    pub python_itself: Samples,
    pub uv_locked: Samples,
    pub uv_with: Samples,
    pub bash: Samples,
    pub bash_itself: Samples,
}

/// Calls to what stays.
pub struct Answered {
    pub kiwi: Samples,
    /// The peer's own handler, in its process, as Kiwi's kernel is in this one.
    pub handler: Samples,
    /// The peer as its clients have it.
    pub stdio: Samples,
    /// The same script by its interpreter, without anybody.
    pub itself: Samples,
}

/// A project with a Python and a Bash tool.
pub struct Tools {
    project: Project,
    words: Words,
    scratch: PathBuf,
}

impl Tools {
    /// Writes them; the environment of the Python tool is made here, once.
    pub fn prepare(kiwi: &Path, scratch: PathBuf) -> Result<Self> {
        let project = Project::write(scratch.join("kiwi"), 0)?;
        let words = Words::prepare(kiwi, &project, scratch.join("words"))?;
        Ok(Self { project, words, scratch })
    }

    /// All processes in turn.
    pub fn cold(&self, kiwi: &Path, programs: &Programs) -> Result<Cold> {
        let (project, words) = (&self.project, &self.words);
        let uv = Uv::prepare(&programs.uv, words, self.scratch.join("uv-cache"))?;
        let bash = find("bash")?;
        let samples = rotate(
            COLD_TURNS,
            &mut [
                side(|| words::through(kiwi, project)),
                side(|| words.itself()),
                side(|| uv.locked()),
                side(|| uv.with()),
                side(|| once(project.command(kiwi).args(["run", "hello"]), true)),
                side(|| self.bash_itself(&bash)),
            ],
        )?;
        let Ok([python, python_itself, uv_locked, uv_with, bash, bash_itself]) =
            <[Samples; 6]>::try_from(samples)
        else {
            bail!("a side was not measured");
        };
        Ok(Cold { python, python_itself, uv_locked, uv_with, bash, bash_itself })
    }

    /// A warm kernel and the warm peer in turn: the Python tool, and the Bash tool.
    pub fn warm(&self, kiwi: &Path, programs: &Programs) -> Result<(Answered, Answered)> {
        let warm = Warm::open(kiwi, &self.project)?;
        let scratch = self.scratch.join("peer");
        let mut peer = Answering::start(Command::new(&programs.python).arg(&programs.peer).arg(scratch))?;
        let python = || warm.call(words::TOOL, &[("name", "kiwi")]);
        let python = answered(&mut peer, "python", python, || self.words.itself())?;
        let bash = find("bash")?;
        let bash = answered(&mut peer, "bash", || warm.call("hello", &[]), || self.bash_itself(&bash))?;
        Ok((python, bash))
    }

    /// The script of the Bash tool, without Kiwi.
    fn bash_itself(&self, bash: &Path) -> Result<()> {
        let script = self.project.root().join(".ai/tools/demo/hello.sh");
        once(Command::new(bash).args(["-eu", "-o", "pipefail"]).arg(script), true)
    }
}

fn answered(
    peer: &mut Answering,
    tool: &str,
    kiwi: impl FnMut() -> Result<()>,
    itself: impl FnMut() -> Result<()>,
) -> Result<Answered> {
    let peer = std::cell::RefCell::new(peer);
    let ask = |way: &str| {
        let (peer, what) = (&peer, format!("{way} {tool}"));
        Box::new(move || peer.borrow_mut().ask(&what)) as Side<'_>
    };
    let samples = rotate(WARM_TURNS, &mut [side(kiwi), ask("handler"), ask("stdio"), side(itself)])?;
    let Ok([kiwi, handler, stdio, itself]) = <[Samples; 4]>::try_from(samples) else {
        bail!("a side was not measured");
    };
    Ok(Answered { kiwi, handler, stdio, itself })
}
