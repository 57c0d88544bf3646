//! Warm plans: the real catalogue over real folders, asked again and again by a process that stays.

use anyhow::{Context, Result, bail};
use kiwi_chain::{Caches, Catalog, Mode, Pins, plan};
use kiwi_model::{Space, ToolId, ToolRef};
use kiwi_space::{Locations, Spaces};
use std::path::Path;

use crate::fixture::Project;
use crate::stats::{Samples, interleave, time};

const TURNS: usize = 20_000;

/// A process that stays: a catalogue and its caches.
pub struct Planner {
    spaces: Spaces,
    caches: Caches,
    ask: ToolRef,
}

impl Planner {
    /// Opens a project and plans once, so that everything after is warm.
    pub fn open(project: &Project) -> Result<Self> {
        let spaces = spaces(project)?;
        let ask = ToolRef::parse("data_processor").map_err(|fault| anyhow::anyhow!(fault.message))?;
        let planner = Self { spaces, caches: Caches::default(), ask };
        planner.once()?;
        Ok(planner)
    }

    /// One plan, required to be fit to run: resolved, verified, validated, merged.
    pub fn once(&self) -> Result<()> {
        let plan = plan(&self.spaces, &self.ask, Pins::none(), Mode::Strict, &self.caches)?;
        plan.require()?;
        match plan.links().len() {
            3 => Ok(()),
            other => bail!("the chain has {other} links, not 3"),
        }
    }
}

/// Plans of a three-link chain.
pub fn warm(planner: &Planner) -> Result<Samples> {
    let mut samples = Samples::default();
    for turn in 0..TURNS + TURNS / 10 {
        let (took, ()) = time(|| planner.once())?;
        if turn >= TURNS / 10 {
            samples.push(took);
        }
    }
    Ok(samples)
}

/// The same with few tools in the space, and with many.
pub fn few_and_many(few: &Planner, many: &Planner) -> Result<(Samples, Samples)> {
    interleave(TURNS, || few.once(), || many.once())
}

/// The digest that the catalogue takes of the one large file of a tool, with nothing remembered.
pub fn digest_of_large(project: &Project, tool: &str, path: &str) -> Result<String> {
    let spaces = spaces(project)?;
    let candidates = spaces.candidates(&ToolId::parse(tool)?, Space::Project)?;
    let tool = spaces.load(candidates.first().context("the tool is not there")?)?;
    Ok(tool.file(path).context("the file is not there")?.entry.sha256.hex())
}

/// The spaces of a project and of its user.
pub fn spaces(project: &Project) -> Result<Spaces> {
    let root: &Path = &project.root();
    Ok(Spaces::open(Locations { project: None, cwd: root.to_owned(), user: Some(project.home()) })?)
}
