//! Which lockfiles a command is about.

use kiwi_model::{ErrorKind, Fault, ToolRef};
use kiwi_space::LockEntry;

use super::everywhere;
use crate::context::Context;

/// Tools by name, or everything.
#[derive(Debug, clap::Args)]
#[group(skip)]
pub struct Targets {
    /// Which tools, and after `@` which versions of them; every lockfile by default.
    tools: Vec<String>,
    /// Every lockfile.
    #[arg(long, conflicts_with = "tools")]
    all: bool,
    /// Only those of this category, and of those below it.
    #[arg(long, short, value_name = "CATEGORY")]
    category: Option<String>,
}

impl Targets {
    /// The lockfiles that are meant. A tool that has none is an error: whoever names it expects one.
    pub fn entries(&self, context: &Context) -> Result<Vec<LockEntry>, Fault> {
        let asks = self.tools.iter().map(|tool| ToolRef::parse(tool)).collect::<Result<Vec<_>, _>>()?;
        let meant = |ask: &ToolRef, entry: &LockEntry| {
            let version = &entry.name.version;
            entry.name.tool_id == ask.id
                && ask.requirement.as_ref().is_none_or(|asked| asked.matches(version))
        };
        let mut entries: Vec<LockEntry> = everywhere(context, self.category.as_deref())?.collect();
        if let Some(ask) = asks.iter().find(|ask| !entries.iter().any(|entry| meant(ask, entry))) {
            return Err(Fault::new(ErrorKind::LockfileMissing, format!("`{ask}` has no lockfile"))
                .with_hint(format!("`kiwi lockfile freeze {}` makes one", ask.id)));
        }
        entries.retain(|entry| asks.is_empty() || asks.iter().any(|ask| meant(ask, entry)));
        Ok(entries)
    }
}
