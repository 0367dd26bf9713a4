//! The access matrix: which scopes each route requires.

use std::collections::BTreeMap;

use axum::http::Method;

use crate::auth::Scope;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// No key.
    Open,
    /// A key with one of these scopes (`admin` includes all).
    Key(&'static [Scope]),
    /// A key with one of these scopes, or a signed link.
    KeyOrLink(&'static [Scope]),
}

/// Used by authorization, the OpenAPI document and tests.
#[derive(Clone, Debug, Default)]
pub struct Matrix(BTreeMap<(String, &'static str), Access>);

impl Matrix {
    pub(crate) fn add(&mut self, path: String, method: &'static str, access: Access) {
        self.0.insert((path, method), access);
    }

    /// The entry of a route. A route without an entry is closed.
    pub(crate) fn access(&self, method: &Method, path: &str) -> Option<Access> {
        let line = self
            .0
            .iter()
            .find(|((route, verb), _)| route == path && method == verb);
        line.map(|(_, access)| *access)
    }

    /// The methods of `path`, for the header `Allow`.
    pub(crate) fn allow(&self, path: &str) -> String {
        let lines = self.0.keys().filter(|(route, _)| route == path);
        let methods: Vec<_> = lines
            .map(|(_, method)| if *method == "GET" { "GET, HEAD" } else { method })
            .collect();
        methods.join(", ")
    }

    /// All entries: `GET /v1/skills` and its access, by path.
    pub fn lines(&self) -> impl Iterator<Item = (String, Access)> + '_ {
        self.0
            .iter()
            .map(|((path, method), access)| (format!("{method} {path}"), *access))
    }
}
