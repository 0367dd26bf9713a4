//! What every transport offers: request and response types, scope checks, pages and problem documents.
//!
//! HTTP handlers and the embedded client of the command line call the same functions.

mod args;
pub mod audit;
pub mod blobs;
pub mod changes;
mod create_execution;
pub mod events;
pub mod executions;
mod json;
pub mod keys;
pub mod packages;
mod page;
mod problem;
pub mod prove;
pub mod rerun;
pub mod secrets;
pub mod server;
pub mod sessions;
pub mod skill_files;
pub mod skills;
pub mod stats;
pub mod tools;
pub mod usage;
pub mod webhooks;

use std::time::Duration;

use serde::de::{self, Deserialize, Deserializer};

use crate::auth::{Caller, Scope};
use crate::error::{Code, Error, quoted};
use crate::ids::Tenant;
use crate::limits;

pub use args::Args;
pub use create_execution::{CreateExecution, Files, Mode};
pub use json::{parse_json, safe_message};
pub use page::{List, page_request};
pub use problem::Problem;

/// Scopes of which a caller needs one.
pub type Scopes = &'static [Scope];

pub const RUN: Scopes = &[Scope::Run];
pub const SKILLS: Scopes = &[Scope::Skills];
pub const RUN_OR_SKILLS: Scopes = &[Scope::Run, Scope::Skills];
pub const ADMIN: Scopes = &[Scope::Admin];
/// Whatever the key may do.
pub const ANY_KEY: Scopes = &Scope::ALL;

/// Rejects a caller that has none of these scopes.
pub fn require(caller: &Caller, scopes: &[Scope]) -> Result<(), Error> {
    if scopes.iter().any(|scope| caller.may(*scope)) {
        return Ok(());
    }
    let names: Vec<_> = scopes
        .iter()
        .map(|scope| format!("`{}`", scope.as_str()))
        .collect();
    Err(Error::new(
        Code::Forbidden,
        format!("this API key lacks the scope {}", names.join(" or ")),
    ))
}

/// Rejects a request that expects another tenant than that of its key or link. It never chooses one.
pub fn require_tenant(tenant: &Tenant, expected: &str) -> Result<(), Error> {
    if tenant.as_str() == expected {
        return Ok(());
    }
    let message = format!(
        "this API key or link does not belong to the tenant {} that X-Skillbox-Tenant expects; use a key of that tenant",
        quoted(expected)
    );
    Err(Error::new(Code::Forbidden, message))
}

/// A member that may also be `null`, which clients send for absent values.
fn unless_null<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: Default + Deserialize<'de>,
{
    Option::deserialize(deserializer).map(Option::unwrap_or_default)
}

/// A whole number, which JSON may also write as `60.0` or `6e1`.
fn whole_number<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
    let number = serde_json::Number::deserialize(deserializer)?;
    let whole = number.as_u64().or_else(|| {
        let float = number.as_f64().filter(|float| float.fract() == 0.0)?;
        // Adding zero removes the sign of `-0.0`.
        (float + 0.0).to_string().parse().ok()
    });
    whole.ok_or_else(|| de::Error::custom(format!("{number} is not a whole number from 0 on")))
}

/// A time. The error shows how to write one.
pub(crate) fn time<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<jiff::Timestamp>, D::Error> {
    let text = Option::<String>::deserialize(deserializer)?;
    let parsed = text.map(|text| text.parse()).transpose();
    parsed.map_err(|_| de::Error::custom("not a time; write date, time and zone, like 2026-01-31T12:00:00Z"))
}

/// Time to wait for an end.
pub(crate) fn wait_of(seconds: f64) -> Result<Duration, Error> {
    let wait = Duration::try_from_secs_f64(seconds).ok();
    let max = limits::WAIT_MAX;
    wait.filter(|wait| *wait <= max).ok_or_else(|| {
        Error::invalid(format!(
            "wait: must be a number of seconds from 0 to {}",
            max.as_secs()
        ))
    })
}

/// Words of a query, separated by commas. The error names the unknown one.
pub(crate) fn words<'de, D, T, C>(deserializer: D) -> Result<C, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
    C: FromIterator<T>,
{
    let text = String::deserialize(deserializer)?;
    let word = |word: &str| T::deserialize(de::value::StringDeserializer::new(word.to_owned()));
    text.split(',').map(word).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accepts_each_form_of_a_whole_number() {
        let read = |text: &str| whole_number(&mut serde_json::Deserializer::from_str(text)).ok();
        for (text, expected) in [
            ("0", 0),
            ("-0.0", 0),
            ("8557.0", 8557),
            ("6e1", 60),
            ("18446744073709551615", u64::MAX),
            ("9007199254740993", 9_007_199_254_740_993),
        ] {
            assert_eq!(read(text), Some(expected), "{text}");
        }
        for wrong in ["-1", "1.5", "-1.0", "1e300", "\"60\"", "true", "null"] {
            assert_eq!(read(wrong), None, "{wrong}");
        }
    }
}
