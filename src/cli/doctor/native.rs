//! Which mechanism of this kernel holds each promise of the native sandbox.

use super::{CheckResult, DoctorReport};
use crate::cli::client::EmbeddedClient;
use crate::cli::failure::Result;
use crate::sandbox::linux::{HostSetup, Native};

/// What a sandbox that cannot be made means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Need {
    /// Nothing can run.
    Only,
    /// There may be an engine.
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
            Need::OneOfTwo => {
                let remedy = "fix this, or use the container engine";
                CheckResult::warning("native sandbox", why, remedy)
            }
        })?;
        return Ok(false);
    }
    report.add(CheckResult::ok(
        "native sandbox",
        "one was made and every step was performed",
    ))?;
    for mechanism in mechanisms {
        let found = format!("{}: {}", mechanism.promise, mechanism.by);
        report.add(if mechanism.kept {
            CheckResult::ok("promise", found)
        } else {
            let remedy = "delegate a cgroup subtree: systemd-run --user --scope -p Delegate=yes";
            CheckResult::warning("promise", format!("{found} (degraded)"), remedy)
        })?;
    }
    Ok(true)
}
