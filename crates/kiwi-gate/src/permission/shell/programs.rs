//! Programs with options by which they run something else.

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
const GIT_SETTINGS: [&str; 19] = [
    "alias.",
    "browser.",
    "core.askpass",
    "core.editor",
    "core.fsmonitor",
    "core.gitproxy",
    "core.hookspath",
    "core.pager",
    "core.sshcommand",
    "credential.",
    "diff.",
    "difftool.",
    "filter.",
    "gpg.",
    "include",
    "merge.",
    "mergetool.",
    "pager.",
    "sequence.editor",
];

/// Whether `git` runs nothing but itself.
pub(super) fn git(args: &[Word]) -> Result<(), String> {
    let refuse = |what: &str| Err(format!("`{what}` lets `git` run something else"));
    let mut subcommand: Option<&str> = None;
    let mut rest = args.iter();
    while let Some(word) = rest.next() {
        let Some(text) = word.fixed() else {
            if subcommand.is_none() || word.may_be_option() {
                return Err("what `git` is told is only known when it runs".into());
            }
            continue;
        };
        let lower = text.to_ascii_lowercase();
        let Some(command) = subcommand else {
            match text {
                "-C" => {
                    rest.next();
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
        let is_short = match command {
            "clone" | "fetch" | "pull" | "ls-remote" => {
                text.starts_with("-c") || (text.starts_with("-u") && command == "clone")
            }
            "rebase" => text.starts_with("-x"),
            "grep" => text.starts_with("-O"),
            "bisect" | "hook" => text == "run",
            "submodule" => text == "foreach",
            "config" => {
                GIT_SETTINGS.iter().any(|setting| lower.starts_with(setting))
                    || lower == "-e"
                    || lower == "--edit"
            }
            _ => false,
        };
        if is_listed || is_short || lower.contains("ext::") {
            return refuse(text);
        }
    }
    Ok(())
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
            if word.may_be_option() {
                return Err("what `tar` is told is only known when it runs".into());
            }
            continue;
        };
        let option = text.split_once('=').map_or(text, |(option, _)| option);
        let is_long = option.len() > 3
            && option.starts_with("--")
            && TAR_OPTIONS.iter().any(|listed| listed.starts_with(option));
        // The first word may be a bundle of letters without a dash.
        let is_bundle = (text.starts_with('-') && !text.starts_with("--")) || at == 0;
        let is_short = is_bundle && text.contains(['I', 'F']);
        // `host:file` is fetched by a remote shell.
        if is_long || is_short {
            return Err(format!("`{text}` lets `tar` run something else"));
        }
    }
    Ok(())
}
