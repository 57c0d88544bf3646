//! One policy in three languages: so many tools, each open but for one argument, each closed to everybody in production.

use anyhow::{Result, anyhow};
use kiwi_rules::{AdmissionRequest, Answer, Mode, Permission, RuleFile, RuleRegistry, evaluate_admission};
use serde_json::{Map, Value, json};
use std::fmt::Write as _;

/// A call to decide about.
pub struct Question {
    pub tool: String,
    pub args: Map<String, Value>,
}

impl Question {
    /// Calls spread over the policy, and one of a tool that it does not know.
    pub fn about(rules: usize) -> Vec<Self> {
        let mut questions: Vec<Self> = (0..16)
            .map(|number| Self {
                tool: format!("tool_{}", number * rules / 16),
                args: args(if number % 3 == 0 { "production" } else { "staging" }),
            })
            .collect();
        questions.push(Self { tool: "unknown".into(), args: args("staging") });
        questions
    }
}

fn args(target: &str) -> Map<String, Value> {
    let Value::Object(args) = json!({"target": target, "count": 3}) else { return Map::new() };
    args
}

/// κ.
pub struct Kappa(RuleRegistry);

impl Kappa {
    pub fn new(rules: usize) -> Result<Self> {
        let mut text = String::new();
        for number in 0..rules {
            writeln!(
                text,
                "rule rule_{number} {{ guards {{ $tool == \"tool_{number}\" and $args.target == \"production\" -> reject \"not by hand\" $tool == \"tool_{number}\" -> admit }} effects {{ }} }}"
            )?;
        }
        let pieces = pieces(&text);
        let files: Vec<RuleFile<'_>> =
            pieces.iter().map(|(name, piece)| RuleFile { name, bytes: piece.as_bytes() }).collect();
        Ok(Self(RuleRegistry::load(&files).map_err(|error| anyhow!("{error}"))?))
    }

    pub fn allows(&self, question: &Question) -> bool {
        let request = AdmissionRequest {
            caller: "cli:bench",
            tool: &question.tool,
            mode: Mode::Normal,
            args: &question.args,
            tool_type: "script",
            space: "project",
            mutates: false,
            state: &Map::new(),
            interactive: false,
            permission: Permission { allowed: true, answer: Answer::Allow },
            rule_version: None,
        };
        evaluate_admission(&request, &self.0).answer() == Answer::Allow
    }
}

/// A rule file has a size limit, so many rules are several files.
fn pieces(text: &str) -> Vec<(String, String)> {
    let lines: Vec<&str> = text.lines().collect();
    lines
        .chunks(1000)
        .enumerate()
        .map(|(number, lines)| (format!("{number}.kappa"), lines.join("\n")))
        .collect()
}

#[cfg(feature = "peers")]
pub use peers::{Cedar, Rego};

#[cfg(feature = "peers")]
mod peers {
    use super::{Question, Result, anyhow, json};
    use cedar_policy::{
        Authorizer, Context, Decision, Entities, EntityId, EntityTypeName, EntityUid, PolicySet, Request,
    };
    use std::fmt::Write as _;
    use std::str::FromStr as _;

    /// Rego, by regorus.
    pub struct Rego(regorus::Engine);

    impl Rego {
        pub fn new(rules: usize) -> Result<Self> {
            let mut text = String::from("package gate\nimport rego.v1\ndefault allow := false\n");
            for number in 0..rules {
                writeln!(
                    text,
                    "deny if {{ input.tool == \"tool_{number}\"; input.args.target == \"production\" }}"
                )?;
                writeln!(text, "allow if {{ input.tool == \"tool_{number}\"; not deny }}")?;
            }
            let mut engine = regorus::Engine::new();
            engine.add_policy("gate.rego".into(), text)?;
            Ok(Self(engine))
        }

        pub fn allows(&mut self, question: &Question) -> Result<bool> {
            let input = json!({"tool": question.tool, "args": question.args}).to_string();
            self.0.set_input(regorus::Value::from_json_str(&input)?);
            let answer = self.0.eval_rule("data.gate.allow".into())?;
            Ok(answer == regorus::Value::from(true))
        }
    }

    /// Cedar.
    pub struct Cedar {
        authorizer: Authorizer,
        policies: PolicySet,
        entities: Entities,
        caller: EntityUid,
        action: EntityUid,
    }

    impl Cedar {
        pub fn new(rules: usize) -> Result<Self> {
            let mut text = String::new();
            for number in 0..rules {
                writeln!(text, "permit(principal, action, resource == Tool::\"tool_{number}\");")?;
                writeln!(
                    text,
                    "forbid(principal, action, resource == Tool::\"tool_{number}\") when {{ context.target == \"production\" }};"
                )?;
            }
            Ok(Self {
                authorizer: Authorizer::new(),
                policies: PolicySet::from_str(&text).map_err(|error| anyhow!("{error}"))?,
                entities: Entities::empty(),
                caller: entity("Caller", "bench")?,
                action: entity("Action", "call")?,
            })
        }

        pub fn allows(&self, question: &Question) -> Result<bool> {
            let context = Context::from_json_value(serde_json::Value::Object(question.args.clone()), None)?;
            let tool = entity("Tool", &question.tool)?;
            let request = Request::new(self.caller.clone(), self.action.clone(), tool, context, None)?;
            let answer = self.authorizer.is_authorized(&request, &self.policies, &self.entities);
            Ok(answer.decision() == Decision::Allow)
        }
    }

    fn entity(kind: &str, name: &str) -> Result<EntityUid> {
        Ok(EntityUid::from_type_name_and_id(EntityTypeName::from_str(kind)?, EntityId::new(name)))
    }
}
