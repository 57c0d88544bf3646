//! Python string literals: prefix, quotes, escapes.

/// The value of one string literal, as Python would see it.
pub(super) fn value(literal: &str) -> Result<String, &'static str> {
    let quote = literal.find(['"', '\'']).ok_or("this is not a string")?;
    let (prefix, quoted) = literal.split_at_checked(quote).ok_or("this is not a string")?;
    let is_raw = match prefix.to_ascii_lowercase().as_str() {
        "" | "u" => false,
        "r" => true,
        prefix if prefix.contains(['f', 't']) => return Err("a string with placeholders has no fixed value"),
        prefix if prefix.contains('b') => return Err("bytes cannot stand in a manifest"),
        _ => return Err("this kind of string is not known"),
    };
    let inner = ["\"\"\"", "'''", "\"", "'"]
        .into_iter()
        .find_map(|quotes| quoted.strip_prefix(quotes).and_then(|rest| rest.strip_suffix(quotes)))
        .ok_or("the string does not end")?;
    // Python reads every line end as \n before it looks at strings.
    let inner = inner.replace("\r\n", "\n").replace('\r', "\n");
    if is_raw || !inner.contains('\\') { Ok(inner) } else { unescape(&inner) }
}

fn unescape(text: &str) -> Result<String, &'static str> {
    let mut out = String::with_capacity(text.len());
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        if c != '\\' {
            out.push(c);
            continue;
        }
        let Some(escaped) = chars.next() else { return Err("the string ends inside an escape") };
        match escaped {
            '\n' => {}
            '\\' | '\'' | '"' => out.push(escaped),
            'a' => out.push('\x07'),
            'b' => out.push('\x08'),
            'f' => out.push('\x0c'),
            'n' => out.push('\n'),
            'r' => out.push('\r'),
            't' => out.push('\t'),
            'v' => out.push('\x0b'),
            '0'..='7' => {
                let mut code = digit(escaped, 8);
                for _ in 0..2 {
                    let Some(next) = chars.next_if(|c| ('0'..='7').contains(c)) else { break };
                    code = code * 8 + digit(next, 8);
                }
                out.push(char::from_u32(code).ok_or("this escape is not a character")?);
            }
            'x' => out.push(hex(&mut chars, 2)?),
            'u' => out.push(hex(&mut chars, 4)?),
            'U' => out.push(hex(&mut chars, 8)?),
            'N' => return Err("characters by name (`\\N{…}`) are not read; write the character itself"),
            // Python keeps the backslash of an escape it does not know.
            other => out.extend(['\\', other]),
        }
    }
    Ok(out)
}

fn hex(chars: &mut std::iter::Peekable<std::str::Chars<'_>>, count: usize) -> Result<char, &'static str> {
    let mut code: u32 = 0;
    for _ in 0..count {
        let next = chars.next_if(char::is_ascii_hexdigit).ok_or("this escape has too few digits")?;
        code = code.checked_mul(16).ok_or("this escape is not a character")? + digit(next, 16);
    }
    char::from_u32(code).ok_or("this escape is not a character")
}

fn digit(c: char, radix: u32) -> u32 {
    c.to_digit(radix).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_read_as_python_reads_them() {
        for (literal, expect) in [
            ("''", ""),
            (r"'a\'b'", "a'b"),
            (r#""\x41\u00e9\U0001F600\101\0""#, "A\u{e9}\u{1F600}A\0"),
            (r"'\400'", "\u{100}"),
            (r"'\d\.'", r"\d\."),
            (r"r'\n'", r"\n"),
            (r"R'\''", r"\'"),
            ("u'x'", "x"),
            ("'''a\r\nb\\\r\nc'''", "a\nbc"),
            ("\"\"\"\"quoted\" \"\"\"", "\"quoted\" "),
            (r"'\a\b\f\v\t\r\n\\'", "\x07\x08\x0c\x0b\t\r\n\\"),
        ] {
            assert_eq!(value(literal).as_deref(), Ok(expect), "{literal}");
        }
        for literal in
            ["f'x'", "rb'x'", "b'x'", "t'x'", r"'\ud800'", r"'\N{BULLET}'", r"'\x4'", r"'\UFFFFFFFF'", "x"]
        {
            assert!(value(literal).is_err(), "{literal}");
        }
    }
}
