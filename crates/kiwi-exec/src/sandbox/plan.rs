//! What Kiwi tells its launcher about a sandbox.

use serde::{Deserialize, Serialize};
use std::net::{Ipv4Addr, SocketAddrV4};
use std::path::Path;

use super::filter::Filter;
use crate::container::EngineKind;
use crate::wire::Raw;

/// Where the tool finds the proxy. The network namespace is its own, so the number is always free.
pub const PROXY: SocketAddrV4 = SocketAddrV4::new(Ipv4Addr::LOCALHOST, 3128);

/// The walls around one tool.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Sandbox {
    pub builder: Builder,
    /// Whether the tool may make sockets. They lead nowhere but to the proxy.
    pub sockets: bool,
    /// What it may ask of the kernel.
    pub filter: Filter,
    /// Whether a descriptor for the proxy's listener comes with the launch.
    pub proxy: bool,
    /// What is visible inside, parents before children.
    pub view: Vec<Shown>,
    /// What the launcher found at each path of the host in the view, by device and number; to be found again inside
    /// where somebody else than the launcher shows it.
    #[serde(default)]
    pub found: Vec<Found>,
}

impl Sandbox {
    /// One of which nothing has been found yet.
    pub fn new(builder: Builder, sockets: bool, proxy: bool, view: Vec<Shown>) -> Self {
        Self { builder, sockets, filter: Filter::new(sockets), proxy, view, found: Vec::new() }
    }

    /// Whether a container engine builds it.
    pub const fn is_contained(&self) -> bool {
        matches!(self.builder, Builder::Container(_))
    }

    /// Whether the tool may read everything it sees among the settings: not where it may make entries that it may not read.
    pub fn has_settings(&self) -> bool {
        let is_unreadable =
            |shown: &Shown| matches!(shown, Shown::Entries { .. }) && shown.at().starts_with(SETTINGS);
        !self.view.iter().any(is_unreadable)
    }
}

/// Device and number of something of the host; nothing for what is not of the host.
pub type Found = Option<(u64, u64)>;

/// Who makes namespaces and mounts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
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
    pub kind: EngineKind,
    pub program: Raw,
    pub env: Vec<(String, String)>,
    /// An image with nothing in it.
    pub image: String,
    /// What the container is called, beside whose it is.
    pub name: String,
    /// A folder of the run's own, which need not exist yet.
    pub folder: Raw,
}

/// One thing visible inside. Everything else does not exist there.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
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
    /// Where it is seen inside.
    pub fn at(&self) -> &Path {
        match self {
            Self::Bind { at, .. }
            | Self::Entries { at, .. }
            | Self::Empty { at }
            | Self::Private { at }
            | Self::Link { at, .. }
            | Self::File { at, .. }
            | Self::Copy { at, .. } => at.as_path(),
        }
    }

    /// Whether the tool may write there.
    pub const fn is_writable(&self) -> bool {
        matches!(self, Self::Bind { write: true, .. } | Self::Entries { .. } | Self::Private { .. })
    }

    /// What of the host it shows, and not only a copy of it.
    pub fn from(&self) -> Option<&Path> {
        match self {
            Self::Bind { from, .. } | Self::Entries { from, .. } => Some(from.as_path()),
            Self::Empty { .. }
            | Self::Private { .. }
            | Self::Link { .. }
            | Self::File { .. }
            | Self::Copy { .. } => None,
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
