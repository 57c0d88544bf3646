//! Counting tests from what the runners print.

/// How many tests ended how.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Tally {
    /// Passed.
    pub passed: u64,
    /// Failed.
    pub failed: u64,
    /// Skipped or ignored.
    pub skipped: u64,
}

impl Tally {
    /// Adds a closing line of `cargo nextest` or `cargo test`; any other line counts nothing.
    pub fn see(&mut self, line: &str) {
        let line = plain(line);
        // `cargo nextest` shows the output of a failed test indented, with such a line of its own in it: not counted.
        let counts = match (line.trim_start().strip_prefix("Summary ["), line.strip_prefix("test result:")) {
            (Some(rest), _) => rest.split_once(':').map(|(_, counts)| counts),
            (_, Some(rest)) => Some(rest),
            _ => None,
        };
        for part in counts.unwrap_or_default().split([',', ';', '.']) {
            let mut words = part.split_whitespace();
            let (Some(Ok(count)), Some(what)) = (words.next().map(str::parse::<u64>), words.next()) else {
                continue;
            };
            match what {
                "passed" => self.passed += count,
                "failed" | "timed" => self.failed += count,
                "skipped" | "ignored" => self.skipped += count,
                _ => {}
            }
        }
    }
}

impl std::fmt::Display for Tally {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} passed, {} failed, {} skipped", self.passed, self.failed, self.skipped)
    }
}

/// The line without terminal colours.
fn plain(line: &str) -> String {
    let mut out = String::new();
    let mut chars = line.chars();
    while let Some(c) = chars.next() {
        if c == '\u{1b}' {
            let _ = chars.by_ref().find(char::is_ascii_alphabetic);
        } else {
            out.push(c);
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(lines: &[&str], expect: &str) {
        let mut tally = Tally::default();
        for line in lines {
            tally.see(line);
        }
        assert_eq!(tally.to_string(), expect);
    }

    #[test]
    fn closing_lines_are_counted_and_others_are_not() {
        check(
            &["     Summary [   0.046s] 42 tests run: 41 passed (2 slow), 1 failed, 3 skipped\n"],
            "41 passed, 1 failed, 3 skipped",
        );
        check(
            &[
                "\u{1b}[32m     Summary\u{1b}[0m [   0.046s] \u{1b}[1m1\u{1b}[0m test run: \u{1b}[1m1\u{1b}[0m \u{1b}[32mpassed\u{1b}[0m, 0 skipped",
            ],
            "1 passed, 0 failed, 0 skipped",
        );
        check(
            &[
                "test result: ok. 3 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.00s",
                "test a::b ... ok",
                "test result: FAILED. 1 passed; 2 failed; 0 ignored; 0 measured",
            ],
            "4 passed, 2 failed, 1 skipped",
        );
        check(&["    test result: FAILED. 0 passed; 1 failed; 0 ignored"], "0 passed, 0 failed, 0 skipped");
        check(&["7 passed, somewhere else"], "0 passed, 0 failed, 0 skipped");
    }
}
