use kiwi_gate::{Answer, Answered, Remember, Verdict};
use kiwi_model::{ErrorKind, Fault};
use serde_json::json;
use std::process::ExitCode;
use std::time::Duration;

use super::reviews;
use crate::context::Context;
use crate::printer::{self, BOLD, count, paint};

/// Say yes to a call that waits, to a question, or to a session that is stuck.
///
/// The answer is for exactly the call that was asked about, once; --remember makes a grant of it. It is signed with your
/// approval key.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Which one: its name in `kiwi reviews`, or the beginning of it.
    id: String,
    /// Let the same call through from now on.
    #[arg(long)]
    remember: bool,
    /// How many calls the grant is for.
    #[arg(long, value_name = "N", requires = "remember", default_value_t = Remember::USES)]
    uses: u64,
    /// How long the grant holds: 45s, 30m, 12h, 7d or 2w.
    #[arg(long, value_name = "TIME", requires = "remember", default_value = "30d")]
    expires: String,
    /// Let this parameter vary; may be given several times.
    #[arg(long, value_name = "NAME", requires = "remember")]
    any: Vec<String>,
    /// Let this parameter vary within a wildcard; may be given several times.
    #[arg(long = "where", value_name = "NAME=GLOB", requires = "remember")]
    matching: Vec<String>,
    /// Which of the options of a question.
    #[arg(long, value_name = "OPTION")]
    option: Option<String>,
    /// Why; whoever asked is told.
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
    /// Print one JSON object.
    #[arg(long)]
    pub json: bool,
}

impl Args {
    /// Approves.
    pub fn run(self, context: &Context) -> Result<ExitCode, Fault> {
        let (now, by) = (reviews::now()?, context.caller().as_str().to_owned());
        let remember = if self.remember { Some(self.grant()?) } else { None };
        let asks_for_more = remember.is_some() || self.option.is_some();
        let answer =
            Answer { by: by.clone(), reason: self.reason.clone(), option: self.option.clone(), remember };
        match context.kernel.approvals()?.approve(&self.id, answer, now) {
            Ok(answered) => self.tell(&answered),
            Err(fault) if fault.kind == ErrorKind::NotFound && !asks_for_more => {
                let reason = self.reason.as_deref();
                reviews::answer_stuck(context, &self.id, Verdict::Approved, &by, reason, self.json)?;
            }
            Err(fault) => return Err(fault),
        }
        Ok(ExitCode::SUCCESS)
    }

    fn grant(&self) -> Result<Remember, Fault> {
        let pair = |text: &String| {
            let pair = text.split_once('=').filter(|(name, _)| !name.is_empty());
            pair.map(|(name, glob)| (name.to_owned(), glob.to_owned())).ok_or_else(|| {
                Fault::new(ErrorKind::Usage, format!("`{text}` is not a parameter and a wildcard"))
                    .with_hint("--where NAME=GLOB, for example --where 'path=src/**'")
            })
        };
        let matching = self.matching.iter().map(pair).collect::<Result<_, _>>()?;
        Ok(Remember { uses: self.uses, expires: lifetime(&self.expires)?, any: self.any.clone(), matching })
    }

    fn tell(&self, Answered { approval, grant }: &Answered) {
        if self.json {
            printer::json(&json!({"status": "success", "approval": approval, "grant": grant}));
            return;
        }
        let about = approval.tool.as_ref().map_or("the question".to_owned(), |tool| format!("`{tool}`"));
        printer::note(format!("approved `{}`: {about} of `{}`", approval.id, approval.caller));
        if let Some(grant) = grant {
            let (id, until) = (paint(BOLD, &grant.id), grant.expires_at);
            printer::note(format!("grant {id}: {} until {until:.0}", count(grant.uses, "call")));
        }
    }
}

/// A length of time with its unit.
fn lifetime(text: &str) -> Result<Duration, Fault> {
    let unit = |unit: char| match unit {
        's' => Some(1),
        'm' => Some(60),
        'h' => Some(3600),
        'd' => Some(86_400),
        'w' => Some(604_800),
        _ => None,
    };
    let seconds = text.char_indices().last().and_then(|(at, last)| {
        let number: u64 = text.get(..at)?.parse().ok()?;
        number.checked_mul(unit(last)?).filter(|seconds| (1..=MOST_SECONDS).contains(seconds))
    });
    seconds.map(Duration::from_secs).ok_or_else(|| {
        Fault::new(ErrorKind::Usage, format!("`{text}` is not a time between a second and ten years"))
            .with_hint("a number and a unit: 45s, 30m, 12h, 7d or 2w")
    })
}

/// Ten years: more is a mistake.
const MOST_SECONDS: u64 = 315_360_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_a_unit() {
        for (text, seconds) in
            [("45s", 45), ("30m", 1800), ("12h", 43_200), ("7d", 604_800), ("2w", 1_209_600)]
        {
            assert_eq!(lifetime(text).unwrap(), Duration::from_secs(seconds));
        }
        for text in ["", "7", "d", "0d", "-1d", "1.5h", "7 d", "9999999w", "7é", "99999999999999999999s"] {
            assert!(lifetime(text).is_err(), "{text}");
        }
    }
}
