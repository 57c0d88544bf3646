//! Landlock: the kernel's second opinion on every file that is opened inside.

use landlock::{
    ABI, Access, AccessFs, AccessNet, BitFlags, CompatLevel, Compatible, Ruleset, RulesetAttr,
    RulesetCreated, RulesetCreatedAttr, RulesetError, RulesetStatus, Scope, path_beneath_rules,
};
use std::io;

use crate::sandbox::{SETTINGS, Sandbox, Shown};

/// What must be enforced. Later kernels know more, which is used where it is there: truncating, device calls, scopes.
const LEAST: ABI = ABI::V2;
const BEST: ABI = ABI::V6;

/// Rules that are not yet in force.
pub struct Rules(RulesetCreated);

impl Rules {
    /// Writes down that everything is forbidden but what is shown.
    pub fn write(sandbox: &Sandbox) -> io::Result<Self> {
        let view: Vec<&Shown> = sandbox.view.iter().collect();
        let has_settings = sandbox.has_settings();
        begin(sandbox.sockets)
            .and_then(|rules| if has_settings { allow_settings(rules) } else { Ok(rules) })
            .and_then(|rules| allow(rules, &view, has_settings))
            .map(Self)
            .map_err(|error| errno(&error))
    }

    /// Adds what `sandbox` shows beyond that.
    pub fn and(self, sandbox: &Sandbox, shown: &[&Shown]) -> io::Result<Self> {
        allow(self.0, shown, sandbox.has_settings()).map(Self).map_err(|error| errno(&error))
    }

    /// Puts them in force, for this process and all it will start.
    pub fn enforce(self) -> io::Result<()> {
        match self.0.restrict_self() {
            Ok(status) if status.ruleset != RulesetStatus::NotEnforced => Ok(()),
            Ok(_) => Err(rustix::io::Errno::OPNOTSUPP.into()),
            Err(error) => Err(errno(&error)),
        }
    }
}

/// Forbids everything but what every sandbox has.
fn begin(sockets: bool) -> Result<RulesetCreated, RulesetError> {
    let ruleset = Ruleset::default()
        .set_compatibility(CompatLevel::HardRequirement)
        .handle_access(AccessFs::from_all(LEAST))?
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(AccessFs::from_all(BEST))?
        .scope(Scope::from_all(BEST))?;
    let ruleset = if sockets { ruleset } else { ruleset.handle_access(AccessNet::from_all(BEST))? };
    let devices: BitFlags<AccessFs> =
        AccessFs::ReadFile | AccessFs::WriteFile | AccessFs::Truncate | AccessFs::IoctlDev;
    ruleset
        .create()?
        // Folders may be listed: there are none but those that were made for the tool.
        .add_rules(path_beneath_rules(["/"], AccessFs::ReadDir))?
        .add_rules(path_beneath_rules(["/proc"], AccessFs::ReadFile | AccessFs::ReadDir))?
        // Nothing lies there but devices that every sandbox has, and a folder of the tool's own.
        .add_rules(path_beneath_rules(["/dev"], devices))
}

/// Every setting was put there for the tool to read; one rule for all of them.
fn allow_settings(rules: RulesetCreated) -> Result<RulesetCreated, RulesetError> {
    rules.add_rules(path_beneath_rules([SETTINGS], AccessFs::from_read(BEST)))
}

/// Allows what is shown, but for settings where they are allowed already.
fn allow(rules: RulesetCreated, view: &[&Shown], has_settings: bool) -> Result<RulesetCreated, RulesetError> {
    let read = AccessFs::from_read(BEST);
    let nodes = AccessFs::MakeChar | AccessFs::MakeBlock;
    let entries = AccessFs::MakeReg
        | AccessFs::MakeDir
        | AccessFs::RemoveFile
        | AccessFs::RemoveDir
        | AccessFs::WriteFile
        | AccessFs::Truncate
        | AccessFs::ReadDir;
    let is_entries = |shown: &&Shown| matches!(shown, Shown::Entries { .. });
    let is_readable = |shown: &&Shown| match shown {
        Shown::Bind { write: true, .. } => false,
        Shown::Bind { .. } => !has_settings || !shown.at().starts_with(SETTINGS),
        Shown::File { .. } | Shown::Copy { .. } => !has_settings,
        _ => false,
    };
    let view = || view.iter().copied();
    let writable = view().filter(|shown| shown.is_writable() && !is_entries(shown)).map(Shown::at);
    rules
        .add_rules(path_beneath_rules(view().filter(is_readable).map(Shown::at), read))?
        .add_rules(path_beneath_rules(writable, AccessFs::from_all(BEST) & !nodes))?
        .add_rules(path_beneath_rules(view().filter(is_entries).map(Shown::at), entries))
}

fn errno(error: &RulesetError) -> io::Error {
    let mut cause: Option<&(dyn std::error::Error + 'static)> = Some(error);
    while let Some(error) = cause {
        if let Some(found) = error.downcast_ref::<io::Error>() {
            return found
                .raw_os_error()
                .map_or_else(|| io::Error::other("landlock"), io::Error::from_raw_os_error);
        }
        cause = error.source();
    }
    rustix::io::Errno::OPNOTSUPP.into()
}
