//! Every route of this door, in one list, with who may call it beside it.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::http::Method;
use utoipa::openapi::path::{Operation, PathItem};
use utoipa::openapi::security::SecurityRequirement;
use utoipa_axum::router::{OpenApiRouter, UtoipaMethodRouter};
use utoipa_axum::routes;

use super::door::Door;
use super::{artifacts, document, executions, health, keys, skills};
use crate::auth::Scope;

/// Who may call a route.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Anybody.
    Open,
    /// Whoever has a key with one of these scopes (`admin` includes all).
    Key(&'static [Scope]),
    /// As `Key`, and whoever has a signed link.
    KeyOrLink(&'static [Scope]),
}

const OPEN: Access = Access::Open;
const RUN: Access = Access::Key(&[Scope::Run]);
const SKILLS: Access = Access::Key(&[Scope::Skills]);
const RUN_OR_SKILLS: Access = Access::Key(&[Scope::Run, Scope::Skills]);
const RUN_OR_LINK: Access = Access::KeyOrLink(&[Scope::Run]);
const ADMIN: Access = Access::Key(&[Scope::Admin]);

/// The list.
pub(crate) fn table() -> Table {
    Table::default()
        .route(OPEN, routes!(health::index))
        .route(OPEN, routes!(health::healthz))
        .route(OPEN, routes!(health::readyz))
        .route(OPEN, routes!(document::openapi))
        .route(SKILLS, routes!(skills::publish))
        .route(RUN_OR_SKILLS, routes!(skills::list))
        .route(RUN_OR_SKILLS, routes!(skills::versions))
        .route(RUN_OR_SKILLS, routes!(skills::show))
        .route(RUN_OR_SKILLS, routes!(skills::archive))
        .route(SKILLS, routes!(skills::delete))
        .route(RUN, routes!(executions::create))
        .route(RUN, routes!(executions::list))
        .route(RUN, routes!(executions::show))
        .route(RUN, routes!(executions::logs))
        .route(RUN, routes!(executions::cancel))
        .route(RUN_OR_LINK, routes!(artifacts::archive))
        .route(RUN_OR_LINK, routes!(artifacts::file))
        .route(ADMIN, routes!(keys::create))
        .route(ADMIN, routes!(keys::list))
        .route(ADMIN, routes!(keys::revoke))
        .route(ADMIN, routes!(keys::rotate))
}

/// Routes with their handlers, their documents and their lines in the matrix.
#[derive(Clone, Default)]
pub(crate) struct Table {
    pub(crate) router: OpenApiRouter<Arc<Door>>,
    pub(crate) matrix: Matrix,
}

/// Who may call what: read by the guard, by the document and by the tests.
#[derive(Clone, Debug, Default)]
pub struct Matrix(BTreeMap<(String, &'static str), Access>);

impl Matrix {
    /// The line of a route; a route without one is closed.
    pub(crate) fn access(&self, method: &Method, path: &str) -> Option<Access> {
        let line = self
            .0
            .iter()
            .find(|((route, verb), _)| route == path && method == verb);
        line.map(|(_, access)| *access)
    }

    /// All lines, by path: `GET /v1/skills`, and who may call it.
    pub fn lines(&self) -> impl Iterator<Item = (String, Access)> + '_ {
        self.0
            .iter()
            .map(|((path, method), access)| (format!("{method} {path}"), *access))
    }
}

impl Table {
    fn route(mut self, access: Access, route: UtoipaMethodRouter<Arc<Door>>) -> Self {
        let (schemas, mut paths, methods) = route;
        for (path, item) in &mut paths.paths {
            for (method, operation) in operations(item) {
                operation.security = Some(requirements(access));
                document::complete(operation, access);
                self.matrix.0.insert((path.clone(), method), access);
            }
        }
        self.router = self.router.routes((schemas, paths, methods));
        self
    }
}

fn operations(item: &mut PathItem) -> impl Iterator<Item = (&'static str, &mut Operation)> {
    [
        ("GET", &mut item.get),
        ("POST", &mut item.post),
        ("PUT", &mut item.put),
        ("PATCH", &mut item.patch),
        ("DELETE", &mut item.delete),
    ]
    .into_iter()
    .filter_map(|(method, operation)| operation.as_mut().map(|operation| (method, operation)))
}

fn requirements(access: Access) -> Vec<SecurityRequirement> {
    let keys = |scopes: &[Scope]| {
        let names = scopes.iter().map(|scope| scope.as_str());
        names
            .map(|name| SecurityRequirement::new(document::KEY_SCHEME, [name]))
            .collect::<Vec<_>>()
    };
    match access {
        Access::Open => Vec::new(),
        Access::Key(scopes) => keys(scopes),
        Access::KeyOrLink(scopes) => {
            let mut all = keys(scopes);
            all.push(SecurityRequirement::new(document::LINK_SCHEME, [""; 0]));
            all
        }
    }
}
