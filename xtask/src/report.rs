//! Steps: announced, timed, summed up.

use anyhow::{Context, Result};
use std::time::{Duration, Instant};

/// The steps of one run.
#[derive(Default)]
pub struct Report {
    steps: Vec<(&'static str, Duration)>,
}

impl Report {
    /// Does one step. `what` says in a few words what is about to happen.
    pub fn step<T>(&mut self, name: &'static str, what: &str, work: impl FnOnce() -> Result<T>) -> Result<T> {
        println!("── {name}: {what}");
        let since = Instant::now();
        let result = work()
            .with_context(|| format!("step `{name}` failed after {:.1} s", since.elapsed().as_secs_f64()))?;
        let took = since.elapsed();
        println!("── {name}: done in {:.1} s", took.as_secs_f64());
        self.steps.push((name, took));
        Ok(result)
    }

    /// All steps with their times.
    pub fn summary(&self) {
        println!("\n── summary");
        for (name, took) in &self.steps {
            println!("   {name:<12} {:>8.1} s", took.as_secs_f64());
        }
        let total: Duration = self.steps.iter().map(|step| step.1).sum();
        println!("   {:<12} {:>8.1} s", "total", total.as_secs_f64());
    }
}
