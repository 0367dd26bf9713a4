//! Checks which kernel mechanism keeps each promise of the native sandbox.

use super::{CheckResult, DoctorReport};
use crate::cli::client::EmbeddedClient;
use crate::cli::failure::Result;
use crate::sandbox::linux::{HostSetup, Native, missing_container_options};
use crate::sandbox::promise_title;

/// Severity of an unavailable native sandbox.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Need {
    /// An error: nothing can run.
    Only,
    /// A warning: an engine may exist.
    OneOfTwo,
}

/// Reports on the native sandbox and starts one. Returns whether it works.
pub(super) fn check(
    local: &EmbeddedClient,
    native: &Native,
    need: Need,
    report: &mut DoctorReport<'_>,
) -> Result<bool> {
    let HostSetup { mechanisms, refused } = local.wait(native.setup());
    let refused = match refused {
        Some(why) => Some(why),
        None => local.wait(native.try_host()).err().map(|error| error.to_string()),
    };
    if let Some(why) = refused {
        report.add(match need {
            Need::Only => CheckResult::failed("native sandbox", why),
            Need::OneOfTwo => CheckResult::warning("native sandbox", why, "or start a container engine"),
        })?;
        let options = missing_container_options();
        if !options.is_empty() {
            let found = "this container lacks options that native sandboxes need";
            let remedy = format!("docker run {} …", options.join(" "));
            report.add(CheckResult::warning("container", found, &remedy))?;
        }
        return Ok(false);
    }
    report.add(CheckResult::ok(
        "native sandbox",
        "a test sandbox was created and every step succeeded",
    ))?;
    for mechanism in mechanisms {
        let title = promise_title(mechanism.promise).unwrap_or_default();
        let found = format!("{} {title}: {}", mechanism.promise, mechanism.by);
        report.add(if mechanism.kept {
            CheckResult::ok("promise", found)
        } else {
            let remedy =
                "https://github.com/skillbox-rs/skillbox/blob/main/docs/CONFIGURATION.md#without-an-engine";
            CheckResult::warning("promise", format!("{found} (degraded)"), remedy)
        })?;
    }
    Ok(true)
}
