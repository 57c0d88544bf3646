//! What a launcher is to be, by the words it is started with.

use rustix::io::{Errno, Result};

use crate::inside::{self, Readiness};
use crate::life::{self, Prepared};
use crate::outside::Engines;
use crate::settle::settle;
use crate::spare;

/// The first argument by which a program knows that it is to be the launcher.
pub const ARGUMENT: &str = "__launch";
/// The second argument by which a launcher knows that it is only to show that it can start.
pub const PROBE: &str = "probe";

/// The whole life of a launcher. `words` are what it was started with behind [`ARGUMENT`].
pub fn main(words: &[&[u8]], engines: &dyn Engines) -> Result<()> {
    let (role, rest) = words.split_first().map_or((None, words), |(role, rest)| (Some(*role), rest));
    match role {
        None => life::obey(&settle()?, engines, Prepared::Nothing),
        Some(role) if role == inside::early::ROLE.as_bytes() => inside::early::serve(rest),
        Some(role) if role == spare::ROLE.as_bytes() => match rest.split_first() {
            Some((role, rest)) if *role == inside::early::ROLE.as_bytes() => inside::ahead::serve(rest),
            _ => spare::serve(engines),
        },
        Some(role) if role == inside::ROLE_CONTAINED.as_bytes() => {
            inside::serve_contained(rest.first().copied().unwrap_or_default())
        }
        Some(role) if role == PROBE.as_bytes() => Ok(()),
        Some(role) => Readiness::of(role).map_or(Err(Errno::INVAL), inside::serve),
    }
}
