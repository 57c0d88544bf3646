//! Metadata of Python files: literals only, read without Python.
#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::print_stdout,
    clippy::string_slice,
    reason = "a test fails by panicking"
)]

mod common;

use common::Ground;
use kiwi_model::ErrorKind;
use serde_json::{Value, json};

#[track_caller]
fn check(source: impl AsRef<[u8]>, expect: &Value) {
    let ground = Ground::new();
    ground.write("tools/t.py", source);
    assert_eq!(ground.one("t").document, *expect);
}

/// The file is refused at `place` with a message that holds `why`.
#[track_caller]
fn refused(source: impl AsRef<[u8]>, place: &str, why: &str) {
    let ground = Ground::new();
    ground.write("tools/t.py", source);
    let fault = ground.fault("t");
    assert_eq!(fault.kind, ErrorKind::InvalidManifest);
    assert!(fault.message.contains(&format!("t.py:{place}: ")), "{fault} is not at {place}");
    assert!(fault.message.contains(why), "{fault} does not say {why}");
}

#[test]
fn every_name_and_nothing_else() {
    check(
        r#"#!/usr/bin/env python3
"""The docstring is not metadata."""
import os

__version__ = "2.1.0"
__tool_type__ = 'python'
__executor_id__ = "python_runtime"
__category__ = ""
__tool_description__ = "Clean a CSV"
__author__ = get_author()
OTHER = os.environ["X"]
CONFIG_SCHEMA = {"type": "object", "properties": {"input": {"type": "string"}}, "required": ["input"]}
CONFIG = {"timeout": 30, "env": {"A": "b"}}

def execute(params):
    CONFIG = compute()
    return params
"#,
        &json!({
            "version": "2.1.0", "tool_type": "python", "executor": "python_runtime", "category": "", "description": "Clean a CSV",
            "parameters": {"type": "object", "properties": {"input": {"type": "string"}}, "required": ["input"]},
            "config": {"timeout": 30, "env": {"A": "b"}},
        }),
    );
    check("print('nothing')\n", &json!({}));
    check("", &json!({}));
    check("\u{feff}__version__ = '1.0.0'\n", &json!({"version": "1.0.0"}));
    check("__version__: str = '1.0.0'\nCONFIG: dict\n", &json!({"version": "1.0.0"}));
    check("VERSION = __version__ = '1.0.0'\r\n", &json!({"version": "1.0.0"}));
    check("__version__ = '1.0.0'; CONFIG = {}", &json!({"version": "1.0.0", "config": {}}));
    check("if x:\n    __version__ = f()\nclass A:\n    CONFIG = f()\nobj.CONFIG = f()\n", &json!({}));
}

#[test]
fn tricky_literals() {
    let config = |literal: &str, expect: Value| {
        check(format!("CONFIG = {{'v': {literal}}}\n"), &json!({"config": {"v": expect}}));
    };
    config("None", json!(null));
    config("True", json!(true));
    config("-1", json!(-1));
    config("- 1.5", json!(-1.5));
    config("1_000_000", json!(1_000_000));
    config("0xFF", json!(255));
    config("0o17", json!(15));
    config("0b1_01", json!(5));
    config("00", json!(0));
    config("1e3", json!(1000.0));
    config(".5", json!(0.5));
    config("5.", json!(5.0));
    config("1_0.2_5e-1", json!(1.025));
    config("9223372036854775807", json!(i64::MAX));
    config("-9223372036854775807", json!(-i64::MAX));
    config("()", json!([]));
    config("(1,)", json!([1]));
    config("(1)", json!(1));
    config("((('x')))", json!("x"));
    config("[1, (2, [3]), {'a': {}},]", json!([1, [2, [3]], {"a": {}}]));
    config("[1, # one\n  2, # two\n]", json!([1, 2]));
    config("'a' \"b\"\n    '''c'''", json!("abc"));
    config("('a'\n  r'\\n')", json!("a\\n"));
    config("'\\x41\\u00e9\\N\\\\'".replace("\\N", "").as_str(), json!("A\u{e9}\\"));
    config("'''two\n  lines'''", json!("two\n  lines"));
    config("'\u{e9}\u{1F600}'", json!("\u{e9}\u{1F600}"));
    config("{\n  # comment\n  'a': 1,\n  **{},\n}".replace("  **{},\n", "").as_str(), json!({"a": 1}));
    check(
        "CONFIG_SCHEMA = [{'name': 'a', 'type': 'int', 'required': True}]\n",
        &json!({"parameters": [{"name": "a", "type": "int", "required": true}]}),
    );
}

#[test]
fn anything_that_would_have_to_be_run_is_refused_where_it_stands() {
    for (value, column, why) in [
        ("f()", 10, "not a plain literal"),
        ("X", 10, "not a plain literal"),
        ("{'a': f()}", 16, "not a plain literal"),
        ("{'a': 1 + 1}", 16, "not a plain literal"),
        ("{**x}", 11, "not a plain literal"),
        ("{'a', 'b'}", 10, "not a plain literal"),
        ("{k: v for k in x}", 10, "not a plain literal"),
        ("{1: 2}", 11, "a key must be a string"),
        ("{'a': 1, 'a': 2}", 19, "given twice"),
        ("{'a': f'{x}'}", 16, "placeholders"),
        ("{'a': b'x'}", 16, "bytes"),
        ("{'a': 'x' f'y'}", 20, "placeholders"),
        ("{'a': 1j}", 16, "not a plain literal"),
        ("{'a': ~1}", 16, "not a plain literal"),
        ("{'a': +1}", 16, "not a plain literal"),
        ("{'a': not True}", 16, "not a plain literal"),
        ("{'a': -True}", 16, "not a plain literal"),
        ("{'a': ...}", 16, "not a plain literal"),
        ("{'a': 9223372036854775808}", 16, "outside"),
        ("{'a': 1e999}", 16, "not finite"),
        ("{'a': 010}", 16, "not a number"),
        ("{'a': '\\ud800'}", 16, "not a character"),
        ("{'a': '\\N{BULLET}'}", 16, "by name"),
        ("(lambda: {})()", 10, "not a plain literal"),
        ("{} if x else {}", 10, "not a plain literal"),
        ("[] * 3", 10, "not a plain literal"),
    ] {
        refused(format!("import x\nCONFIG = {value}\n"), &format!("2:{column}"), why);
    }
    refused("x = 'é'; CONFIG = f()\n", "1:19", "not a plain literal");
    refused("__version__ = '1.0.0'\n__version__ = '2.0.0'\n", "2:1", "assigned twice");
    refused("CONFIG = {}\nCONFIG += {}\n", "2:1", "changed after");
    refused("__version__, x = '1.0.0', 2\n", "1:1", "by itself");
    refused(format!("CONFIG = {}{}\n", "[".repeat(200), "]".repeat(200)), "1:75", "nested too deeply");
    refused(b"CONFIG = {'a': '\xff'}\n", "1:16", "not UTF-8");
}

#[test]
fn wrong_types_are_reported_where_they_stand() {
    refused("import os\n\n__version__ = 1.0\n", "3:1", "version");
    refused("import os\n__version__ = 'one'\n", "2:1", "not a semantic version");
    refused("x = 1\nCONFIG = [1]\n", "2:1", "config");
    refused("x = 1\n__executor_id__ = 'Not An Id'\n", "2:1", "not a tool id");
    refused("x = 1\nCONFIG = {'timeout': -1}\n", "2:1", "timeout");
    let ground = Ground::new();
    ground.write("tools/t.py", "__tool_type__ = 'primitive'\n");
    assert!(ground.fault("t").message.contains("primitives belong to the system"));
}

#[test]
fn broken_python_matters_only_where_metadata_could_hide() {
    check("__version__ = '1.0.0'\ndef broken(:\n    pass\n", &json!({"version": "1.0.0"}));
    refused("CONFIG = {'a': 1\n", "1:1", "");
    let ground = Ground::new();
    ground.write("tools/t.py", "CONFIG = {'a': }\n");
    assert_eq!(ground.fault("t").kind, ErrorKind::InvalidManifest);
}

#[test]
fn files_built_to_stall_the_parser_do_not() {
    let ground = Ground::new();
    for text in [
        "(".repeat(200_000),
        "[(".repeat(100_000),
        "f(".repeat(100_000),
        "a if ".repeat(50_000),
        "'''".repeat(100_000),
        "\t ".repeat(200_000),
        "CONFIG=".repeat(50_000),
    ] {
        ground.write("tools/t.py", format!("__version__ = '1.0.0'\n{text}\nCONFIG"));
        let start = std::time::Instant::now();
        let _ = ground.find("t");
        assert!(
            start.elapsed().as_secs() < 20,
            "{} took {:?}",
            text.chars().take(8).collect::<String>(),
            start.elapsed()
        );
    }
}

#[test]
fn a_comment_block_says_what_has_no_name() {
    check(
        "#!/usr/bin/env python3\n# Clean a CSV.\n# kiwi: requires: [pandas>=2.0]\n# kiwi: permissions:\n# kiwi:   filesystem_read: [data]\n\n__version__ = '2.1.0'\n",
        &json!({
            "version": "2.1.0", "requires": ["pandas>=2.0"], "permissions": {"filesystem_read": ["data"]},
        }),
    );
    check("# kiwi: version: \"1.0.0\"\nimport os\n# kiwi: tags: [late]\n", &json!({"version": "1.0.0"}));
    refused("# kiwi: version: \"1.0.0\"\n__version__ = '1.0.0'\n", "2:1", "`version` is given twice");
    refused("__doc__ = 'x'\n__version__ = 'one'\n", "2:1", "version");
    refused("# kiwi: tags: [a]\n# kiwi: requires: pandas\n__version__ = '1.0.0'\n", "2:19", "requires");
    refused("# kiwi: tags: 12:30\n", "1:15", "");
    refused("# kiwi: only words\n", "1:9", "");
}
