//! A control group of the call's own, for limits that count everything the tool starts.
//!
//! **Memory.** Only a control group bounds the memory of several processes together. Limits of single processes do not:
//! `RLIMIT_AS` counts address space, of which Node.js or Java reserve gigabytes and use little, and a tool could pass
//! either by starting another process. So without a group a memory limit is refused.
//!
//! **Processes.** Where there is no group, `RLIMIT_NPROC` holds inside a sandbox of a user who is not root: since
//! Linux 5.14 it counts for each user namespace of its own, and a sandbox is one. It never binds the system's root, and
//! without a sandbox it would count everything else the user runs; there the limit is refused.
//!
//! The launcher joins the group, starts the tool, which is thereby born in it, and leaves. Folders are named after their
//! launcher, so that those of launchers that were killed can be told from others and removed.

use alloc::borrow::ToOwned;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::time::Duration;
use rustix::fd::OwnedFd;
use rustix::fs::Mode;
use rustix::io::{Errno, Result};

use crate::folder::random_name;
use crate::kernel::clock::pause;
use crate::kernel::files;
use crate::plan::Builder;
use crate::wire::{Launch, Limit, Report, Stage};

const PREFIX: &str = "kiwi-";
/// The controllers and their files: of version 1, of version 2, and for what need not be there.
const MEMORY: Controller = Controller {
    name: "memory",
    limit: Limit::Memory,
    files: ["memory.limit_in_bytes", "memory.max"],
    swap: [("memory.memsw.limit_in_bytes", None), ("memory.swap.max", Some(0))],
};
const PIDS: Controller = Controller {
    name: "pids",
    limit: Limit::Pids,
    files: ["pids.max", "pids.max"],
    swap: [("", None), ("", None)],
};

struct Controller {
    name: &'static str,
    limit: Limit,
    files: [&'static str; 2],
    /// A second file, and what to put there if not the limit itself.
    swap: [(&'static str, Option<u64>); 2],
}

/// The groups of one call. Dropping it removes them.
#[derive(Debug, Default)]
pub struct Group {
    made: Vec<String>,
    /// The way back into the groups the launcher came from.
    back: Vec<OwnedFd>,
    /// The file that bounds processes, and the bound without the launcher.
    pids: Option<(String, u64)>,
}

impl Group {
    /// Makes groups for the limits that need them and joins them.
    pub fn enter(launch: &Launch) -> core::result::Result<Self, Report> {
        let mut group = Self::default();
        if !launch.needs_group() {
            return Ok(group);
        }
        let limits = launch.limits;
        let read = |path: &str| text_of(path).unwrap_or_default();
        let places = Places { mounts: read("/proc/self/mountinfo"), own: read("/proc/self/cgroup") };
        if let Some(bytes) = limits.memory {
            let entered = group.enter_one(&MEMORY, bytes, &places);
            entered.map_err(Stage::Limit(MEMORY.limit).failed())?;
        }
        if let Some(count) = limits.pids {
            // Inside a sandbox its first process counts too, and the one of `bwrap` beside it.
            let residents = launch.sandbox.as_ref().map_or(0, |sandbox| match sandbox.builder {
                Builder::Native => 1,
                Builder::Bubblewrap(_) => 2,
                Builder::Container(_) => 0,
            });
            let most = count.saturating_add(residents);
            match group.enter_one(&PIDS, most.saturating_add(1), &places) {
                Ok(folder) => group.pids = Some((join(&folder, "pids.max"), most)),
                Err(_) if launch.sandbox.is_some() && !rustix::process::geteuid().is_root() => {}
                Err(errno) => return Err(Stage::Limit(PIDS.limit).failed()(errno)),
            }
        }
        Ok(group)
    }

    /// Whether there is none.
    pub const fn is_empty(&self) -> bool {
        self.made.is_empty()
    }

    /// Leaves the groups; what was started in them stays.
    pub fn leave(&mut self) {
        for file in self.back.drain(..) {
            let _ = files::write(file, b"0");
        }
        if let Some((file, most)) = self.pids.take() {
            let _ = write(&file, most);
        }
    }

    fn enter_one(&mut self, controller: &Controller, value: u64, places: &Places) -> Result<String> {
        let mut last = Errno::NOTSUP;
        let places = places.of(controller.name);
        // Twice, because another Kiwi that does not see this launcher may take a group for abandoned before it is
        // joined.
        for place in places.iter().chain(&places) {
            match self.make(controller, value, place) {
                Ok(folder) => return Ok(folder),
                Err(errno) => last = errno,
            }
        }
        Err(last)
    }

    fn make(&mut self, controller: &Controller, value: u64, place: &Place) -> Result<String> {
        sweep(&place.parent);
        // Opened before any namespace is entered: the kernel asks who opened it.
        let back = files::open_to_write(join(&place.own, "cgroup.procs"))?;
        let launcher = rustix::process::getpid().as_raw_nonzero();
        let folder = join(&place.parent, &format!("{PREFIX}{launcher}-{}", random_name()?));
        rustix::fs::mkdir(folder.as_str(), Mode::from_raw_mode(0o777))?;
        self.made.push(folder.clone());
        let index = usize::from(place.is_unified);
        write(&join(&folder, controller.files.get(index).copied().unwrap_or_default()), value)?;
        if let Some((file, other)) = controller.swap.get(index).filter(|(file, _)| !file.is_empty()) {
            // Not every kernel counts swapped memory.
            let file = join(&folder, file);
            if files::exists(file.as_str()) {
                write(&file, other.unwrap_or(value))?;
            }
        }
        write(&join(&folder, "cgroup.procs"), 0)?;
        self.back.push(back);
        Ok(folder)
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        self.leave();
        for folder in &self.made {
            // The kernel may need a moment after the last process.
            for time in [0, 1, 5, 20, 100] {
                pause(Duration::from_millis(time));
                if rustix::fs::rmdir(folder.as_str()).is_ok() || !files::exists(folder.as_str()) {
                    break;
                }
            }
        }
    }
}

fn write(file: &str, value: u64) -> Result<()> {
    files::write(files::open_to_write(file)?, value.to_string().as_bytes())
}

fn text_of(path: &str) -> Option<String> {
    String::from_utf8(files::read(path).ok()?).ok()
}

/// One path behind the other; nothing behind it is the path itself.
fn join(folder: &str, name: &str) -> String {
    match (folder.strip_suffix('/').unwrap_or(folder), name) {
        ("", "") => "/".to_owned(),
        (folder, "") => folder.to_owned(),
        (folder, name) => format!("{folder}/{name}"),
    }
}

/// Removes the groups of launchers that are gone. One with processes in it cannot be removed.
fn sweep(parent: &str) {
    for name in files::names_in(parent) {
        let Ok(name) = name.to_str() else { continue };
        let launcher = name.strip_prefix(PREFIX).and_then(|rest| rest.split('-').next());
        if launcher.is_some_and(|pid| !files::exists(join("/proc", pid))) {
            let _ = rustix::fs::rmdir(join(parent, name));
        }
    }
}

/// Where a group could be made, and where the launcher came from.
#[derive(Debug, PartialEq, Eq)]
struct Place {
    parent: String,
    own: String,
    is_unified: bool,
}

/// What the kernel says about control groups here.
struct Places {
    mounts: String,
    own: String,
}

impl Places {
    /// Places to try, the best first.
    fn of(&self, controller: &str) -> Vec<Place> {
        let mut places = Vec::new();
        for line in self.mounts.lines() {
            let Some((place, kind)) = line.split_once(" - ") else { continue };
            let mut place = place.split(' ').skip(3);
            let (Some(root), Some(mount)) = (place.next(), place.next()) else { continue };
            let mut kind = kind.split(' ');
            let (kind, options) = (kind.next(), kind.nth(1).unwrap_or_default());
            let is_unified = kind == Some("cgroup2");
            let is_controller = options.split(',').any(|option| option == controller);
            let is_wanted = is_unified || (kind == Some("cgroup") && is_controller);
            if !is_wanted {
                continue;
            }
            let Some(own) = self.own_group(if is_unified { "" } else { controller }) else { continue };
            if !files::is_within(own.as_bytes(), root.as_bytes()) {
                continue;
            }
            let below = own.strip_prefix(root).unwrap_or_default().trim_start_matches('/');
            let own = join(mount, below);
            if !is_unified {
                places.push(Place { parent: own.clone(), own, is_unified });
                continue;
            }
            // A group with processes in it cannot have groups with limits below it; one beside it can be made.
            let around = own.rsplit_once('/').map(|(around, _)| around);
            for parent in [Some(own.as_str()), around].into_iter().flatten() {
                let enabled = text_of(&join(parent, "cgroup.subtree_control")).unwrap_or_default();
                let is_below = files::is_within(parent.as_bytes(), mount.as_bytes());
                if is_below && enabled.split_whitespace().any(|name| name == controller) {
                    places.push(Place { parent: parent.to_owned(), own: own.clone(), is_unified });
                }
            }
        }
        places
    }

    fn own_group(&self, controller: &str) -> Option<&str> {
        self.own.lines().find_map(|line| {
            let (controllers, path) = line.split_once(':')?.1.split_once(':')?;
            controllers.split(',').any(|name| name == controller).then_some(path)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    /// Plain folders in place of a delegated tree of version 2: what is written where, not what the kernel does with it.
    #[test]
    fn a_delegated_tree_of_version_2_is_used() {
        let root = tempfile::tempdir().unwrap();
        let mount = root.path().to_str().unwrap();
        let slice = root.path().join("user/app");
        let text = |path: &std::path::Path| path.to_str().unwrap().to_owned();
        fs::create_dir_all(slice.join("kiwi.scope")).unwrap();
        fs::write(slice.join("cgroup.subtree_control"), "memory pids\n").unwrap();
        fs::write(slice.join("kiwi.scope/cgroup.subtree_control"), "\n").unwrap();
        let places = Places {
            mounts: format!("30 20 0:26 / {mount} rw shared:9 - cgroup2 cgroup2 rw,nsdelegate\n"),
            own: "0::/user/app/kiwi.scope\n".into(),
        };
        let own = text(&slice.join("kiwi.scope"));
        assert_eq!(places.of("memory"), [Place { parent: text(&slice), own, is_unified: true }]);
        assert_eq!(places.of("cpuset"), []);
    }

    #[test]
    fn controllers_of_version_1_are_found_below_the_root_of_their_mount() {
        let places = Places {
            mounts: "1 2 0:5 /docker/x /sys/fs/cgroup/pids rw - cgroup cgroup rw,pids\n\
                     1 2 0:5 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n"
                .into(),
            own: "4:memory:/\n3:pids:/docker/x/y\n0::/\n".into(),
        };
        let own = String::from("/sys/fs/cgroup/pids/y");
        assert_eq!(places.of("pids"), [Place { parent: own.clone(), own, is_unified: false }]);
        assert_eq!(places.of("memory"), []);
    }

    #[test]
    fn groups_of_launchers_that_are_gone_are_removed() {
        let root = tempfile::tempdir().unwrap();
        let own = format!("{PREFIX}{}-x", std::process::id());
        for name in ["kiwi-999999999-x", "other", own.as_str()] {
            fs::create_dir(root.path().join(name)).unwrap();
        }
        sweep(root.path().to_str().unwrap());
        let left = |name: &str| root.path().join(name).exists();
        assert!(!left("kiwi-999999999-x") && left("other") && left(&own));
    }
}
