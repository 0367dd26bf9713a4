//! Remembers skills, executions and keys.
