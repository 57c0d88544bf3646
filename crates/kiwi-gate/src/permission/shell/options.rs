//! Options of programs that run others. One that is not known might change what runs, and is refused.

use super::syntax::Word;

/// The options that a program may be given.
#[derive(Debug, Default)]
pub(super) struct Spec<'a> {
    /// Letters without a value.
    pub flags: &'a str,
    /// Letters with one.
    pub valued: &'a str,
    /// Long names without a value.
    pub long: &'a [&'a str],
    /// Long names with one.
    pub long_valued: &'a [&'a str],
}

/// What stands behind the options.
pub(super) fn operands<'a>(args: &'a [Word], spec: &Spec<'_>) -> Result<&'a [Word], String> {
    let mut rest = args;
    while let Some((word, after)) = rest.split_first() {
        let Some(text) = word.fixed() else {
            return if word.may_be_option() {
                Err("an option is only known when it runs".into())
            } else {
                Ok(rest)
            };
        };
        let unknown = || format!("what the option `{text}` does is not known here");
        if text == "--" {
            return Ok(after);
        }
        if let Some(long) = text.strip_prefix("--") {
            match long.split_once('=') {
                Some((name, _)) if spec.long_valued.contains(&name) => rest = after,
                None if spec.long.contains(&long) => rest = after,
                None if spec.long_valued.contains(&long) => rest = after.get(1..).ok_or_else(unknown)?,
                _ => return Err(unknown()),
            }
        } else if let Some(letters) = text.strip_prefix('-').filter(|letters| !letters.is_empty()) {
            rest = after;
            for (at, letter) in letters.char_indices() {
                if spec.valued.contains(letter) {
                    if at + letter.len_utf8() == letters.len() {
                        rest = after.get(1..).ok_or_else(unknown)?;
                    }
                    break;
                }
                if !spec.flags.contains(letter) {
                    return Err(unknown());
                }
            }
        } else {
            return Ok(rest);
        }
    }
    Ok(rest)
}
