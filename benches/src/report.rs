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
}

impl Report {
    /// Starts an area; warns when the machine has other things to do.
    pub fn new(area: &'static str) -> Self {
        let busy = busy();
        if let Some(busy) = busy.filter(|busy| *busy > 0.5) {
            say(&format!("the machine is busy ({busy:.1} per core): times come out worse than they are"));
        }
        Self { area, rows: Vec::new(), busy }
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
        let rows: Vec<Value> = self.rows.iter().map(Row::json).collect();
        let text = serde_json::to_string_pretty(
            &json!({"area": self.area, "holds": holds, "load_per_core": self.busy, "rows": rows}),
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
