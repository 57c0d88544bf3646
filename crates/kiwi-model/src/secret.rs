//! A value that nobody may see.

/// A secret. It is never printed, serialised or compared by accident; whoever needs the characters says so.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// Takes a value out of sight.
    pub fn new(value: impl Into<String>) -> Self {
        Self(value.into())
    }

    /// The characters themselves.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl std::fmt::Debug for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("[secret]")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_does_not_show() {
        assert_eq!(format!("{:?}", Some(Secret::new("hush"))), "Some([secret])");
        assert_eq!(Secret::new("hush").expose(), "hush");
    }
}
