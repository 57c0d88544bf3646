use jiff::Timestamp;
use kiwi_gate::{Approval, ApprovalKind, ApprovalState, Approvals, Help, Standing, StuckReview, Verdict};
use kiwi_model::{ErrorKind, Fault};
use serde::Serialize;
use serde_json::{Value, json};
use std::process::ExitCode;

use crate::context::Context;
use crate::printer::{self, BOLD, DIM, WARN, paint};

/// Show what waits for a person: calls that ask, questions of agents, sessions that are stuck, and what cannot be read.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Also what was answered, used, or came to nothing.
    #[arg(long)]
    all: bool,
    /// Print one JSON object.
    #[arg(long)]
    pub json: bool,
}

/// One line of the queue.
#[derive(Debug, Serialize)]
struct Review {
    id: String,
    /// `call`, `escalation`, `stuck` or `unreadable`.
    kind: &'static str,
    state: &'static str,
    created_at: Option<Timestamp>,
    age_seconds: Option<i64>,
    expires_at: Option<Timestamp>,
    project: Option<String>,
    session: Option<String>,
    caller: Option<String>,
    tool: Option<String>,
    params: Value,
    questions: Value,
    options: Vec<String>,
    decided: Value,
    /// What is wrong with it.
    problem: Option<String>,
}

impl Args {
    /// Shows the queue.
    pub fn run(self, context: &Context) -> Result<ExitCode, Fault> {
        let now = now()?;
        let mut reviews = requests(&context.kernel.approvals()?, now)?;
        reviews.extend(sessions(&context.kernel.help()?, now)?);
        reviews.retain(|review| self.all || review.is_open());
        reviews.sort_by_key(|review| review.created_at);
        if self.json {
            printer::json(&json!({"status": "success", "reviews": reviews}));
            return Ok(ExitCode::SUCCESS);
        }
        for review in &reviews {
            review.show();
        }
        printer::note(match reviews.len() {
            0 => "nothing waits".to_owned(),
            1 => "1 waits; `kiwi approve ID` or `kiwi reject ID` answers".to_owned(),
            some if self.all => format!("{some} in all"),
            some => format!("{some} wait; `kiwi approve ID` or `kiwi reject ID` answers"),
        });
        Ok(ExitCode::SUCCESS)
    }
}

impl Review {
    fn is_open(&self) -> bool {
        self.state == "pending" || self.kind == "unreadable"
    }

    fn show(&self) {
        let what = self.tool.as_deref().unwrap_or(self.kind);
        let age = self.age_seconds.map(age).unwrap_or_default();
        let state = if self.is_open() { String::new() } else { format!("  {}", paint(DIM, self.state)) };
        let caller = plain(self.caller.as_deref().unwrap_or_default());
        let (id, age) = (paint(BOLD, plain(&self.id)), paint(DIM, age));
        printer::line(format!("{id}  {what}  {caller}  {age}{state}"));
        if let Value::Object(params) = &self.params {
            for (name, value) in params {
                printer::line(format!("    {} = {}", plain(name), plain(&value.to_string())));
            }
        }
        for question in self.questions.as_array().into_iter().flatten() {
            let text = |name: &str| plain(question.get(name).and_then(Value::as_str).unwrap_or_default());
            printer::line(format!("    {} {}", paint(DIM, format!("{}:", text("by"))), text("question")));
        }
        if !self.options.is_empty() {
            printer::line(format!("    --option {}", plain(&self.options.join(" | "))));
        }
        if let Some(problem) = &self.problem {
            printer::line(format!("    {}", paint(WARN, plain(problem))));
        }
    }
}

fn requests(approvals: &Approvals, now: Timestamp) -> Result<Vec<Review>, Fault> {
    let key = approvals.key()?;
    let entries = approvals.all()?.into_iter();
    let mut reviews: Vec<Review> = entries
        .map(|entry| match entry.item {
            Ok(approval) => {
                let standing = approval.standing(key.as_ref(), now);
                of_approval(&approval, standing, now)
            }
            Err(why) => {
                let hint = format!("`kiwi reject {}` removes it", entry.id);
                unreadable(entry.id, format!("{why}; {hint}"))
            }
        })
        .collect();
    for entry in approvals.grants()? {
        let problem = match entry.item {
            Ok(grant) if grant.is_signed(key.as_ref()) => continue,
            Ok(_) => "a grant that your approval key did not sign".to_owned(),
            Err(why) => format!("a grant: {why}"),
        };
        let hint = format!("{problem}; `kiwi grants revoke {}` removes it", entry.id);
        reviews.push(unreadable(entry.id, hint));
    }
    Ok(reviews)
}

fn sessions(help: &Help<'_>, now: Timestamp) -> Result<Vec<Review>, Fault> {
    let mut reviews: Vec<Review> = help.stuck()?.into_iter().map(|review| of_stuck(review, now)).collect();
    for (session, why) in help.unreadable()? {
        reviews.push(unreadable(session, format!("signals of a session: {why}")));
    }
    Ok(reviews)
}

fn of_approval(approval: &Approval, standing: Standing, now: Timestamp) -> Review {
    let (state, problem) = match standing {
        Standing::Is(state) => (state, None),
        Standing::Unsigned => {
            let problem =
                "its file claims an answer that your approval key did not sign; it counts as not given";
            (ApprovalState::Pending, Some(problem.to_owned()))
        }
    };
    let kind = match approval.kind {
        ApprovalKind::Call => "call",
        ApprovalKind::Escalation => "escalation",
    };
    Review {
        id: approval.id.clone(),
        kind,
        state: state.as_str(),
        created_at: Some(approval.created_at),
        age_seconds: Some(now.duration_since(approval.created_at).as_secs()),
        expires_at: Some(approval.expires_at),
        project: approval.project.clone(),
        session: Some(approval.session.clone()),
        caller: Some(approval.caller.clone()),
        tool: approval.tool.as_ref().map(ToString::to_string),
        params: approval.params.clone(),
        questions: json!(approval.questions),
        options: approval.options.clone(),
        decided: if standing == Standing::Unsigned { Value::Null } else { json!(approval.decided) },
        problem,
    }
}

fn of_stuck(review: StuckReview, now: Timestamp) -> Review {
    let signal = review.signal;
    let reason = signal.body.get("reason").cloned().unwrap_or_default();
    Review {
        kind: "stuck",
        state: "pending",
        created_at: Some(signal.at),
        age_seconds: Some(now.duration_since(signal.at).as_secs()),
        session: Some(review.session),
        questions: json!([{"by": signal.caller, "question": reason}]),
        caller: Some(signal.caller),
        params: json!({"attempts": signal.body.get("attempts"), "context": signal.body.get("context")}),
        ..unreadable(review.id, String::new())
    }
    .without_problem()
}

fn unreadable(id: String, problem: String) -> Review {
    Review {
        id,
        kind: "unreadable",
        state: "unreadable",
        created_at: None,
        age_seconds: None,
        expires_at: None,
        project: None,
        session: None,
        caller: None,
        tool: None,
        params: Value::Null,
        questions: json!([]),
        options: Vec::new(),
        decided: Value::Null,
        problem: Some(problem),
    }
}

impl Review {
    fn without_problem(self) -> Self {
        Self { problem: None, ..self }
    }
}

/// Answers a session that is stuck.
pub fn answer_stuck(
    context: &Context,
    id: &str,
    verdict: Verdict,
    by: &str,
    reason: Option<&str>,
    json: bool,
) -> Result<(), Fault> {
    let answer = context.kernel.help()?.answer(id, verdict, by, reason, now()?)?;
    if json {
        printer::json(&json!({"status": "success", "answer": answer}));
    } else {
        printer::note(format!("{} session `{}`", verdict.as_str(), answer.session));
    }
    Ok(())
}

/// A text that an agent wrote, such that it cannot move the cursor, change colours or turn the direction of reading: what
/// a person approves is what they see.
pub fn plain(text: &str) -> String {
    let is_hidden = |c: char| {
        c.is_control()
            || matches!(c, '\u{ad}' | '\u{61c}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}')
    };
    text.chars().fold(String::with_capacity(text.len()), |mut shown, c| {
        if is_hidden(c) {
            shown.extend(c.escape_default());
        } else {
            shown.push(c);
        }
        shown
    })
}

/// The time, as files hold it.
pub fn now() -> Result<Timestamp, Fault> {
    Timestamp::try_from(Context::now())
        .map_err(|error| Fault::new(ErrorKind::Internal, format!("the clock makes no sense: {error}")))
}

fn age(seconds: i64) -> String {
    match seconds {
        ..60 => "just now".to_owned(),
        60..3600 => format!("{} min ago", seconds / 60),
        3600..86_400 => format!("{} h ago", seconds / 3600),
        _ => format!("{} days ago", seconds / 86_400),
    }
}
