//! Reports how much of an installation has arrived.

use std::collections::HashSet;

use crate::egress::PackageProxy;
use crate::execution::{Bookmark, Stream, Transcript, TranscriptEvent};
use crate::limits;
use crate::sandbox::{Progress, ProgressSender};
use crate::skill::Language;

/// A running installation.
pub(super) struct Transfer<'a> {
    pub(super) proxy: &'a PackageProxy,
    /// What the installer prints.
    pub(super) printed: &'a Transcript,
    pub(super) packages: PackageCount,
}

impl Transfer<'_> {
    /// Reports once a second until the installation ends.
    pub(super) async fn report_while<T>(
        mut self,
        mut install: impl Future<Output = T> + Unpin,
        progress: &ProgressSender,
    ) -> T {
        let mut every = tokio::time::interval(limits::INSTALL_PROGRESS_EVERY);
        let mut reader = self.printed.reader(Bookmark::default()).ok();
        loop {
            let printed = async {
                match &mut reader {
                    Some(reader) => reader.next().await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                installed = &mut install => return installed,
                event = printed => match event {
                    Some(TranscriptEvent::Printed { stream: Stream::Stdout, bytes }) => self.packages.read(&bytes),
                    Some(_) => {}
                    None => reader = None,
                },
                _ = every.tick() => {
                    let bytes = self.proxy.bytes();
                    let _ = progress.try_send(match self.packages.have_arrived {
                        true => Progress::Unpacking { bytes },
                        false => Progress::Downloaded {
                            packages: self.packages.collected(),
                            count: self.packages.count,
                            bytes,
                        },
                    });
                }
            }
        }
    }
}

/// Counts the packages that pip names while it fetches them. npm names none.
pub(super) struct PackageCount {
    language: Language,
    count: usize,
    missing: HashSet<String>,
    /// Whether pip has begun to unpack.
    have_arrived: bool,
    /// The last line, as far as it was printed.
    line: Vec<u8>,
}

/// How pip starts the line of a package.
const COLLECTING: &str = "Collecting ";
/// How pip says that it unpacks.
const UNPACKING: &str = "Installing collected packages";

impl PackageCount {
    /// `asked` are requirements as their author wrote them.
    pub(super) fn of(language: Language, asked: &[String]) -> Self {
        Self {
            language,
            count: asked.len(),
            missing: asked.iter().map(|asked| package_name(asked)).collect(),
            have_arrived: false,
            line: Vec::new(),
        }
    }

    fn read(&mut self, printed: &[u8]) {
        for byte in printed {
            match byte {
                b'\n' => self.end_line(),
                // A longer line names no package.
                byte if self.line.len() < limits::REQUIREMENT_BYTES_MAX => self.line.push(*byte),
                _ => {}
            }
        }
    }

    fn end_line(&mut self) {
        let line = std::mem::take(&mut self.line);
        let line = String::from_utf8_lossy(&line);
        if let Some(package) = line.strip_prefix(COLLECTING) {
            self.missing.remove(&package_name(package));
        }
        self.have_arrived |= line.starts_with(UNPACKING);
    }

    /// Packages so far; `None` if the installer names none.
    fn collected(&self) -> Option<usize> {
        (self.language == Language::Python).then(|| self.count.saturating_sub(self.missing.len()))
    }
}

/// The normalized name in a requirement (PEP 503).
fn package_name(requirement: &str) -> String {
    let is_separator = |c: char| "-_.".contains(c);
    let name = requirement
        .trim_start()
        .split(|c: char| !c.is_ascii_alphanumeric() && !is_separator(c))
        .next()
        .unwrap_or_default();
    let parts = name.split(is_separator).filter(|part| !part.is_empty());
    parts.collect::<Vec<_>>().join("-").to_ascii_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(requirements: &[&str]) -> Vec<String> {
        requirements
            .iter()
            .map(|requirement| (*requirement).to_owned())
            .collect()
    }

    #[test]
    fn counts_the_packages_that_pip_names() {
        let asked = asked(&[
            "Zope.Interface >= 5",
            "pandas[excel]==2.2.0; python_version > '3'",
            "six",
        ]);
        let mut count = PackageCount::of(Language::Python, &asked);
        assert_eq!(count.collected(), Some(0));
        // Of pip 23.0 and 25.0; dependencies do not count, and no package counts twice.
        count.read(b"Collecting zope-interface>=5\n  Downloading zope_interface-7.2 (2");
        count.read(b" MB)\nCollecting numpy>=1.26 (from pandas)\nCollect");
        count.read(
            b"ing pandas[excel]==2.2.0 (from -r /workspace/requirements.txt (line 2))\nCollecting pandas\n",
        );
        assert_eq!(count.collected(), Some(2));
        count.read(b"Collecting six");
        assert_eq!(count.collected(), Some(2));
        count.read(b"\n");
        assert_eq!(count.collected(), Some(3));
        assert!(!count.have_arrived);
        count.read(b"Installing collected packages: six, numpy, pandas\n");
        assert!(count.have_arrived);
    }

    #[test]
    fn counts_none_of_npm() {
        let count = PackageCount::of(Language::Node, &asked(&["left-pad"]));
        assert_eq!(count.collected(), None);
    }

    #[test]
    fn keeps_little_of_an_endless_line() {
        let mut count = PackageCount::of(Language::Python, &asked(&["six"]));
        count.read(&[b'x'; 100_000]);
        assert!(count.line.len() <= limits::REQUIREMENT_BYTES_MAX);
    }
}
