//! Replacement for traces in builds without the feature `otlp`.

use tracing::Span;

pub const CAN_TRACE: bool = false;

pub fn continue_trace<'a>(_span: &Span, _header: impl Fn(&str) -> Option<&'a str>) {}

pub fn trace_phases(_phases: &[(&'static str, f64)]) {}
