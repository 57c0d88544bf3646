use super::*;
use serde_json::json;

#[track_caller]
fn check(format: Format, path: &[&str], before: &str, after: &str) {
    let value = json!({"command": "kiwi", "args": ["mcp"]});
    let got = format.insert(before, path, "kiwi", &value).expect("it is inserted");
    assert_eq!(got, after);
    assert_eq!(format.insert(&got, path, "kiwi", &value).as_deref(), Ok(after), "twice is once");
    let removed = format.remove(&got, path, "kiwi").expect("it is removed");
    let (had, has) = (format.read(before).unwrap(), format.read(&removed).unwrap());
    assert_eq!(simplified(&has), simplified(&had), "{removed}");
}

#[test]
fn json_keeps_comments_and_commas() {
    let path = ["mcpServers"];
    let entry = "{\n      \"command\": \"kiwi\",\n      \"args\": [\"mcp\"]\n    }";
    check(Format::Json, &path, "", &format!("{{\n  \"mcpServers\": {{\n    \"kiwi\": {entry}\n  }}\n}}\n"));
    check(
        Format::Json,
        &path,
        "{}\n",
        &format!("{{\n  \"mcpServers\": {{\n    \"kiwi\": {entry}\n  }}\n}}\n"),
    );
    check(
        Format::Json,
        &path,
        "{\n  // mine\n  \"a\": 1, // one\n  \"mcpServers\": {\n    \"x\": {\"url\": \"u\"} // x\n    /* end */\n  },\n}\n",
        &format!(
            "{{\n  // mine\n  \"a\": 1, // one\n  \"mcpServers\": {{\n    \"x\": {{\"url\": \"u\"}}, // x\n    \"kiwi\": {entry}\n    /* end */\n  }},\n}}\n"
        ),
    );
    check(
        Format::Json,
        &path,
        "{\"mcpServers\": {\"x\": {}}}",
        "{\"mcpServers\": {\"x\": {}, \"kiwi\": {\"args\":[\"mcp\"],\"command\":\"kiwi\"}}}",
    );
    check(
        Format::Json,
        &path,
        "{\n\t\"mcpServers\": {\n\t\t\"x\": {},\n\t},\n}",
        "{\n\t\"mcpServers\": {\n\t\t\"x\": {},\n\t\t\"kiwi\": {\n\t\t  \"command\": \"kiwi\",\n\t\t  \"args\": [\"mcp\"]\n\t\t},\n\t},\n}",
    );
    // One that is there is replaced where it stands.
    let text = "{\"mcpServers\": {\"kiwi\": {\"command\": \"old\"}, \"z\": 1}}";
    let got = Format::Json.insert(text, &path, "kiwi", &json!("new")).unwrap();
    assert_eq!(got, "{\"mcpServers\": {\"kiwi\": \"new\", \"z\": 1}}");
    let gone = Format::Json.remove("{\"a\": 1, \"b\": 2}", &[], "b").unwrap();
    assert_eq!(gone, "{\"a\": 1 }");
    let gone = Format::Json.remove("{\n  \"a\": 1, // x\n  \"b\": 2\n}\n", &[], "a").unwrap();
    assert_eq!(gone, "{\n  \"b\": 2\n}\n");
}

#[test]
fn what_is_no_json_is_refused_with_its_place() {
    for (text, expect) in [
        ("{\n  \"a\": }\n", "line 2, column 8: expected a value"),
        ("{\"a\": 1 \"b\": 2}", "line 1, column 9: expected `,` or `}`"),
        ("{\"a\": 1, \"a\": 2}", "line 1, column 10: the key `a` is given twice"),
        ("{\"a\": \"x\n\"}", "line 1, column 7: the string does not end on its line"),
        ("{\"a\": 1", "line 1, column 8: the file ends too early"),
        ("/* x", "line 1, column 1: the comment does not end"),
        ("{} {}", "line 1, column 4: unexpected text after the end"),
        ("{'a': 1}", "line 1, column 2: expected a key in double quotes, or `}`"),
    ] {
        assert_eq!(Format::Json.read(text).unwrap_err().to_string(), expect);
    }
    assert!(Format::Json.insert("[]", &["a"], "b", &json!(1)).is_err());
    assert!(Format::Json.insert("{\"a\": [1]}", &["a"], "b", &json!(1)).is_err());
    assert!(Format::Json.read(&"[".repeat(100_000)).is_err());
}

#[test]
fn toml_keeps_the_rest() {
    let path = ["mcp_servers"];
    let own = "[mcp_servers.kiwi]\ncommand = \"kiwi\"\nargs = [\"mcp\"]\n";
    check(Format::Toml, &path, "", own);
    check(Format::Toml, &path, "# mine\nmodel = \"x\" # y\n", &format!("# mine\nmodel = \"x\" # y\n\n{own}"));
    check(
        Format::Toml,
        &path,
        "[mcp_servers.a]\ncommand = 'b'  # c\n\n[profile]\nx = 1\n",
        &format!("[mcp_servers.a]\ncommand = 'b'  # c\n\n{own}\n[profile]\nx = 1\n"),
    );
    assert_eq!(
        Format::Toml.read("a = 1\nb = = 2\n").unwrap_err().line,
        2,
        "the place of what is wrong is told"
    );
}

#[test]
fn yaml_keeps_the_rest() {
    let path = ["mcps"];
    let own = "  kiwi:\n    command: kiwi\n    args: [\"mcp\"]\n";
    check(Format::Yaml, &path, "", &format!("mcps:\n{own}"));
    check(Format::Yaml, &path, "# only this\n", &format!("# only this\nmcps:\n{own}"));
    check(Format::Yaml, &path, "mcps:\n", &format!("mcps:\n{own}"));
    check(Format::Yaml, &path, "mcps: # ours\n", &format!("mcps: # ours\n{own}"));
    check(Format::Yaml, &path, "mcps: {}\nother: 1\n", &format!("mcps:\n{own}other: 1\n"));
    check(
        Format::Yaml,
        &path,
        "# top\nmcps:\n  a: {command: x}  # one\n  # two\n  b:\n    command: y\n\n# end\nother: [1]\n",
        &format!(
            "# top\nmcps:\n  a: {{command: x}}  # one\n  # two\n  b:\n    command: y\n{own}\n# end\nother: [1]\n"
        ),
    );
    check(
        Format::Yaml,
        &path,
        "mcps: {a: {command: x}}\n",
        "mcps: {a: {command: x}, \"kiwi\": {\"args\":[\"mcp\"],\"command\":\"kiwi\"}}\n",
    );
    check(
        Format::Yaml,
        &path,
        "mcps:\n    a:\n        text: |\n            one\n\n            two\nz: 1",
        "mcps:\n    a:\n        text: |\n            one\n\n            two\n    kiwi:\n      command: kiwi\n      args: [\"mcp\"]\nz: 1",
    );
    check(Format::Yaml, &path, "z: 1", &format!("z: 1\nmcps:\n{own}"));
    assert_eq!(
        Format::Yaml.remove("mcps:\n  a:\n    b: 1\n\n  # about c\n  c: 2\n", &path, "a").unwrap(),
        "mcps:\n\n  # about c\n  c: 2\n"
    );
    assert_eq!(Format::Yaml.remove("{mcps: {a: 1, b: 2}}\n", &path, "b").unwrap(), "{mcps: {a: 1}}\n");
    assert_eq!(Format::Yaml.remove("{mcps: {a: 1, b: 2}}\n", &path, "a").unwrap(), "{mcps: {b: 2}}\n");
    assert!(Format::Yaml.read("a: &x 1\nb: *x\n").is_err());
    assert!(Format::Yaml.insert("mcps: [1]\n", &path, "a", &json!({})).is_err());
}

/// Whatever an entry holds, each language says it as it is.
#[test]
fn every_value_can_be_written() {
    let value = json!({"type": "x", "z": {"deep": {"er": [1, {"a": []}]}, "": "y: # \"'"}, "args": ["a b", "-", "010", "é\n"],
        "n": -1, "f": 1.5, "t": true, "list": [[1], []]});
    for (format, text) in
        [(Format::Json, "{\"mcps\": {}}"), (Format::Toml, "[mcps]\n"), (Format::Yaml, "mcps:\n")]
    {
        let edited = format.insert(text, &["mcps"], "kiwi", &value).unwrap();
        assert_eq!(format.read(&edited).unwrap()["mcps"]["kiwi"], value, "{edited}");
    }
}

#[test]
fn line_breaks_stay_as_they_are() {
    for (format, text) in [
        (Format::Json, "{\r\n  \"a\": 1\r\n}\r\n"),
        (Format::Toml, "# x\r\na = 1\r\n"),
        (Format::Yaml, "# x\r\nmcps:\r\n  a: 1\r\nb: 2\r\n"),
    ] {
        let edited = format.insert(text, &["mcps"], "kiwi", &json!({"command": "x"})).unwrap();
        assert_eq!(edited.matches('\n').count(), edited.matches("\r\n").count(), "{edited:?}");
        assert_eq!(format.read(&edited).unwrap()["mcps"]["kiwi"]["command"], "x");
        let removed = format.remove(&edited, &["mcps"], "kiwi").unwrap();
        assert_eq!(removed.matches('\n').count(), removed.matches("\r\n").count(), "{removed:?}");
    }
}

#[test]
fn differences_have_one_hunk() {
    assert_eq!(unified("f", "a\n", "a\n"), "");
    assert_eq!(
        unified("f", "1\n2\n3\n4\n5\n6\n7\n8\n", "1\n2\n3\n4\nx\n6\n7\n8\n"),
        "--- f\n+++ f\n@@ -2,7 +2,7 @@\n 2\n 3\n 4\n-5\n+x\n 6\n 7\n 8\n"
    );
    assert_eq!(unified("f", "", "a\n"), "--- f\n+++ f\n@@ -0,0 +1,1 @@\n+a\n");
    assert_eq!(unified("f", "a\na\n", "a\n"), "--- f\n+++ f\n@@ -1,2 +1,1 @@\n a\n-a\n");
}

/// Whatever the text, an edit says what was meant or is refused.
#[test]
fn edits_of_any_text_are_right_or_refused() {
    let pieces = [
        "{",
        "}",
        "[",
        "]",
        ",",
        ":",
        "\"a\"",
        "\"mcps\"",
        "mcps",
        "a",
        ": ",
        "\n",
        "  ",
        "    ",
        "# c\n",
        "// c\n",
        "/* c */",
        "1",
        "null",
        "- ",
        "\"kiwi\"",
        "kiwi: {}\n",
        "mcps:\n",
        "mcps: {",
        "|\n",
        "'",
        "\\",
        "é",
        "\t",
        "[mcps]\n",
        "[mcps.x]\n",
        "a = 1\n",
        "~",
        "&x",
        "*x",
        "<<",
        "---\n",
        "...\n",
        "? ",
        "!!str ",
        "\r\n",
    ];
    let mut seed = 0x2545_f491_4f6c_dd1d_u64;
    let mut next = |most: usize| {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        usize::try_from(seed >> 33).unwrap() % most
    };
    let value = json!({"command": "kiwi", "args": ["mcp"], "n": 1});
    let mut done = 0;
    for _ in 0..20_000 {
        let text: String = (0..next(14)).map(|_| pieces[next(pieces.len())]).collect();
        for format in [Format::Json, Format::Toml, Format::Yaml] {
            if let Ok(edited) = format.insert(&text, &["mcps"], "kiwi", &value) {
                done += 1;
                let read = format.read(&edited).unwrap();
                assert_eq!(read["mcps"]["kiwi"], value, "{text:?} became {edited:?}");
                let _ = format.remove(&edited, &["mcps"], "kiwi");
            }
        }
    }
    assert!(done > 1000, "{done}");
}
