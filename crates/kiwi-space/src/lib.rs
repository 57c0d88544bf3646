//! The three spaces: where tools lie, and who they are.
//!
//! **Owns** the project and user space on disk, the system space inside the binary, installed packages and their
//! records, lockfiles and their index, credentials, `config/kiwi.toml`, and the first files of a project. It reads every form a tool
//! can have, hashes exactly the bytes it hands out, and finds a tool among a hundred thousand without looking through
//! them.
//!
//! **Deliberately absent**: processes, connections, output, the environment (the caller passes [`Locations`] in), and
//! judgement: this crate says what is there and what was recorded; `kiwi-chain` decides whether the two agree.
//! Nothing is ever imported or run to read metadata.
//!
//! Read first: [`Spaces`] (where everything is; implements [`kiwi_chain::Catalog`]), [`Packages`] (what installs),
//! [`Locks`] (what was agreed to run), [`SpaceError`] (what can be wrong).

mod assemble;
mod boundary;
mod catalog;
mod checksum;
mod config;
mod counters;
mod credentials;
mod durable;
mod error;
mod gather;
mod index;
mod items;
mod keys;
mod kind;
mod list;
mod loader;
mod locks;
mod lull;
mod modules;
mod notice;
mod packages;
mod private;
mod private_folder;
mod root;
mod rules;
mod scaffold;
mod script;
mod seen;
mod settings;
mod sightings;
mod signature;
mod signers;
mod spaces;
mod stamp;
mod system;
mod take;
mod tree;
mod trust;

pub use catalog::Shadowed;
pub use config::{
    Config, ConfigFile, EmbedderChoice, KeyringUse, Limits, Mode, OnAsk, Profile, ProfileLayer, ProfileMode,
    ProfileSection, RulesInForce, SandboxBackend, SearchSettings, SignedSource, Transport, UnknownProfile,
    config_schema,
};
pub use credentials::{Credential, Credentials, KeeperProblem, KeyKeeper, Nobody, Refresh};
pub use durable::replace_file;
pub use error::{PathProblem, SpaceError};
pub use items::{ListedText, TextInput, TextItem, TextKind};
pub use keys::{KeyPurpose, Keys, PublicKey, UserKey};
pub use list::Listed;
pub use locks::{LockEntry, LockProblem, LockWriter, Locks, SaveOutcome, Saved, Slot, Stored, is_within};
pub use lull::Quiet;
pub use packages::{Install, Installed, NewFile, Packages, Record, RecordedFile, Staged, package_of};
pub use private_folder::{InPlace, InPlaceTurn, PrivateFolder, Turn};
pub use rules::{RuleFolder, RuleText};
pub use scaffold::{Created, Outcome, scaffold};
pub use seen::Seen;
pub use settings::Settings;
pub use sightings::{Sighted, Sighting, Stirred, Waker, Watcher};
pub use signature::ItemSignature;
pub use signers::{Signer, Signers};
pub use spaces::{Locations, Spaces};
pub use trust::{Trust, TrustState, Trusted};
