//! All routes, with their entries in the access matrix.

use std::sync::Arc;

use axum::routing::MethodRouter;
use utoipa::openapi::path::{Operation, PathItem};
use utoipa::openapi::security::SecurityRequirement;
use utoipa_axum::router::{OpenApiRouter, UtoipaMethodRouter};
use utoipa_axum::routes;

use super::access::{Access, Matrix};
#[cfg(feature = "grpc")]
use super::grpc_schema;
use super::state::ApiState;
use super::{
    artifacts, audit, blobs, changes, deps, document, events, executions, health, keys, metrics, prove,
    rerun, results, sdk, secrets, server_info, session, skill_files, skills, stats, tools, webhooks,
};
use crate::api;
use crate::auth::Scope;

const OPEN: Access = Access::Open;
const RUN: Access = Access::Key(api::RUN);
const SKILLS: Access = Access::Key(api::SKILLS);
const RUN_OR_SKILLS: Access = Access::Key(api::RUN_OR_SKILLS);
const RUN_OR_LINK: Access = Access::KeyOrLink(api::RUN);
const ADMIN: Access = Access::Key(api::ADMIN);
const ANY_KEY: Access = Access::Key(api::ANY_KEY);

pub(crate) fn table() -> RouteTable {
    let table = rest();
    #[cfg(feature = "mcp")]
    let table = table.protocol(RUN_OR_SKILLS, super::MCP_PATH, super::mcp::route());
    #[cfg(feature = "grpc")]
    let table = table.route(OPEN, routes!(grpc_schema::schema));
    table
}

fn rest() -> RouteTable {
    RouteTable::default()
        .route(OPEN, routes!(health::index))
        .route(OPEN, routes!(health::healthz))
        .route(OPEN, routes!(health::readyz))
        .route(OPEN, routes!(document::openapi))
        .route(OPEN, routes!(sdk::index))
        .route(OPEN, routes!(sdk::file))
        .route(ADMIN, routes!(metrics::metrics))
        .route(RUN, routes!(server_info::show))
        .route(RUN, routes!(server_info::usage))
        .route(RUN, routes!(stats::show))
        .route(RUN, routes!(changes::changes))
        .route(SKILLS, routes!(skills::publish))
        .route(RUN_OR_SKILLS, routes!(skills::list))
        .route(RUN_OR_SKILLS, routes!(skills::versions))
        .route(RUN_OR_SKILLS, routes!(skills::show))
        .route(RUN_OR_SKILLS, routes!(skills::archive))
        .route(RUN_OR_SKILLS, routes!(skill_files::list))
        .route(RUN_OR_SKILLS, routes!(skill_files::file))
        .route(RUN_OR_SKILLS, routes!(skill_files::diff))
        .route(RUN_OR_SKILLS, routes!(skill_files::lint))
        .route(RUN_OR_SKILLS, routes!(skill_files::versions_of_lint))
        .route(SKILLS, routes!(skill_files::lint_archive))
        .route(SKILLS, routes!(skills::delete))
        .route(SKILLS, routes!(skills::set_requirements))
        .route(RUN_OR_SKILLS, routes!(tools::list))
        .route(RUN_OR_SKILLS, routes!(tools::for_prompt))
        .route(RUN, routes!(executions::create))
        .route(RUN, routes!(executions::list))
        .route(RUN, routes!(executions::show))
        .route(RUN, routes!(executions::logs))
        .route(RUN, routes!(events::events))
        .route(RUN, routes!(executions::cancel))
        .route(RUN, routes!(rerun::request))
        .route(RUN, routes!(rerun::rerun))
        .route(RUN, routes!(executions::delete))
        .route(RUN, routes!(executions::prune))
        .route(RUN, routes!(webhooks::of_execution))
        .route(RUN, routes!(webhooks::list))
        .route(RUN, routes!(webhooks::redeliver))
        .route(ADMIN, routes!(webhooks::secret))
        .route(ADMIN, routes!(webhooks::rotate))
        .route(RUN_OR_LINK, routes!(artifacts::archive))
        .route(RUN_OR_LINK, routes!(artifacts::file))
        .route(RUN_OR_LINK, routes!(results::form))
        .route(RUN, routes!(blobs::create))
        .route(RUN, routes!(blobs::list))
        .route(RUN, routes!(blobs::download))
        .route(RUN, routes!(blobs::delete))
        .route(RUN_OR_SKILLS, routes!(deps::list))
        .route(SKILLS, routes!(deps::prefetch))
        .route(SKILLS, routes!(deps::delete))
        .route(ADMIN, routes!(keys::create))
        .route(ADMIN, routes!(keys::list))
        .route(ADMIN, routes!(keys::revoke))
        .route(ADMIN, routes!(keys::rotate))
        // The key or token is in the body.
        .route(OPEN, routes!(session::open))
        .route(ANY_KEY, routes!(session::show))
        .route(ANY_KEY, routes!(session::close))
        .route(ANY_KEY, routes!(session::create_link))
        .route(ADMIN, routes!(session::list))
        .route(ADMIN, routes!(session::end))
        .route(ADMIN, routes!(audit::list))
        .route(ADMIN, routes!(prove::start))
        .route(ADMIN, routes!(prove::show))
        .route(ADMIN, routes!(secrets::set))
        .route(ADMIN, routes!(secrets::list))
        .route(ADMIN, routes!(secrets::delete))
}

/// Routes with their OpenAPI operations and entries in the matrix.
#[derive(Clone, Default)]
pub(crate) struct RouteTable {
    pub(crate) router: OpenApiRouter<Arc<ApiState>>,
    pub(crate) matrix: Matrix,
}

impl RouteTable {
    fn route(mut self, access: Access, route: UtoipaMethodRouter<Arc<ApiState>>) -> Self {
        let (schemas, mut paths, methods) = route;
        for (path, item) in &mut paths.paths {
            for (method, operation) in operations(item) {
                operation.security = Some(requirements(access));
                document::complete(operation, access);
                self.matrix.add(path.clone(), method, access);
            }
        }
        self.router = self.router.routes((schemas, paths, methods));
        self
    }

    /// A route for `POST` of another protocol, which the OpenAPI document does not describe.
    #[cfg_attr(
        not(feature = "mcp"),
        expect(dead_code, reason = "no other protocol is compiled in")
    )]
    fn protocol(mut self, access: Access, path: &str, route: MethodRouter<Arc<ApiState>>) -> Self {
        self.matrix.add(path.to_owned(), "POST", access);
        self.router = self.router.route(path, route);
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
