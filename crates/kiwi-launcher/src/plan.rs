//! What Kiwi tells its launcher about a sandbox.

use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;
use core::net::{Ipv4Addr, SocketAddrV4};
use rustix::io::{Errno, Result};
use serde::{Deserialize, Serialize};

use crate::kernel::files::is_within;
use crate::kernel::seccomp::Step;
use crate::words::Raw;

/// Where the tool finds the proxy. The network namespace is its own, so the number is always free.
pub const PROXY: SocketAddrV4 = SocketAddrV4::new(Ipv4Addr::LOCALHOST, 3128);

/// The walls around one tool.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Sandbox {
    /// Who makes namespaces and mounts.
    pub builder: Builder,
    /// Whether the tool may make sockets. They lead nowhere but to the proxy.
    pub sockets: bool,
    /// What it may ask of the kernel.
    pub filters: Filters,
    /// Whether a descriptor for the proxy's listener comes with the launch.
    pub proxy: bool,
    /// What is visible inside, parents before children.
    pub view: Vec<Shown>,
    /// What the launcher found at each path of the host in the view, by device and number; to be found again inside
    /// where somebody else than the launcher shows it.
    pub found: Vec<Found>,
}

impl Sandbox {
    /// Whether a container engine builds it.
    pub const fn is_contained(&self) -> bool {
        matches!(self.builder, Builder::Container(_))
    }

    /// Whether the tool may read everything it sees among the settings: not where it may make entries that it may not read.
    pub fn has_settings(&self) -> bool {
        let is_unreadable = |shown: &Shown| matches!(shown, Shown::Entries { .. }) && shown.is_setting();
        !self.view.iter().any(is_unreadable)
    }

    /// What is still to be shown, by its number in the view, where `prepared` stands already. `None`: it is of no use here.
    ///
    /// Things are put in place parents first, and a thing that is put there later must find what it would have found. So
    /// nothing may still be missing around something that is there, nor behind a link that could not be followed before.
    pub fn beyond<'a>(&'a self, prepared: &Self) -> Option<Vec<(usize, &'a Shown)>> {
        let mut there = prepared.view.iter().peekable();
        let mut missing = Vec::new();
        for (number, shown) in self.view.iter().enumerate() {
            if there.next_if(|it| *it == shown).is_none() {
                missing.push((number, shown));
            }
        }
        let is_whole = there.next().is_none();
        let is_alike = self.builder == prepared.builder
            && self.sockets == prepared.sockets
            && self.has_settings() == prepared.has_settings();
        let is_too_late = |at: &[u8]| {
            prepared.view.iter().any(|it| {
                is_within(it.place(), at) || (matches!(it, Shown::Link { .. }) && is_within(at, it.place()))
            })
        };
        let can_follow = match self.builder {
            Builder::Native => !missing.iter().any(|(_, shown)| is_too_late(shown.place())),
            // They take their whole view when they start.
            Builder::Bubblewrap(_) | Builder::Container(_) => missing.is_empty(),
        };
        (is_whole && is_alike && can_follow).then_some(missing)
    }
}

/// Device and number of something of the host; nothing for what is not of the host.
pub type Found = Option<(u64, u64)>;

/// Two filters of system calls, of which both must agree. To put one in force takes a tenth of a millisecond, so the greater
/// part is when there is time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Filters {
    /// Does not hinder those who are still building walls.
    pub early: Filter,
    /// Refuses what only they need.
    pub last: Filter,
}

/// A filter of system calls, as the launcher is told of it: Kiwi has time to write it down while its launcher starts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Filter(#[serde(with = "serde_bytes")] Vec<u8>);

impl Filter {
    /// These steps.
    pub fn of(steps: &[Step]) -> Self {
        Self(steps.iter().flat_map(|step| step.bytes()).collect())
    }

    /// As the kernel takes it.
    pub fn steps(&self) -> Result<Vec<Step>> {
        let (steps, []) = self.0.as_chunks() else { return Err(Errno::INVAL) };
        Ok(steps.iter().copied().map(Step::from_bytes).collect())
    }
}

impl Step {
    /// A step takes eight bytes.
    fn bytes(self) -> [u8; 8] {
        let ways = u16::from_le_bytes([self.then, self.otherwise]);
        let front = u64::from(self.code) | u64::from(ways) << 16;
        (front | u64::from(self.value) << 32).to_le_bytes()
    }

    fn from_bytes([code, code_above, then, otherwise, value @ ..]: [u8; 8]) -> Self {
        let (code, value) = (u16::from_le_bytes([code, code_above]), u32::from_le_bytes(value));
        Self { code, then, otherwise, value }
    }
}

/// Who makes namespaces and mounts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Builder {
    /// The launcher.
    Native,
    /// The program at this path.
    Bubblewrap(Raw),
    /// A container engine.
    Container(Box<EngineClient>),
}

/// A container engine, as the launcher speaks to it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EngineClient {
    /// Which one.
    pub kind: EngineKind,
    /// Its client.
    pub program: Raw,
    /// The client's whole environment.
    pub env: Vec<(String, String)>,
    /// An image with nothing in it.
    pub image: String,
    /// What the container is called, beside whose it is.
    pub name: String,
    /// A folder of the run's own, which need not exist yet.
    pub folder: Raw,
}

/// Which engine it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum EngineKind {
    /// Docker: a client that talks to a service.
    Docker,
    /// Podman: the client does it all.
    Podman,
}

impl EngineKind {
    /// Both, the preferred one first.
    pub const ALL: [Self; 2] = [Self::Docker, Self::Podman];

    /// The name of its client.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Docker => "docker",
            Self::Podman => "podman",
        }
    }

    /// The engine of this name.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.as_str() == name)
    }
}

/// One thing visible inside. Everything else does not exist there.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "`from` is where on the host, `at` where inside")]
pub enum Shown {
    /// Something of the host. `from` has no symbolic link in it.
    Bind { from: Raw, at: Raw, write: bool },
    /// A folder of the host whose entries the tool may make, replace, remove and write, but not read. `from` likewise.
    Entries { from: Raw, at: Raw },
    /// An empty folder that stays so.
    Empty { at: Raw },
    /// An empty folder the tool may fill; it goes away with the tool.
    Private { at: Raw },
    /// A symbolic link.
    Link { at: Raw, to: Raw },
    /// A small file.
    File { at: Raw, text: String },
    /// A copy of a small file of the host. `from` likewise.
    Copy { from: Raw, at: Raw },
}

impl Shown {
    const fn shown_at(&self) -> &Raw {
        match self {
            Self::Bind { at, .. }
            | Self::Entries { at, .. }
            | Self::Empty { at }
            | Self::Private { at }
            | Self::Link { at, .. }
            | Self::File { at, .. }
            | Self::Copy { at, .. } => at,
        }
    }

    const fn shown_from(&self) -> Option<&Raw> {
        match self {
            Self::Bind { from, .. } | Self::Entries { from, .. } => Some(from),
            Self::Empty { .. }
            | Self::Private { .. }
            | Self::Link { .. }
            | Self::File { .. }
            | Self::Copy { .. } => None,
        }
    }

    /// Where it is seen inside.
    pub fn place(&self) -> &[u8] {
        self.shown_at().bytes()
    }

    /// What of the host it shows, and not only a copy of it.
    pub fn source(&self) -> Option<&[u8]> {
        self.shown_from().map(Raw::bytes)
    }

    /// Whether the tool may write there.
    pub const fn is_writable(&self) -> bool {
        matches!(self, Self::Bind { write: true, .. } | Self::Entries { .. } | Self::Private { .. })
    }

    /// Whether it is seen among the settings.
    pub fn is_setting(&self) -> bool {
        is_within(self.place(), SETTINGS.as_bytes())
    }
}

/// The same for those who have a standard library.
#[cfg(feature = "std")]
mod spoken {
    extern crate std;
    use super::{Raw, Shown};
    use std::path::Path;

    impl Shown {
        /// Where it is seen inside.
        pub fn at(&self) -> &Path {
            self.shown_at().as_path()
        }

        /// What of the host it shows, and not only a copy of it.
        pub fn from(&self) -> Option<&Path> {
            self.shown_from().map(Raw::as_path)
        }
    }
}

/// Where settings are.
pub const SETTINGS: &str = "/etc";
/// Devices of the host that every sandbox has.
pub const DEVICES: [&str; 3] = ["/dev/null", "/dev/zero", "/dev/urandom"];
/// Names below `/dev` that lead to the tool's own descriptors, or to one of the devices: a link is cheaper than a mount.
pub const LINKS: [(&str, &str); 5] = [
    ("/dev/fd", "/proc/self/fd"),
    ("/dev/random", "urandom"),
    ("/dev/stdin", "/proc/self/fd/0"),
    ("/dev/stdout", "/proc/self/fd/1"),
    ("/dev/stderr", "/proc/self/fd/2"),
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::Raw;
    use alloc::vec;

    fn sandbox(builder: Builder, view: &[Shown]) -> Sandbox {
        Sandbox {
            builder,
            sockets: false,
            filters: Filters { early: Filter::of(&[]), last: Filter::of(&[]) },
            proxy: false,
            view: view.to_vec(),
            found: Vec::new(),
        }
    }

    fn raw(text: &str) -> Raw {
        text.as_bytes().into()
    }

    fn bind(at: &str) -> Shown {
        Shown::Bind { from: raw(at), at: raw(at), write: false }
    }

    fn empty(at: &str) -> Shown {
        Shown::Empty { at: raw(at) }
    }

    #[test]
    fn only_what_comes_to_the_same_is_used() {
        let link = Shown::Link { at: raw("/bin"), to: raw("usr/bin") };
        let home = Shown::Private { at: raw("/home/kiwi") };
        let prepared = [link.clone(), home.clone(), bind("/usr")];
        let beyond = |view: &[Shown]| {
            let wanted = sandbox(Builder::Native, view);
            let missing = wanted.beyond(&sandbox(Builder::Native, &prepared))?;
            Some(missing.into_iter().map(|(number, _)| number).collect::<Vec<_>>())
        };
        let [first, second, third] = &prepared;
        let with = |other: Shown| {
            let mut view = vec![first.clone(), second.clone(), third.clone(), other];
            view.sort_by(|a, b| a.place().cmp(b.place()));
            view
        };
        assert_eq!(beyond(&prepared), Some(vec![]));
        assert_eq!(beyond(&with(empty("/home/me/project"))), Some(vec![2]));
        assert_eq!(beyond(&with(bind("/usr/local/mine"))), Some(vec![3]));
        // Around something that is there, or behind a link.
        assert_eq!(beyond(&with(empty("/home"))), None);
        assert_eq!(beyond(&with(bind("/bin/mine"))), None);
        // Something that is not wanted, or wanted otherwise.
        assert_eq!(beyond(&[link.clone(), home.clone()]), None);
        assert_eq!(beyond(&[link, home, Shown::Private { at: raw("/usr") }]), None);
    }

    /// What was allowed for all settings cannot be taken back.
    #[test]
    fn entries_among_settings_are_another_sandbox() {
        let prepared = sandbox(Builder::Native, &[bind("/usr")]);
        let entries = |at: &str| Shown::Entries { from: raw(at), at: raw(at) };
        let wanted = |at: &str| sandbox(Builder::Native, &[bind("/usr"), entries(at)]);
        assert!(wanted("/var/spool").beyond(&prepared).is_some());
        assert!(wanted("/etc/cron.d").beyond(&prepared).is_none());
    }

    #[test]
    fn another_builder_or_network_is_another_sandbox() {
        let view = [bind("/usr")];
        let native = sandbox(Builder::Native, &view);
        let bubblewrap = |path: &str, view: &[Shown]| sandbox(Builder::Bubblewrap(raw(path)), view);
        assert!(native.beyond(&native).is_some());
        assert!(native.beyond(&bubblewrap("/usr/bin/bwrap", &view)).is_none());
        assert!(native.beyond(&Sandbox { sockets: true, ..native.clone() }).is_none());
        let more = [bind("/usr"), bind("/usr/local")];
        let theirs = bubblewrap("/usr/bin/bwrap", &view);
        assert!(theirs.beyond(&theirs).is_some());
        assert!(theirs.beyond(&bubblewrap("/bin/bwrap", &view)).is_none());
        assert!(bubblewrap("/usr/bin/bwrap", &more).beyond(&theirs).is_none());
    }
}
