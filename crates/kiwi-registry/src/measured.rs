//! For benchmarks only.

use crate::error::RegistryError;
use crate::store::{Store, many};

/// Fills an empty database with tools of five versions each, `t0` and on.
pub async fn fill(database: &str, tools: u64) -> Result<(), RegistryError> {
    let store = Store::open(database, None).await?;
    many::begin(&store).await?;
    many::load(&store, 0, tools).await
}

/// What a tool that was filled in is for.
pub fn description(number: u64) -> String {
    many::description(number)
}
