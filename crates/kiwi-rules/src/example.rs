//! Examples in rule files: what a rule, or a file, must say to a request. A file that breaks its own does not load.

use serde_json::Value;

use crate::admission::judge;
use crate::problem::Complaint;
use crate::rule::Rule;
use crate::syntax::{ExampleSyntax, Verb};
use crate::{Decision, RecordedRequest};

/// What is wrong with the examples of some rules, judged as if these were the whole ruleset.
pub(crate) fn check<'a>(
    examples: &'a [ExampleSyntax],
    rules: &'a [&'a Rule],
) -> impl Iterator<Item = Complaint> + 'a {
    examples.iter().filter_map(|example| complaint(example, rules))
}

fn complaint(example: &ExampleSyntax, rules: &[&Rule]) -> Option<Complaint> {
    let request = match serde_json::from_value::<RecordedRequest>(Value::Object(example.request.clone())) {
        Ok(request) => request,
        Err(error) => {
            let complaint = Complaint::new(example.span, format!("this is not a request: {error}"));
            return Some(complaint.with_hint("the keys are the names behind `$`, such as `tool` and `args`"));
        }
    };
    let request = request.request();
    let (decision, _) = judge(&request, rules.iter().copied());
    let (verb, why) = match &decision {
        Decision::Admit { .. } => (Verb::Admits, String::new()),
        Decision::Ask { asked, .. } => {
            (Verb::Asks, asked.first().map(|asked| format!(" (rule `{}`)", asked.rule)).unwrap_or_default())
        }
        Decision::Deny { reason, .. } => (Verb::Rejects, format!(" ({reason})")),
    };
    (verb != example.verb).then(|| {
        let told = match verb {
            Verb::Admits => "is admitted",
            Verb::Asks => "is asked about",
            Verb::Rejects => "is rejected",
        };
        let message = format!("the example says `{}`, but this request {told}{why}", example.verb.as_str());
        Complaint::new(example.span, message).with_hint("mend the rule, or the example if the rule is right")
    })
}
