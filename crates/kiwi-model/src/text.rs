//! Rendered text whose machine-dependent parts are still symbolic.
//!
//! A plan says `the entrypoint`, not `/tmp/…/main.py`: where verified bytes will lie is only known at launch, and a
//! plan must be comparable between machines.

/// One piece of a rendered text.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Piece {
    /// Plain characters.
    Literal(String),
    /// The launched path of a file of the chain's link number `link`.
    File {
        /// Index into the chain, leaf first.
        link: usize,
        /// Path inside that link's package.
        path: String,
    },
    /// The folder that holds the verified files of link number `link`.
    Folder {
        /// Index into the chain, leaf first.
        link: usize,
    },
    /// The project root.
    Project,
    /// The running Kiwi binary.
    Kiwi,
}

/// A rendered text.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct Text(pub Vec<Piece>);

impl Text {
    /// A text without symbolic parts.
    pub fn literal(text: impl Into<String>) -> Self {
        Self(vec![Piece::Literal(text.into())])
    }

    /// A text that is one file of the chain.
    pub fn file(link: usize, path: impl Into<String>) -> Self {
        Self(vec![Piece::File { link, path: path.into() }])
    }

    /// The characters, if nothing symbolic is left.
    pub fn as_literal(&self) -> Option<String> {
        self.0
            .iter()
            .map(|piece| if let Piece::Literal(text) = piece { Some(text.as_str()) } else { None })
            .collect()
    }

    /// Replaces every symbolic piece.
    pub fn resolve<E>(&self, mut with: impl FnMut(&Piece) -> Result<String, E>) -> Result<String, E> {
        let mut out = String::new();
        for piece in &self.0 {
            match piece {
                Piece::Literal(text) => out.push_str(text),
                symbolic => out.push_str(&with(symbolic)?),
            }
        }
        Ok(out)
    }
}

impl std::fmt::Display for Text {
    /// The form for people and for hashing: symbolic parts in angle brackets.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for piece in &self.0 {
            match piece {
                Piece::Literal(text) => f.write_str(text)?,
                Piece::File { link, path } => write!(f, "<tool:{link}>/{path}")?,
                Piece::Folder { link } => write!(f, "<tool:{link}>")?,
                Piece::Project => f.write_str("<project>")?,
                Piece::Kiwi => f.write_str("<kiwi>")?,
            }
        }
        Ok(())
    }
}
