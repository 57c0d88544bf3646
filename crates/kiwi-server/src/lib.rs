//! The faces.
