use super::read::{KNOWN, STRICT, parse};
use super::*;
use serde_json::Value;

fn file(text: &str) -> (ConfigFile, Vec<String>) {
    let mut warnings = Vec::new();
    let file = parse(text.as_bytes(), Path::new("kiwi.toml"), &mut warnings)
        .unwrap_or_else(|error| panic!("{error}"));
    (file, warnings)
}

#[track_caller]
fn check(user: &str, project: &str, mode: Mode, timeout: u64, output: u64, warned: usize) {
    let mut warnings = Vec::new();
    let config = Config::in_force(&file(user).0, &file(project).0, &mut warnings);
    assert_eq!(
        (config.mode, config.limits.timeout.as_secs(), config.limits.output),
        (mode, timeout, output),
        "{user} | {project}"
    );
    assert_eq!(warnings.len(), warned, "{warnings:?}");
}

#[test]
fn a_project_tightens_and_never_widens() {
    let (lenient, strict) = ("[validation]\nmode = \"lenient\"", "[validation]\nmode = \"strict\"");
    check("", "", Mode::Strict, 300, 8 << 20, 0);
    check(lenient, "", Mode::Lenient, 300, 8 << 20, 0);
    check(lenient, lenient, Mode::Lenient, 300, 8 << 20, 0);
    check(lenient, strict, Mode::Strict, 300, 8 << 20, 0);
    check("", lenient, Mode::Strict, 300, 8 << 20, 1);
    check(strict, lenient, Mode::Strict, 300, 8 << 20, 1);
    let limits = |timeout: u64, output: u64| format!("[limits]\ntimeout = {timeout}\noutput = {output}");
    check(&limits(600, 1 << 30), "", Mode::Strict, 600, 1 << 30, 0);
    check(&limits(600, 100), &limits(60, 50), Mode::Strict, 60, 50, 0);
    check(&limits(600, 100), &limits(900, 200), Mode::Strict, 600, 100, 2);
    check("", &limits(10, 1 << 30), Mode::Strict, 10, 8 << 20, 1);
}

#[test]
fn the_stricter_lock_mode_holds() {
    let mode = |mode: &str| file(&format!("[lockfiles]\nmode = \"{mode}\"")).0;
    let in_force =
        |user: &ConfigFile, project: &ConfigFile| Config::in_force(user, project, &mut Vec::new()).lock_mode;
    let silent = ConfigFile::default();
    assert_eq!(in_force(&silent, &silent), None);
    assert_eq!(in_force(&silent, &mode("off")), Some(LockMode::Off));
    assert_eq!(in_force(&mode("strict"), &mode("off")), Some(LockMode::Strict));
    assert_eq!(in_force(&mode("off"), &mode("warn")), Some(LockMode::Warn));
}

#[test]
fn a_project_has_no_say_about_the_keyring() {
    let keyring = |value: &str| file(&format!("[credentials]\nkeyring = \"{value}\"")).0;
    let silent = ConfigFile::default();
    for (user, project, expected, warned) in [
        (&silent, &silent, KeyringUse::Auto, 0),
        (&keyring("off"), &silent, KeyringUse::Off, 0),
        (&silent, &keyring("off"), KeyringUse::Auto, 1),
        (&keyring("off"), &keyring("auto"), KeyringUse::Off, 1),
    ] {
        let mut warnings = Vec::new();
        assert_eq!(Config::in_force(user, project, &mut warnings).keyring, expected);
        assert_eq!(warnings.len(), warned, "{warnings:?}");
    }
}

#[test]
fn a_project_has_no_say_about_who_builds_walls() {
    let backend = |value: &str| file(&format!("[sandbox]\nbackend = \"{value}\"")).0;
    let silent = ConfigFile::default();
    for (user, project, expected, warned) in [
        (&silent, &silent, SandboxBackend::Auto, 0),
        (&backend("landlock"), &silent, SandboxBackend::Landlock, 0),
        (&silent, &backend("docker"), SandboxBackend::Auto, 1),
        (&backend("podman"), &backend("bwrap"), SandboxBackend::Podman, 1),
    ] {
        let mut warnings = Vec::new();
        assert_eq!(Config::in_force(user, project, &mut warnings).sandbox, expected);
        assert_eq!(warnings.len(), warned, "{warnings:?}");
    }
}

#[test]
fn a_project_chooses_the_interpreter_for_its_own_tools_only() {
    let python = |name: &str| file(&format!("[python]\ninterpreter = \"{name}\"")).0;
    let config = Config::in_force(&ConfigFile::default(), &python("evil"), &mut Vec::new());
    assert_eq!(config.python_interpreter(Space::Project), Some("evil"));
    assert_eq!(
        (config.python_interpreter(Space::User), config.python_interpreter(Space::System)),
        (None, None)
    );
    let config = Config::in_force(&python("mine"), &python("theirs"), &mut Vec::new());
    assert_eq!(
        (config.python_interpreter(Space::Project), config.python_interpreter(Space::User)),
        (Some("theirs"), Some("mine"))
    );
}

#[test]
fn what_is_wrong_is_named_with_its_place() {
    for (text, expect) in [
        (
            "[limits]\ntimeout = 0\n",
            "kiwi.toml:2:11: invalid value: integer `0`, expected a whole number of seconds from 1 to 31536000",
        ),
        ("[limits]\ntimeout = -1\n", "kiwi.toml:2:11: invalid value"),
        ("[limits]\n  timeout = \"x\"\n", "kiwi.toml:2:13: invalid type"),
        (
            "[validation]\nmode = \"lax\"\n",
            "kiwi.toml:2:8: unknown value `lax`, expected `strict` or `lenient`",
        ),
        ("validation = 1\n", "kiwi.toml:1:14: invalid type: integer `1`, expected a table"),
        ("[validation\n", "kiwi.toml:1:12: "),
        ("a = 1\na = 2\n", "kiwi.toml:2:1: "),
    ] {
        let error =
            parse(text.as_bytes(), Path::new("kiwi.toml"), &mut Vec::new()).expect_err(text).to_string();
        assert!(error.starts_with(expect), "{error}\ndoes not start with\n{expect}");
    }
    assert!(parse(b"a = \"\xff\"", Path::new("x"), &mut Vec::new()).is_err());
}

#[test]
fn unknown_keys_are_warned_about() {
    let (_, warnings) = file("[limits]\ntimeout = 5\nmemory = 1\n[colours]\nx = 1\n");
    assert_eq!(warnings.len(), 2, "{warnings:?}");
    assert!(warnings.iter().any(|warning| warning.contains("`limits.memory`")));
    assert!(warnings.iter().any(|warning| warning.contains("`colours`")));
}

#[test]
fn the_known_keys_are_the_keys_of_the_schema() {
    let schema = config_schema();
    let resolve = |value: &Value| match value["$ref"].as_str() {
        Some(reference) => schema.pointer(reference.trim_start_matches('#')).cloned().expect("definition"),
        None => value.clone(),
    };
    let sections = schema["properties"].as_object().expect("properties");
    let (strict, named): (Vec<_>, Vec<_>) =
        sections.iter().partition(|(name, _)| STRICT.contains(&name.as_str()));
    assert_eq!(strict.len(), STRICT.len());
    let mut found: Vec<(String, Vec<String>)> = named
        .into_iter()
        .map(|(name, section)| {
            let mut keys: Vec<String> =
                resolve(section)["properties"].as_object().expect("keys").keys().cloned().collect();
            keys.sort();
            (name.clone(), keys)
        })
        .collect();
    found.sort();
    let known: Vec<(String, Vec<String>)> = KNOWN
        .iter()
        .map(|(name, keys)| ((*name).to_owned(), keys.iter().map(|key| (*key).to_owned()).collect()))
        .collect();
    assert_eq!(found, known);
}

#[test]
fn a_project_narrows_a_profile_and_never_widens_it() {
    let user =
        "[profiles.mcp]\nisolation = \"restricted\"\n[profiles.mine]\neverything = true\nmode = \"admin\"\n";
    let project = "[transports]\nmcp = \"mine\"\n[profiles.mcp]\nisolation = \"trusted\"\nspaces = [\"user\", \"project\"]\nask = [\"deploy\"]\nmode = \"admin\"\npermissions = {filesystem_read = [\"src/**\"]}\n";
    let mut warnings = Vec::new();
    let config = Config::in_force(&file(user).0, &file(project).0, &mut warnings);
    assert!(warnings.iter().any(|warning| warning.contains("admin")), "{warnings:?}");
    let profile = config.profile(Transport::Mcp, false, None).expect("profile");
    assert_eq!(profile.name, "mcp+mine");
    assert_eq!((profile.mode, profile.isolation), (ProfileMode::Normal, kiwi_model::Isolation::Restricted));
    assert_eq!(profile.spaces, [Space::Project]);
    assert!(profile.is_agent && profile.ask.contains(&"deploy".to_owned()));
    assert_eq!(profile.layers.len(), 2, "{:?}", profile.layers);
    let admin = config.profile(Transport::Cli, false, Some("mine")).expect("profile");
    assert_eq!((admin.mode, admin.layers.len()), (ProfileMode::Normal, 0));
    assert!(config.profile(Transport::Cli, false, Some("nobody")).is_err());
}

#[test]
fn profiles_of_transports() {
    let config = Config::default();
    let name = |transport, is_unattended| config.profile(transport, is_unattended, None).expect("profile");
    assert_eq!(name(Transport::Cli, false).name, "cli");
    let ci = name(Transport::Cli, true);
    assert_eq!((ci.name.as_str(), ci.on_ask, ci.layers.len()), ("ci", OnAsk::Deny, 0));
    let mcp = name(Transport::Mcp, true);
    assert!(mcp.name == "mcp" && mcp.is_agent && mcp.isolation == kiwi_model::Isolation::Sandboxed);
    let (_, warnings) = file("[profiles.x]\nask = []\n");
    assert!(warnings.is_empty(), "{warnings:?}");
    let misspelt = parse(b"[profiles.x]\nasks = []\n", Path::new("kiwi.toml"), &mut Vec::new());
    assert!(misspelt.expect_err("refused").to_string().contains("unknown field `asks`"));
}

#[test]
fn what_decides_is_read_strictly() {
    for text in [
        "[budget]\ncall = 1\n",
        "[loops]\nrepeat = 1\n",
        "[rates.x]\nhour = 1\n",
        "[transports]\nhttp = \"x\"\n",
        "[approvals]\nx = 1\n",
    ] {
        let error =
            parse(text.as_bytes(), Path::new("kiwi.toml"), &mut Vec::new()).expect_err(text).to_string();
        assert!(error.contains("unknown field"), "{error}");
    }
}
