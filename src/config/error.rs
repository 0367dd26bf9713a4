//! Configuration errors: one line that names the setting, its source and the remedy.

use std::fmt;

/// An invalid configuration.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{subject}: {problem}{}", SetBy(.set_by.as_deref()))]
pub struct Error {
    /// The setting, variable, file or folder.
    subject: String,
    /// What is wrong and what to do.
    problem: String,
    /// The source of the value, if it is not the subject itself.
    set_by: Option<String>,
}

impl Error {
    pub(super) fn new(subject: impl fmt::Display, problem: impl fmt::Display) -> Self {
        Self {
            subject: one_line(subject),
            problem: one_line(problem),
            set_by: None,
        }
    }

    /// Adds the source of the value.
    #[must_use]
    pub(super) fn set_by(mut self, origin: impl fmt::Display) -> Self {
        self.set_by = Some(one_line(origin));
        self
    }
}

/// An error is one line, whatever a file contains.
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
