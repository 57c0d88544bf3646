//! What every area does with its rows: tells them, writes them down, and says whether all bars hold.

use anyhow::{Context, Result};
use serde_json::{Value, json};
use std::path::Path;

use crate::row::{Row, Unit, table};
use crate::stats::Samples;

/// The rows of one area, as they come.
pub struct Report {
    area: &'static str,
    rows: Vec<Row>,
    busy: Option<f64>,
    begun: Option<Time>,
}

impl Report {
    /// Starts an area; warns when the machine has other things to do.
    pub fn new(area: &'static str) -> Self {
        let busy = busy();
        if let Some(busy) = busy.filter(|busy| *busy > 0.5) {
            say(&format!("the machine is busy ({busy:.1} per core): times come out worse than they are"));
        }
        Self { area, rows: Vec::new(), busy, begun: Time::now() }
    }

    /// A figure with the most that it may be.
    pub fn judge(&mut self, what: &str, figure: f64, unit: Unit, bar: f64, from: Value) {
        self.rows.push(Row { what: what.to_owned(), figure, unit, bar: Some(bar), from });
    }

    /// A figure that is only told.
    pub fn tell(&mut self, what: &str, figure: f64, unit: Unit, from: Value) {
        self.rows.push(Row { what: what.to_owned(), figure, unit, bar: None, from });
    }

    /// Prints the table and writes the file; tells whether every bar holds.
    pub fn finish(self, out: &Path) -> Result<bool> {
        println!("\n{}", table(&self.rows));
        let holds = self.rows.iter().all(Row::holds);
        let stolen = self.begun.zip(Time::now()).and_then(|(begun, now)| now.stolen_since(begun));
        if let Some(stolen) = stolen.filter(|stolen| *stolen >= 0.01) {
            println!(
                "of the time in which something ran here, others had the processor for {:.0} %",
                stolen * 100.0
            );
        }
        let rows: Vec<Value> = self.rows.iter().map(Row::json).collect();
        let text = serde_json::to_string_pretty(
            &json!({"area": self.area, "holds": holds, "load_per_core": self.busy, "stolen": stolen, "rows": rows}),
        )?;
        std::fs::write(out, text + "\n").with_context(|| format!("cannot write {}", out.display()))?;
        println!("figures: {}", out.display());
        Ok(holds)
    }
}

/// How busy the machine is: processes that want to run, per core, over the last minute.
fn busy() -> Option<f64> {
    let load = std::fs::read_to_string("/proc/loadavg").ok()?.split(' ').next()?.parse::<f64>().ok()?;
    let cores = u32::try_from(std::thread::available_parallelism().ok()?.get()).ok()?;
    Some(load / f64::from(cores))
}

/// What all processors did since they started, in ticks of the clock.
#[derive(Debug, Clone, Copy)]
struct Time {
    /// For processes of this machine.
    worked: f64,
    /// Wanted, while the host let other machines run.
    stolen: f64,
}

impl Time {
    fn now() -> Option<Self> {
        Self::read(&std::fs::read_to_string("/proc/stat").ok()?)
    }

    fn read(stat: &str) -> Option<Self> {
        let all = stat.lines().next()?.strip_prefix("cpu ")?;
        let ticks: Vec<f64> = all.split_whitespace().filter_map(|word| word.parse().ok()).collect();
        let [user, nice, system, _idle, _wait, interrupts, soft, stolen, ..] = *ticks.as_slice() else {
            return None;
        };
        Some(Self { worked: user + nice + system + interrupts + soft, stolen })
    }

    /// The part of the time in which this machine wanted to run that others got.
    fn stolen_since(self, begun: Self) -> Option<f64> {
        let (worked, stolen) = (self.worked - begun.worked, self.stolen - begun.stolen);
        (worked + stolen > 0.0).then(|| stolen / (worked + stolen))
    }
}

/// What is being measured now.
pub fn say(what: &str) {
    eprintln!("  {what} …");
}

/// What a figure was computed from.
pub fn figures(samples: &Samples) -> Value {
    json!({
        "count": samples.count(), "p50_us": samples.p50(), "p95_us": samples.quantile(0.95),
        "p99_us": samples.quantile(0.99), "min_us": samples.quantile(0.0),
    })
}

/// The same for two sides.
pub fn both(ours: &Samples, other: &Samples) -> Value {
    json!({"measured": figures(ours), "against": figures(other)})
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_others_took_is_told_from_what_was_wanted() {
        let before = Time::read("cpu  100 0 50 1000 7 0 0 10 0 0\ncpu0 1 2 3\n").expect("a line");
        let after = Time::read("cpu  160 0 80 9000 7 0 0 20 0 0\n").expect("a line");
        assert_eq!(after.stolen_since(before).map(|part| part.to_string()).as_deref(), Some("0.1"));
        assert!(before.stolen_since(before).is_none());
        assert!(Time::read("cpu  1 2 3\n").is_none());
    }
}
