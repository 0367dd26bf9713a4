//! Keeps bytes: skill archives and artifacts.
