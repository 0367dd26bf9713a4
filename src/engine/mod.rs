//! The use cases: the only place that decides.
