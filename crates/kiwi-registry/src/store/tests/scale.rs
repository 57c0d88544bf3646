//! How long a chain and a search take, with few tools and with many. `KIWI_SOAK=1` makes them a hundred thousand.

use super::{block_on, postgres};
use crate::store::many::{begin, description, load};
use crate::store::{Caller, Store};
use kiwi_model::ToolId;
use std::time::{Duration, Instant};

struct Times {
    resolve: Duration,
    search: Duration,
}

async fn measure(store: &Store, tools: u64) -> Times {
    let nobody = Caller::default();
    let median = |mut times: Vec<Duration>| {
        times.sort_unstable();
        times[times.len() / 2]
    };
    let (mut resolve, mut search) = (Vec::new(), Vec::new());
    for round in 0..300_u64 {
        let number = (round * 7919) % tools / 3 * 3 + 2;
        let id = ToolId::parse(&format!("t{}", number.min(tools - 1))).unwrap();
        let begun = Instant::now();
        let chain = store.resolve(&nobody, &id, None).await.unwrap();
        resolve.push(begun.elapsed());
        assert!(!chain.links.is_empty() && chain.links.len() <= 3);
    }
    for round in 0..60_u64 {
        let query = description(round * 31);
        let begun = Instant::now();
        let found = store.search(&nobody, &query, 50).await.unwrap();
        search.push(begun.elapsed());
        assert!(!found.is_empty());
    }
    Times { resolve: median(resolve), search: median(search) }
}

#[expect(clippy::disallowed_methods, reason = "a test is told how much it is to do")]
async fn scale(database: &str, bar: Duration) {
    let store = Store::open(database, None).await.unwrap();
    begin(&store).await.unwrap();
    let is_soak = std::env::var_os("KIWI_SOAK").is_some();
    let (few, many) = if is_soak { (1_000, 100_000) } else { (150, 450) };
    load(&store, 0, few).await.unwrap();
    let before = measure(&store, few).await;
    load(&store, few, many).await.unwrap();
    let after = measure(&store, many).await;
    println!(
        "{few} tools: resolve {:?}, search {:?}; {many} tools: resolve {:?}, search {:?}",
        before.resolve, before.search, after.resolve, after.search
    );
    if is_soak {
        assert!(after.resolve <= bar, "{:?}", after.resolve);
        assert!(after.resolve <= before.resolve * 2, "{:?} and {:?}", before.resolve, after.resolve);
    }
}

#[test]
fn sqlite_does_not_slow_down() {
    let folder = tempfile::tempdir().unwrap();
    block_on(scale(folder.path().join("registry.sqlite").to_str().unwrap(), Duration::from_millis(1)));
}

#[test]
fn postgres_does_not_slow_down() {
    block_on(async { scale(&postgres().await, Duration::from_millis(5)).await });
}
