//! What is counted, as Prometheus reads it.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use crate::store::Engine;

/// Upper ends of the histogram's steps, in microseconds, and as they are written in seconds.
const STEPS: [(u64, &str); 12] = [
    (500, "0.0005"),
    (1_000, "0.001"),
    (2_500, "0.0025"),
    (5_000, "0.005"),
    (10_000, "0.01"),
    (25_000, "0.025"),
    (50_000, "0.05"),
    (100_000, "0.1"),
    (250_000, "0.25"),
    (1_000_000, "1"),
    (5_000_000, "5"),
    (30_000_000, "30"),
];

#[derive(Default)]
struct Times {
    steps: [u64; STEPS.len()],
    count: u64,
    micros: u64,
}

#[derive(Default)]
struct Counted {
    requests: BTreeMap<(&'static str, &'static str, u16), u64>,
    times: BTreeMap<&'static str, Times>,
    publishes: u64,
}

/// What is counted since the server started.
#[derive(Default)]
pub(super) struct Metrics {
    counted: Mutex<Counted>,
}

impl Metrics {
    /// Counts an answer.
    pub fn answered(&self, method: &'static str, route: &'static str, status: u16, took: Duration) {
        let mut counted = self.counted.lock().unwrap_or_else(PoisonError::into_inner);
        *counted.requests.entry((method, route, status)).or_default() += 1;
        let micros = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
        let times = counted.times.entry(route).or_default();
        for (step, (most, _)) in times.steps.iter_mut().zip(STEPS) {
            *step += u64::from(micros <= most);
        }
        times.count += 1;
        times.micros = times.micros.saturating_add(micros);
    }

    /// Counts a version that was published.
    pub fn published(&self) {
        self.counted.lock().unwrap_or_else(PoisonError::into_inner).publishes += 1;
    }

    /// Everything, as text.
    pub fn text(&self, engine: Engine) -> String {
        let counted = self.counted.lock().unwrap_or_else(PoisonError::into_inner);
        let mut text = String::new();
        text.push_str("# HELP kiwi_registry_requests_total Requests that were answered.\n# TYPE kiwi_registry_requests_total counter\n");
        for ((method, route, status), count) in &counted.requests {
            let _ = writeln!(
                text,
                "kiwi_registry_requests_total{{method=\"{method}\",route=\"{route}\",status=\"{status}\"}} {count}"
            );
        }
        text.push_str("# HELP kiwi_registry_request_seconds How long answers took.\n# TYPE kiwi_registry_request_seconds histogram\n");
        for (route, times) in &counted.times {
            for (count, (_, most)) in times.steps.iter().zip(STEPS) {
                let _ = writeln!(
                    text,
                    "kiwi_registry_request_seconds_bucket{{route=\"{route}\",le=\"{most}\"}} {count}"
                );
            }
            let (count, whole, rest) = (times.count, times.micros / 1_000_000, times.micros % 1_000_000);
            let _ = writeln!(
                text,
                "kiwi_registry_request_seconds_bucket{{route=\"{route}\",le=\"+Inf\"}} {count}\n\
                 kiwi_registry_request_seconds_sum{{route=\"{route}\"}} {whole}.{rest:06}\n\
                 kiwi_registry_request_seconds_count{{route=\"{route}\"}} {count}"
            );
        }
        let kind = match engine {
            Engine::Sqlite => "sqlite",
            Engine::Postgres => "postgres",
        };
        let _ = writeln!(
            text,
            "# HELP kiwi_registry_publishes_total Versions that were published.\n\
             # TYPE kiwi_registry_publishes_total counter\nkiwi_registry_publishes_total {}\n\
             # HELP kiwi_registry_database The kind of database.\n# TYPE kiwi_registry_database gauge\n\
             kiwi_registry_database{{kind=\"{kind}\"}} 1",
            counted.publishes
        );
        text
    }
}
