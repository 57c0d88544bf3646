//! What only the tables themselves can show.
