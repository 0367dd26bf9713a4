//! Environment of a program, including secrets: `Debug` prints only names.

use std::fmt;

#[derive(Clone, Default, PartialEq, Eq)]
pub struct Environment(Vec<(String, String)>);

impl Environment {
    #[must_use]
    pub fn variables(&self) -> &[(String, String)] {
        &self.0
    }

    /// Puts `prefix` before the value of a variable, if it is set.
    pub fn prefix(&mut self, name: &str, prefix: &str) {
        for (_, value) in self.0.iter_mut().filter(|(other, _)| other == name) {
            value.insert_str(0, prefix);
        }
    }

    pub fn extend(&mut self, variables: impl IntoIterator<Item = (String, String)>) {
        self.0.extend(variables);
    }
}

impl From<Vec<(String, String)>> for Environment {
    fn from(variables: Vec<(String, String)>) -> Self {
        Self(variables)
    }
}

impl fmt::Debug for Environment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list()
            .entries(self.0.iter().map(|(name, _)| name))
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn debug_output_has_no_values() {
        let environment = Environment::from(vec![("TOKEN".to_owned(), "hunter2".to_owned())]);
        assert_eq!(format!("{environment:?}"), "[\"TOKEN\"]");
    }
}
