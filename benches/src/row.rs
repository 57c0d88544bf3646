//! One line of the result: a figure, its bar, and whether it holds.

use serde_json::{Value, json};
use std::fmt::Write as _;

/// How a figure is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// Microseconds.
    Microseconds,
    /// Milliseconds.
    Milliseconds,
    /// Seconds.
    Seconds,
    /// Instructions, in thousands.
    Kiloinstructions,
    /// So many in a second.
    PerSecond,
    /// Memory, in MiB.
    Mebibytes,
    /// So many times the other.
    Times,
    /// One part in so many of the other.
    Part,
    /// From 0 to 1.
    Share,
    /// So many.
    Count,
}

impl Unit {
    fn write(self, value: f64) -> String {
        match self {
            Self::Microseconds => format!("{value:.1} µs"),
            Self::Milliseconds => format!("{value:.2} ms"),
            Self::Seconds => format!("{value:.2} s"),
            Self::Kiloinstructions => format!("{value:.0} k instr."),
            Self::PerSecond => format!("{value:.0}/s"),
            Self::Mebibytes => format!("{value:.1} MiB"),
            Self::Times => format!("{value:.2}×"),
            Self::Part => format!("1/{:.0}", 1.0 / value),
            Self::Share => format!("{value:.3}"),
            Self::Count => format!("{value:.0}"),
        }
    }

    const fn name(self) -> &'static str {
        match self {
            Self::Microseconds => "us",
            Self::Milliseconds => "ms",
            Self::Seconds => "s",
            Self::Kiloinstructions => "kiloinstructions",
            Self::PerSecond => "per_s",
            Self::Mebibytes => "mib",
            Self::Times | Self::Part => "ratio",
            Self::Share => "share",
            Self::Count => "count",
        }
    }
}

/// One line of the result.
#[derive(Debug, Clone)]
pub struct Row {
    /// What was measured.
    pub what: String,
    /// The figure.
    pub figure: f64,
    /// How it is written.
    pub unit: Unit,
    /// The most it may be; `None` where it is only told.
    pub bar: Option<f64>,
    /// What it was computed from.
    pub from: Value,
}

impl Row {
    /// Whether the bar holds; a figure that is no number never does.
    pub fn holds(&self) -> bool {
        self.bar.is_none_or(|bar| self.figure <= bar)
    }

    fn verdict(&self) -> &'static str {
        match (self.bar, self.holds()) {
            (None, _) => "told",
            (_, true) => "holds",
            (_, false) => "MISSES",
        }
    }

    /// For the file of figures.
    pub fn json(&self) -> Value {
        json!({
            "what": self.what, "figure": self.figure, "unit": self.unit.name(), "bar": self.bar, "verdict": self.verdict(), "from": self.from,
        })
    }
}

/// All rows, aligned.
pub fn table(rows: &[Row]) -> String {
    let cells: Vec<[String; 4]> = std::iter::once(["what", "figure", "bar", "verdict"].map(str::to_owned))
        .chain(rows.iter().map(|row| {
            let bar = row.bar.map_or_else(|| "–".to_owned(), |bar| format!("≤ {}", row.unit.write(bar)));
            [row.what.clone(), row.unit.write(row.figure), bar, row.verdict().to_owned()]
        }))
        .collect();
    let width = |column: usize| {
        cells.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count()).max().unwrap_or(0)
    };
    let widths = [width(0), width(1), width(2)];
    let [first, second, third] = widths;
    let mut out = String::new();
    for [what, figure, bar, verdict] in &cells {
        // Writing to a String cannot fail.
        let _ = writeln!(out, "{what:<first$}  {figure:>second$}  {bar:>third$}  {verdict}");
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(figure: f64, unit: Unit, bar: Option<f64>) -> Row {
        Row { what: "a thing".into(), figure, unit, bar, from: Value::Null }
    }

    #[test]
    fn bars_are_judged() {
        assert!(row(1.2, Unit::Times, Some(1.2)).holds());
        assert!(!row(1.21, Unit::Times, Some(1.2)).holds());
        assert!(!row(f64::NAN, Unit::Times, Some(1.2)).holds());
        assert!(row(99.0, Unit::Times, None).holds());
    }

    #[test]
    fn the_table_is_aligned() {
        let rows = [
            row(12.34, Unit::Microseconds, Some(50.0)),
            row(0.002, Unit::Part, Some(0.01)),
            row(7.0, Unit::Milliseconds, Some(5.0)),
            row(1.0, Unit::Times, None),
        ];
        let expect = "what      figure        bar  verdict\na thing  12.3 µs  ≤ 50.0 µs  holds\na thing    1/500    ≤ 1/100  holds\na thing  7.00 ms  ≤ 5.00 ms  MISSES\na thing    1.00×          –  told\n";
        assert_eq!(table(&rows), expect);
    }
}
