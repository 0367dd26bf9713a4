//! Classifies the result of an installation, with error messages that name a remedy.

use crate::egress::ProxyFailure;
use crate::engine::deps::caller_disconnected;
use crate::error::{Code, Error, quoted};
use crate::execution::ResourceLimits;
use crate::limits;
use crate::sandbox::{Completion, Report};

#[derive(Debug)]
pub(super) struct InstallationCheck<'a> {
    pub(super) report: &'a Report,
    pub(super) granted: &'a ResourceLimits,
    /// Maximum size of one package set.
    pub(super) set_bytes: u64,
}

/// Messages of installers on a full file system.
const DISK_FULL: [&str; 2] = ["No space left on device", "ENOSPC"];
/// Message of pip without a matching wheel.
const NO_WHEEL: &str = "No matching distribution found for ";

impl InstallationCheck<'_> {
    /// `Ok` if the packages are complete.
    pub(super) fn check(&self, failure: Option<ProxyFailure>) -> Result<(), Error> {
        let report = self.report;
        let why = match &report.end {
            Completion::Exited(0) if report.complete => match self.rejection() {
                None => return Ok(()),
                Some(why) => why,
            },
            Completion::Exited(_) if self.printed(&DISK_FULL) => self.too_large(),
            // pip was killed, but not the program that called it.
            Completion::Exited(_) | Completion::Signaled(_) | Completion::OutOfMemory
                if report.usage.oom_kills > 0 =>
            {
                self.out_of_memory()
            }
            Completion::OutOfMemory => self.out_of_memory(),
            Completion::Exited(code) => self.last_lines(*code),
            Completion::TimedOut => format!("it took longer than {} s", self.granted.timeout.as_secs()),
            Completion::NotStarted(reason) | Completion::Lost(reason) | Completion::EngineLost(reason) => {
                reason.clone()
            }
            Completion::Signaled(signal) => format!("the installer was ended by signal {signal}"),
            Completion::NotStored => return Err(crate::engine::failure::storage_full()),
            Completion::Cancelled => return Err(caller_disconnected()),
        };
        let hint = match failure {
            None => String::new(),
            Some(ProxyFailure::Forbidden(why)) => format!("; rejected by the proxy: {why}"),
            Some(ProxyFailure::Unreachable(why)) => format!(
                "; {why}; to run without network, install the packages in advance with `skillbox deps prefetch SKILL`"
            ),
        };
        Err(Error::new(
            Code::DependenciesFailed,
            format!("the packages could not be installed: {why}{hint}"),
        ))
    }

    /// Why the packages cannot be stored.
    fn rejection(&self) -> Option<String> {
        let bytes: u64 = self.report.files.iter().map(|file| file.size).sum();
        // npm links programs, which nothing calls.
        let skipped = self.report.skipped.iter().find(|file| file.reason != "link");
        if bytes > self.set_bytes || skipped.is_some_and(|file| file.reason == "too_large") {
            return Some(self.too_large());
        }
        let file = skipped?;
        let path = quoted(&file.path);
        Some(if file.reason == "too_many" {
            let most = limits::PACKAGES_FILES_MAX;
            format!("they have more than {most} files; request fewer packages")
        } else {
            format!("{path} cannot be stored ({})", file.reason)
        })
    }

    fn too_large(&self) -> String {
        let [set, room] = [self.set_bytes, self.granted.sandbox_bytes].map(|bytes| bytes / limits::MIB);
        format!(
            "they are too large: the limit is {set} MiB (deps.set_size), and {room} MiB during installation; {REMEDY}"
        )
    }

    fn out_of_memory(&self) -> String {
        let mebibytes = self.granted.memory_bytes / limits::MIB;
        format!(
            "the installer was out of memory: its limit is {mebibytes} MiB, including unpacked files (deps.set_size), if this host has that much; {REMEDY}"
        )
    }

    fn printed(&self, words: &[&str]) -> bool {
        let logs = &self.report.logs;
        [&logs.stderr, &logs.stdout].into_iter().any(|said| {
            let said = String::from_utf8_lossy(said);
            words.iter().any(|word| said.contains(word))
        })
    }

    /// The last lines that the installer printed.
    fn last_lines(&self, code: i32) -> String {
        let logs = &self.report.logs;
        let said = if logs.stderr.iter().all(u8::is_ascii_whitespace) {
            &logs.stdout
        } else {
            &logs.stderr
        };
        let text = String::from_utf8_lossy(said);
        let lines: Vec<_> = text
            .lines()
            .map(str::trim)
            .filter(|line| !line.is_empty())
            .collect();
        let last = &lines[lines.len().saturating_sub(limits::INSTALLER_LINES)..];
        let shown = last.iter().map(|line| {
            let visible = line.chars().filter(|c| !c.is_control());
            visible.take(limits::INSTALLER_LINE_CHARS).collect::<String>()
        });
        let shown: Vec<_> = shown.collect();
        if shown.is_empty() {
            return format!("the installer exited with code {code} without output");
        }
        let printed = shown.join("; ");
        match lines.iter().find_map(|line| line.split_once(NO_WHEEL)) {
            Some((_, package)) => format!("{}; the installer printed: {printed}", no_wheel(package, &lines)),
            None => printed,
        }
    }
}

/// pip prints the same for an unknown name and for a package without wheels.
fn no_wheel(package: &str, lines: &[&str]) -> String {
    let package = quoted(package);
    if lines.iter().any(|line| line.contains("(from versions: none)")) {
        return format!(
            "no package {package} with wheels in the index: check the spelling; source packages are not built, so it may need a wheel that the operator adds to the index"
        );
    }
    format!(
        "the index has no wheel of {package} for this interpreter and platform, and source packages are not built: request another version or package, or ask the operator to add a wheel to the index"
    )
}

const REMEDY: &str = "request fewer or smaller packages, or ask the operator to raise deps.set_size";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::execution::{Logs, Maxima, Usage};
    use crate::skill::Resources;

    fn ended(end: Completion, stderr: &str, oom_kills: u64) -> String {
        let report = Report {
            logs: Logs {
                stderr: stderr.as_bytes().to_vec(),
                ..Logs::default()
            },
            usage: Usage {
                oom_kills,
                ..Usage::default()
            },
            ..Report::bare(end)
        };
        let check = InstallationCheck {
            report: &report,
            granted: &ResourceLimits::clamp(&Resources::default(), None, None, &Maxima::default()),
            set_bytes: 5 * limits::MIB,
        };
        check.check(None).unwrap_err().to_string()
    }

    #[test]
    fn explains_exceeded_installation_limits() {
        for (said, part) in [
            (
                "OSError: [Errno 28] No space left on device",
                "the limit is 5 MiB (deps.set_size)",
            ),
            ("npm error ENOSPC: no space left on device, write", "too large"),
        ] {
            let text = ended(Completion::Exited(1), said, 0);
            assert!(text.contains(part) && text.contains(REMEDY), "{text}");
        }
        for (end, kills) in [
            (Completion::Exited(247), 1),
            (Completion::Signaled(9), 1),
            (Completion::OutOfMemory, 0),
        ] {
            let text = ended(end, "", kills);
            assert!(
                text.contains("was out of memory") && text.contains("512 MiB") && text.contains(REMEDY),
                "{text}"
            );
        }
    }

    #[test]
    fn explains_missing_wheels() {
        let said = "ERROR: Could not find a version that satisfies the requirement docopt (from versions: none)\nERROR: No matching distribution found for docopt\n";
        let text = ended(Completion::Exited(1), said, 0);
        for part in [
            "could not be installed: no package `docopt` with wheels in the index: check the spelling",
            "(from versions: none)",
            "source packages are not built",
        ] {
            assert!(text.contains(part), "{text}");
        }
        let said = "ERROR: Could not find a version that satisfies the requirement six==99 (from versions: 1.16, 1.17)\nERROR: No matching distribution found for six==99\n";
        let text = ended(Completion::Exited(1), said, 0);
        assert!(text.contains("no wheel of `six==99`"), "{text}");
    }

    #[test]
    fn reports_exit_status_of_a_silent_installer() {
        assert!(ended(Completion::Exited(3), " \n", 0).ends_with("exited with code 3 without output"));
        assert!(ended(Completion::Signaled(11), "", 0).ends_with("ended by signal 11"));
        assert!(ended(Completion::Exited(1), "a\nb\n", 0).ends_with(": a; b"));
    }
}
