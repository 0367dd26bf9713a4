//! The REST door: translates, never decides.
