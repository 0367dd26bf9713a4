//! Why a configuration is refused: one line that names the setting, where it was set, and the remedy.

use std::fmt;

/// A configuration that nothing can be started with.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{subject}: {problem}{}", SetBy(.set_by.as_deref()))]
pub struct Error {
    /// The setting, variable, file or folder.
    subject: String,
    /// What is wrong and what to do.
    problem: String,
    /// What set it, if that is not the subject itself.
    set_by: Option<String>,
}

impl Error {
    /// `problem` says what is wrong with `subject` and what to do.
    pub(super) fn new(subject: impl fmt::Display, problem: impl fmt::Display) -> Self {
        Self {
            subject: one_line(subject),
            problem: one_line(problem),
            set_by: None,
        }
    }

    /// Names what set the setting.
    #[must_use]
    pub(super) fn set_by(mut self, origin: impl fmt::Display) -> Self {
        self.set_by = Some(one_line(origin));
        self
    }
}

/// Whatever stands in a file, an error is one line.
fn one_line(text: impl fmt::Display) -> String {
    let text = text.to_string();
    text.chars()
        .map(|c| if c.is_control() { ' ' } else { c })
        .collect()
}

struct SetBy<'a>(Option<&'a str>);

impl fmt::Display for SetBy<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(origin) => write!(f, " (set by {origin})"),
            None => Ok(()),
        }
    }
}
