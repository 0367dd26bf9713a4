//! Whether an installer has done its work, and if not, why: in words that say what to do next.

use crate::egress::ProxyFailure;
use crate::engine::deps::nobody_waits;
use crate::error::{Code, Error, quoted};
use crate::execution::ResourceLimits;
use crate::limits;
use crate::sandbox::{Completion, Report};

/// What an installer left behind, and what it might have used.
#[derive(Debug)]
pub(super) struct Verdict<'a> {
    pub(super) report: &'a Report,
    pub(super) granted: &'a ResourceLimits,
    /// What one set may have.
    pub(super) set_bytes: u64,
}

/// What installers say when a file system is full.
const NO_ROOM: [&str; 2] = ["No space left on device", "ENOSPC"];
/// What pip says when it has found no wheel.
const NO_WHEEL: &str = "No matching distribution found for ";

impl Verdict<'_> {
    /// Why there are no packages, if there are none.
    pub(super) fn judge(&self, failure: Option<ProxyFailure>) -> Result<(), Error> {
        let report = self.report;
        let why = match &report.end {
            Completion::Exited(0) if report.complete => match self.not_to_be_kept() {
                None => return Ok(()),
                Some(why) => why,
            },
            Completion::Exited(_) if self.says(&NO_ROOM) => self.no_room(),
            // pip was killed, and what called it was not.
            Completion::Exited(_) | Completion::Signaled(_) | Completion::OutOfMemory
                if report.usage.oom_kills > 0 =>
            {
                self.no_memory()
            }
            Completion::OutOfMemory => self.no_memory(),
            Completion::Exited(code) => self.last_words(*code),
            Completion::TimedOut => format!("it took longer than {} s", self.granted.timeout.as_secs()),
            Completion::NotStarted(reason) | Completion::Lost(reason) => reason.clone(),
            Completion::Signaled(signal) => format!("the installer was ended by signal {signal}"),
            Completion::Cancelled => return Err(nobody_waits()),
        };
        let hint = match failure {
            None => String::new(),
            Some(ProxyFailure::Forbidden(why)) => format!("; rejected by the proxy: {why}"),
            Some(ProxyFailure::Unreachable(why)) => format!(
                "; {why}; without a network use packages that were installed before: `skillbox deps prefetch SKILL` installs them while there is one"
            ),
        };
        Err(Error::new(
            Code::DependenciesFailed,
            format!("the packages could not be installed: {why}{hint}"),
        ))
    }

    /// Why what was installed is not kept, if it is not.
    fn not_to_be_kept(&self) -> Option<String> {
        let bytes: u64 = self.report.files.iter().map(|file| file.size).sum();
        // Links are what npm makes of programs; nobody calls those.
        let skipped = self.report.skipped.iter().find(|file| file.reason != "link");
        if bytes > self.set_bytes || skipped.is_some_and(|file| file.reason == "too_large") {
            return Some(self.no_room());
        }
        let file = skipped?;
        let path = quoted(&file.path);
        Some(if file.reason == "too_many" {
            let most = limits::PACKAGES_FILES_MAX;
            format!("they have more than {most} files; ask for fewer packages")
        } else {
            format!("{path} cannot be kept ({})", file.reason)
        })
    }

    fn no_room(&self) -> String {
        let [set, room] = [self.set_bytes, self.granted.sandbox_bytes].map(|bytes| bytes / limits::MIB);
        format!(
            "they are too large: one program's may have {set} MiB (deps.set_size), and {room} MiB while they are installed; {REMEDY}"
        )
    }

    fn no_memory(&self) -> String {
        let mebibytes = self.granted.memory_bytes / limits::MIB;
        format!(
            "the installer was killed for want of memory: it may use {mebibytes} MiB with all that it has unpacked (deps.set_size), as far as this host has them; {REMEDY}"
        )
    }

    fn says(&self, words: &[&str]) -> bool {
        let logs = &self.report.logs;
        [&logs.stderr, &logs.stdout].into_iter().any(|said| {
            let said = String::from_utf8_lossy(said);
            words.iter().any(|word| said.contains(word))
        })
    }

    /// The last that an installer said, fit for a message.
    fn last_words(&self, code: i32) -> String {
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
            return format!("the installer exited with code {code} and said nothing");
        }
        let missing = lines
            .iter()
            .find_map(|line| line.split_once(NO_WHEEL))
            .map(|(_, package)| {
                let package = quoted(package);
                format!(
                    "; the index has no wheel of {package} for this interpreter and platform, and nothing is built here: ask for another version or package, or let the operator put a wheel into the index"
                )
            });
        shown.join("; ") + &missing.unwrap_or_default()
    }
}

/// What helps against too much.
const REMEDY: &str = "ask for fewer or smaller packages, or let the operator raise deps.set_size";

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
        let verdict = Verdict {
            report: &report,
            granted: &ResourceLimits::clamp(&Resources::default(), None, None, &Maxima::default()),
            set_bytes: 5 * limits::MIB,
        };
        verdict.judge(None).unwrap_err().to_string()
    }

    #[test]
    fn whoever_asked_for_too_much_is_told_of_what_and_what_to_do() {
        for (said, part) in [
            (
                "OSError: [Errno 28] No space left on device",
                "may have 5 MiB (deps.set_size)",
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
                text.contains("for want of memory") && text.contains("512 MiB") && text.contains(REMEDY),
                "{text}"
            );
        }
    }

    #[test]
    fn a_package_without_a_wheel_is_not_a_riddle() {
        let said = "ERROR: Could not find a version that satisfies the requirement docopt (from versions: none)\nERROR: No matching distribution found for docopt\n";
        let text = ended(Completion::Exited(1), said, 0);
        for part in [
            "(from versions: none)",
            "no wheel of `docopt`",
            "nothing is built here",
        ] {
            assert!(text.contains(part), "{text}");
        }
    }

    #[test]
    fn an_installer_that_says_nothing_is_told_by_how_it_ended() {
        assert!(ended(Completion::Exited(3), " \n", 0).ends_with("exited with code 3 and said nothing"));
        assert!(ended(Completion::Signaled(11), "", 0).ends_with("ended by signal 11"));
        assert!(ended(Completion::Exited(1), "a\nb\n", 0).ends_with(": a; b"));
    }
}
