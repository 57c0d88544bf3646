//! What the launcher asks of the kernel and no library asks for it without a C library beside: making processes, filters,
//! rules, and a few questions about files.

pub(crate) mod clock;
pub(crate) mod descriptors;
pub(crate) mod files;
pub(crate) mod landlock;
pub mod memory;
pub(crate) mod mounts;
pub mod namespaces;
pub(crate) mod numbers;
pub mod processes;
pub mod processors;
mod raw;
pub mod seccomp;
pub(crate) mod signals;
