//! Programs with options by which they run something else.

use super::options::value;
use super::syntax::Word;

/// Subcommands of `git` that run whatever they are told.
const GIT_RUNS: [&str; 8] = [
    "difftool",
    "mergetool",
    "filter-branch",
    "send-email",
    "daemon",
    "instaweb",
    "web--browse",
    "credential",
];
/// Long options of its subcommands likewise; any beginning of one may stand for it.
const GIT_OPTIONS: [&str; 9] = [
    "--upload-pack",
    "--receive-pack",
    "--exec",
    "--ext-diff",
    "--extcmd",
    "--open-files-in-pager",
    "--config",
    "--config-env",
    "--template",
];
/// Settings that name programs, in lowercase; those that end in `.` are whole sections.
const GIT_SETTINGS: [&str; 32] = [
    "alias.",
    "browser.",
    "core.alternaterefscommand",
    "core.askpass",
    "core.editor",
    "core.fsmonitor",
    "core.gitproxy",
    "core.hookspath",
    "core.pager",
    "core.sshcommand",
    "core.worktree",
    "credential.",
    "diff.",
    "difftool.",
    "filter.",
    "gc.recentobjectshook",
    "gpg.",
    "help.browser",
    "hook.",
    "imap.",
    "include",
    "init.templatedir",
    "instaweb.",
    "interactive.difffilter",
    "man.",
    "merge.",
    "mergetool.",
    "pager.",
    "sequence.editor",
    "submodule.",
    "tar.",
    "trailer.",
];

/// Whether `git` runs nothing but itself.
pub(super) fn git(args: &[Word]) -> Result<(), String> {
    let refuse = |what: &str| Err(format!("`{what}` lets `git` run something else"));
    let mut subcommand: Option<&str> = None;
    let mut rest = args;
    while let Some((word, after)) = rest.split_first() {
        rest = after;
        let Some(text) = word.fixed() else {
            if subcommand.is_none_or(|command| may_lead_on(command, word)) {
                return Err("what `git` is told is only known when it runs".into());
            }
            continue;
        };
        let lower = text.to_ascii_lowercase();
        let Some(command) = subcommand else {
            match text {
                "-C" => {
                    (_, rest) = value(rest)?;
                }
                "--version"
                | "--help"
                | "-h"
                | "-v"
                | "--no-pager"
                | "-P"
                | "--no-optional-locks"
                | "--bare"
                | "--literal-pathspecs"
                | "--no-replace-objects" => {}
                option if option.starts_with('-') => return refuse(option),
                command if GIT_RUNS.contains(&command) => return refuse(command),
                command => subcommand = Some(command),
            }
            continue;
        };
        let option = text.split_once('=').map_or(text, |(option, _)| option);
        let is_listed = option.len() > 2
            && option.starts_with("--")
            && GIT_OPTIONS.iter().any(|listed| listed.starts_with(option) || option.starts_with(listed));
        if is_listed || leads_on(command, text, &lower) || lower.contains("ext::") {
            return refuse(text);
        }
    }
    Ok(())
}

/// Whether a word behind a subcommand makes it run something else.
fn leads_on(command: &str, text: &str, lower: &str) -> bool {
    let has_letter =
        |letters: &[char]| text.starts_with('-') && !text.starts_with("--") && text.contains(letters);
    match command {
        "clone" => has_letter(&['c', 'u']),
        "fetch" | "pull" | "ls-remote" => has_letter(&['c']),
        "rebase" => has_letter(&['x']),
        "grep" => has_letter(&['O']),
        "bisect" | "hook" => text == "run",
        "submodule" => text == "foreach",
        "config" => {
            let option = text.split_once('=').map_or(text, |(option, _)| option);
            let is_beginning = |listed: &str| option.len() > 3 && listed.starts_with(option);
            GIT_SETTINGS.iter().any(|setting| lower.starts_with(setting))
                || [".uploadpack", ".receivepack", ".vcs"].iter().any(|end| lower.ends_with(end))
                || has_letter(&['e'])
                || is_beginning("--edit")
                || is_beginning("--rename-section")
                || matches!(text, "edit" | "rename-section")
        }
        _ => false,
    }
}

/// Whether a word of which only the beginning is known may turn out to be such a word.
fn may_lead_on(command: &str, word: &Word) -> bool {
    let Word::Open { prefix, .. } = word else { return false };
    let lower = prefix.to_ascii_lowercase();
    let may_begin = |beginning: &str| lower.starts_with(beginning) || beginning.starts_with(&lower);
    let is_told = match command {
        "bisect" | "hook" | "submodule" => true,
        "config" => {
            GIT_SETTINGS.iter().chain(&["remote.", "url.", "rename-section"]).any(|told| may_begin(told))
        }
        _ => false,
    };
    is_told || word.may_be_option() || may_begin("ext::") || lower.contains("ext::")
}

const TAR_OPTIONS: [&str; 9] = [
    "--checkpoint-action",
    "--to-command",
    "--use-compress-program",
    "--info-script",
    "--new-volume-script",
    "--rsh-command",
    "--rmt-command",
    "--options",
    "--use-decompress-program",
];

/// Whether `tar` runs nothing but itself and its usual compressors.
pub(super) fn tar(args: &[Word]) -> Result<(), String> {
    for (at, word) in args.iter().enumerate() {
        let Some(text) = word.fixed() else {
            // The first word may be a bundle of letters without a dash.
            if word.may_be_option() || at == 0 {
                return Err("what `tar` is told is only known when it runs".into());
            }
            continue;
        };
        let option = text.split_once('=').map_or(text, |(option, _)| option);
        let is_long = option.len() > 3
            && option.starts_with("--")
            && TAR_OPTIONS.iter().any(|listed| listed.starts_with(option));
        let is_bundle = (text.starts_with('-') && !text.starts_with("--")) || at == 0;
        let is_short = is_bundle && text.contains(['I', 'F']);
        if is_long || is_short || is_remote(text) {
            return Err(format!("`{text}` lets `tar` run something else"));
        }
    }
    Ok(())
}

/// Whether a word may name an archive as `host:file`, which is fetched by a remote shell.
fn is_remote(text: &str) -> bool {
    let archive = match text.strip_prefix("--").map(|long| long.split_once('=').unwrap_or((long, ""))) {
        Some((name, file)) if "file".starts_with(name) => file,
        Some(_) => return false,
        None => text,
    };
    archive.split_once(':').is_some_and(|(host, _)| !host.contains('/'))
}
