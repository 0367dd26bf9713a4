//! All tests that need more than one room, in one binary: it is linked once.

mod run;
mod world;
