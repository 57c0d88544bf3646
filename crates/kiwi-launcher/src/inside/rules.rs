//! Landlock: the kernel's second opinion on every file that is opened inside.

use rustix::fd::AsFd;
use rustix::fs::{FileType, Mode, OFlags};
use rustix::io::{Errno, Result};

use crate::kernel::landlock::{self, Forbidden, NETWORK, OTHERS, access};
use crate::plan::{SETTINGS, Sandbox, Shown};

/// What must be enforced. Later kernels know more, which is used where it is there: truncating, connecting, questions to
/// devices, sockets and signals of others.
const LEAST: u32 = 2;

/// Rules that are not yet in force.
pub struct Rules {
    rules: landlock::Rules,
    /// What is forbidden at files and folders unless it is allowed.
    handled: u64,
}

impl Rules {
    /// Writes down that everything is forbidden but what is shown.
    pub fn write(sandbox: &Sandbox) -> Result<Self> {
        let rules = Self::begin(sandbox.sockets)?;
        let has_settings = sandbox.has_settings();
        if has_settings {
            // Every setting was put there for the tool to read; one rule for all of them.
            rules.allow(SETTINGS.as_bytes(), access::READ)?;
        }
        sandbox.view.iter().try_for_each(|shown| rules.show(shown, has_settings))?;
        Ok(rules)
    }

    /// Adds what `sandbox` shows beyond that.
    pub fn and(self, sandbox: &Sandbox, shown: &[&Shown]) -> Result<Self> {
        let has_settings = sandbox.has_settings();
        shown.iter().try_for_each(|shown| self.show(shown, has_settings))?;
        Ok(self)
    }

    /// Allows to empty this folder and what lies in it.
    pub fn let_go(&self, folder: impl AsFd) -> Result<()> {
        self.rules.allow(folder, access::READ_FOLDER | access::REMOVE_FILE | access::REMOVE_FOLDER)
    }

    /// Puts them in force, for this process and all it will start.
    pub fn enforce(&self) -> Result<()> {
        self.rules.enforce()
    }

    /// Forbids everything but what every sandbox has.
    fn begin(sockets: bool) -> Result<Self> {
        let version = landlock::version()?;
        if version < LEAST {
            return Err(Errno::OPNOTSUPP);
        }
        let handled = access::known(version);
        let rules = landlock::Rules::forbidding(Forbidden {
            files: handled,
            network: if !sockets && version >= 4 { NETWORK } else { 0 },
            others: if version >= 6 { OTHERS } else { 0 },
        })?;
        let rules = Self { rules, handled };
        // Folders may be listed: there are none but those that were made for the tool.
        rules.allow(b"/", access::READ_FOLDER)?;
        rules.allow(b"/proc", access::READ_FILE | access::READ_FOLDER)?;
        // Nothing lies there but devices that every sandbox has, and a folder of the tool's own.
        let devices = access::READ_FILE | access::WRITE_FILE | access::TRUNCATE | access::ASK_DEVICES;
        rules.allow(b"/dev", devices)?;
        Ok(rules)
    }

    /// Allows what is shown, but for settings where they are allowed already.
    fn show(&self, shown: &Shown, has_settings: bool) -> Result<()> {
        let allowed = match shown {
            Shown::Bind { write: true, .. } | Shown::Private { .. } => {
                self.handled & !(access::MAKE_CHARACTER_DEVICE | access::MAKE_BLOCK_DEVICE)
            }
            Shown::Entries { .. } => {
                access::MAKE_FILE
                    | access::MAKE_FOLDER
                    | access::REMOVE_FILE
                    | access::REMOVE_FOLDER
                    | access::WRITE_FILE
                    | access::TRUNCATE
                    | access::READ_FOLDER
            }
            Shown::Bind { .. } if !has_settings || !shown.is_setting() => access::READ,
            Shown::File { .. } | Shown::Copy { .. } if !has_settings => access::READ,
            _ => return Ok(()),
        };
        self.allow(shown.place(), allowed)
    }

    /// What is not there needs no rule.
    fn allow(&self, path: &[u8], allowed: u64) -> Result<()> {
        let Ok(place) = rustix::fs::open(path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty()) else {
            return Ok(());
        };
        let is_folder =
            rustix::fs::fstat(&place).is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode).is_dir());
        let possible = if is_folder { self.handled } else { self.handled & access::OF_FILES };
        match allowed & possible {
            // The kernel takes no rule that allows nothing.
            0 => Ok(()),
            allowed => self.rules.allow(place, allowed),
        }
    }
}
