use kiwi_gate::Explanation;
use kiwi_model::Fault;
use kiwi_rules::{Answer, RuleAnswer, Verdict};
use kiwi_space::Transport;
use serde_json::{Value, json};
use std::process::ExitCode;

use super::super::call::CallArgs;
use crate::context::Context;
use crate::printer::{self, BAD, BOLD, DIM, GOOD, WARN, paint};

/// Show what the gate would say about a call, judge by judge and why, without making it.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(flatten)]
    call: CallArgs,
    /// As if an agent had asked, over MCP.
    #[arg(long)]
    agent: bool,
    /// Print one JSON object.
    #[arg(long)]
    pub json: bool,
}

impl Args {
    /// Explains.
    pub fn run(self, context: &Context) -> Result<ExitCode, Fault> {
        let mut request = self.call.request(context)?;
        if self.agent {
            request.transport = Transport::Mcp;
            request.is_interactive = false;
        }
        let explanation = context.kernel.explain(&request)?;
        if self.json {
            let mut value = json!(explanation);
            if let Some(map) = value.as_object_mut() {
                map.insert("status".into(), "success".into());
            }
            printer::json(&value);
        } else {
            show(&explanation);
        }
        Ok(ExitCode::SUCCESS)
    }
}

fn show(it: &Explanation) {
    let tool = it.tool.as_ref().map(|tool| format!("{}@{}", tool.id, tool.version)).unwrap_or_default();
    printer::line(format!("{} {}", paint(BOLD, tool), answer(it.answer)));
    printer::line(paint(DIM, format!("profile {}, isolation {}", it.profile, it.isolation.as_str())));
    for judge in &it.judges {
        printer::line(format!("  {:<11} {}", judge.judge, answer(judge.answer)));
        if judge.judge == "rules" {
            it.verdicts.iter().for_each(|verdict| printer::line(format!("      {}", told(verdict))));
        }
        // What a rule said stands above.
        let is_told = |reason: &Value| reason.get("rule").is_some() || reason["kind"] == "asked";
        let is_told = |reason: &Value| judge.judge == "rules" && is_told(reason);
        let untold = judge.sentences.iter().zip(&judge.reasons).filter(|(_, reason)| !is_told(reason));
        untold.for_each(|(sentence, _)| printer::line(format!("      {sentence}")));
    }
    printer::note(paint(DIM, format!("rules {}", it.rules_version)));
}

fn told(verdict: &Verdict) -> String {
    let what = match &verdict.answer {
        RuleAnswer::Admit => "admits".to_owned(),
        RuleAnswer::Ask(reason) => format!("asks: {reason}"),
        RuleAnswer::Deny(reason) => format!("denies: {}", reason.render()),
    };
    let guard = verdict.guard.map(|guard| format!(", guard {guard}")).unwrap_or_default();
    format!("rule `{}`{guard} {what}", verdict.rule)
}

fn answer(answer: Answer) -> String {
    let style = match answer {
        Answer::Allow => GOOD,
        Answer::Ask => WARN,
        Answer::Deny => BAD,
    };
    paint(style, answer)
}
