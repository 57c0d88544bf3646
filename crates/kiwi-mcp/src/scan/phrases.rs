//! Phrases that speak to the model instead of about the tool.

use std::collections::BTreeSet;

use super::Suspicion;
use super::words::Part::{Any, Gap, Like};
use super::words::{Part, Words};

/// Marks by which prompts are put together. No description needs them.
const TAGS: [&str; 17] = [
    "<important>",
    "</important>",
    "<system>",
    "</system>",
    "<|im_start|>",
    "<|im_end|>",
    "<|system|>",
    "<|user|>",
    "<|assistant|>",
    "<system-reminder>",
    "<system_prompt>",
    "<secret>",
    "<hidden>",
    "[inst]",
    "<<sys>>",
    "<instructions>",
    "</tool_response>",
];

const READ: &[&str] = &[
    "read", "reads", "reading", "cat", "open", "load", "fetch", "include", "send", "pass", "provide", "copy",
    "upload", "attach", "access", "extract", "contents", "content", "get", "leak", "collect",
];
const USER: &[&str] = &["user", "users", "human", "person", "operator", "developer"];
const OTHERS: &[&str] = &["any", "other", "another", "every", "all", "each"];
const TOOL: &[&str] = &["tool", "tools", "function", "functions", "server", "servers"];
const USING: &[&str] = &["using", "calling", "invoking", "running", "executing", "use", "call", "invoke"];
const DATA: &[&str] = &[
    "content",
    "contents",
    "data",
    "conversation",
    "history",
    "file",
    "files",
    "credentials",
    "credential",
    "token",
    "tokens",
    "key",
    "keys",
    "secret",
    "secrets",
    "everything",
    "password",
    "passwords",
    "environment",
    "results",
    "output",
    "it",
    "them",
    "messages",
    "emails",
];
const WHOLE: &[&str] = &["entire", "full", "whole", "complete", "all"];

/// Patterns, and what they are.
const PATTERNS: [(Suspicion, &[Part]); 17] = [
    (
        Suspicion::Instructions,
        &[
            Any(&["ignore", "disregard", "forget", "override", "bypass", "discard"]),
            Gap(3),
            Any(&[
                "previous",
                "prior",
                "above",
                "earlier",
                "all",
                "other",
                "any",
                "your",
                "system",
                "preceding",
            ]),
            Gap(2),
            Any(&[
                "instructions",
                "instruction",
                "prompts",
                "prompt",
                "rules",
                "guidelines",
                "directives",
                "guardrails",
            ]),
        ],
    ),
    (
        Suspicion::Instructions,
        &[
            Any(&["not", "don't", "dont", "never", "without", "avoid"]),
            Gap(2),
            Any(&[
                "tell",
                "telling",
                "inform",
                "informing",
                "mention",
                "mentioning",
                "notify",
                "notifying",
                "alert",
                "alerting",
                "warn",
                "warning",
                "reveal",
                "revealing",
            ]),
            Gap(5),
            Any(USER),
        ],
    ),
    (
        Suspicion::Instructions,
        &[Any(&["hide", "conceal", "keep", "hidden", "secret"]), Gap(6), Any(&["from"]), Gap(1), Any(USER)],
    ),
    (
        Suspicion::Instructions,
        &[
            Any(&[
                "reveal", "print", "repeat", "leak", "output", "include", "pass", "provide", "send", "copy",
                "your",
            ]),
            Gap(3),
            Any(&["system", "developer"]),
            Any(&["prompt", "message", "instructions"]),
        ],
    ),
    (
        Suspicion::Instructions,
        &[Any(&["before", "after"]), Gap(1), Any(USING), Gap(1), Any(OTHERS), Gap(2), Any(TOOL)],
    ),
    (
        Suspicion::Instructions,
        &[Any(&["prior"]), Any(&["to"]), Any(USING), Gap(1), Any(OTHERS), Gap(2), Any(TOOL)],
    ),
    (Suspicion::Instructions, &[Any(&["you"]), Any(&["are"]), Any(&["now"]), Any(&["a", "an", "in", "the"])]),
    (
        Suspicion::Instructions,
        &[Any(&["without"]), Any(&["asking", "confirming", "permission", "approval"]), Gap(3), Any(USER)],
    ),
    (Suspicion::Exfiltration, &[Any(READ), Gap(8), Like(is_secret_place)]),
    (Suspicion::Exfiltration, &[Any(READ), Gap(3), Any(&[".env"]), Any(&["file", "files", "and", "as"])]),
    (Suspicion::Exfiltration, &[Any(READ), Gap(5), Any(&["private", "ssh"]), Any(&["key", "keys"])]),
    (
        Suspicion::Exfiltration,
        &[
            Any(&[
                "send",
                "sends",
                "post",
                "upload",
                "forward",
                "transmit",
                "exfiltrate",
                "email",
                "submit",
                "leak",
                "report",
                "bcc",
                "copy",
            ]),
            Gap(4),
            Any(DATA),
            Gap(5),
            Any(&["to"]),
            Gap(3),
            Like(is_address),
        ],
    ),
    (
        Suspicion::Exfiltration,
        &[
            Any(&["include", "pass", "provide", "send", "put", "copy", "insert", "append", "attach"]),
            Gap(2),
            Any(WHOLE),
            Gap(3),
            Any(&["conversation", "chat", "session"]),
            Any(&["history", "transcript", "log", "context"]),
        ],
    ),
    (
        Suspicion::Shadowing,
        &[
            Any(&["instead"]),
            Any(&["of"]),
            Gap(2),
            Any(&["other", "another", "any", "all"]),
            Gap(3),
            Any(TOOL),
        ],
    ),
    (
        Suspicion::Shadowing,
        &[
            Any(&["not", "never", "don't", "dont"]),
            Any(&["use", "call", "invoke"]),
            Gap(1),
            Any(OTHERS),
            Gap(2),
            Any(TOOL),
        ],
    ),
    (
        Suspicion::Shadowing,
        &[
            Any(&["when", "whenever", "if"]),
            Gap(4),
            Like(is_tool_of_a_client),
            Gap(4),
            Any(&["called", "used", "invoked", "available", "present"]),
        ],
    ),
    (
        Suspicion::Shadowing,
        &[
            Any(&["changes", "overrides", "modifies", "affects", "side-effect", "sideeffect", "effect"]),
            Gap(5),
            Any(&["behavior", "behaviour", "rules"]),
            Gap(4),
            Any(TOOL),
        ],
    ),
];

/// Words that make an order of a sentence.
const ORDERS: &[&str] = &[
    "must", "always", "never", "instead", "when", "whenever", "before", "after", "should", "first", "don't",
    "not",
];

/// The first mark of a prompt in a text.
pub(super) fn tag(text: &str) -> Option<&'static str> {
    let lower = text.to_ascii_lowercase();
    TAGS.into_iter().find(|tag| lower.contains(tag))
}

/// Every kind of phrase in a text, once.
pub(super) fn find(words: &Words, own: &BTreeSet<&str>, others: &BTreeSet<&str>) -> Vec<(Suspicion, String)> {
    let mut found = Vec::new();
    for (suspicion, pattern) in PATTERNS {
        if let Some(excerpt) = words.find(pattern) {
            found.push((suspicion, excerpt));
        }
    }
    found.extend(foreign(words, own, others).map(|excerpt| (Suspicion::Shadowing, excerpt)));
    found
}

/// Another server's tool, named in an order. Only names that are no everyday words count.
fn foreign(words: &Words, own: &BTreeSet<&str>, others: &BTreeSet<&str>) -> Option<String> {
    if others.is_empty() {
        return None;
    }
    words.0.iter().enumerate().find_map(|(at, word)| {
        let is_name = word.contains(['_', '-', '.']) && word.len() > 4;
        if !is_name || !others.contains(word.as_str()) || own.contains(word.as_str()) {
            return None;
        }
        let around = words.0.get(at.saturating_sub(8)..(at + 9).min(words.0.len())).unwrap_or_default();
        around.iter().any(|word| ORDERS.contains(&word.as_str())).then(|| around.join(" "))
    })
}

/// `mcp_tool_send_email`, `mcp__mail__send`: how clients spell tools of servers.
fn is_tool_of_a_client(word: &str) -> bool {
    word.starts_with("mcp_") || word.starts_with("mcp__")
}

fn is_address(word: &str) -> bool {
    let is_mail = word.split_once('@').is_some_and(|(name, host)| !name.is_empty() && host.contains('.'));
    word.starts_with("http://") || word.starts_with("https://") || is_mail
}

fn is_secret_place(word: &str) -> bool {
    const PLACES: [&str; 14] = [
        ".ssh/",
        "id_rsa",
        "id_ed25519",
        ".aws/credentials",
        "/etc/passwd",
        "/etc/shadow",
        ".netrc",
        ".npmrc",
        ".git-credentials",
        ".kube/config",
        ".cursor/mcp.json",
        ".claude.json",
        ".mcp.json",
        ".gnupg",
    ];
    word.ends_with("/.ssh") || word.ends_with("/.env") || PLACES.iter().any(|place| word.contains(place))
}
