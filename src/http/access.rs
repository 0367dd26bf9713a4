//! Who may call what.

use std::collections::BTreeMap;

use axum::http::Method;

use crate::auth::Scope;

/// Who may call a route.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// No key is needed.
    Open,
    /// A key with one of these scopes is needed (`admin` includes all).
    Key(&'static [Scope]),
    /// A key with one of these scopes or a signed link is needed.
    KeyOrLink(&'static [Scope]),
}

/// Who may call what: read by the guard, by the document and by the tests.
#[derive(Clone, Debug, Default)]
pub struct Matrix(BTreeMap<(String, &'static str), Access>);

impl Matrix {
    pub(super) fn add(&mut self, path: String, method: &'static str, access: Access) {
        self.0.insert((path, method), access);
    }

    /// The line of a route; a route without one is closed.
    pub(crate) fn access(&self, method: &Method, path: &str) -> Option<Access> {
        let line = self
            .0
            .iter()
            .find(|((route, verb), _)| route == path && method == verb);
        line.map(|(_, access)| *access)
    }

    /// The methods that `path` takes, as in the header `Allow`.
    pub(crate) fn allow(&self, path: &str) -> String {
        let lines = self.0.keys().filter(|(route, _)| route == path);
        let methods: Vec<_> = lines
            .map(|(_, method)| if *method == "GET" { "GET, HEAD" } else { method })
            .collect();
        methods.join(", ")
    }

    /// All lines, by path: `GET /v1/skills`, and who may call it.
    pub fn lines(&self) -> impl Iterator<Item = (String, Access)> + '_ {
        self.0
            .iter()
            .map(|((path, method), access)| (format!("{method} {path}"), *access))
    }
}
