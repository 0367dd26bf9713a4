//! Connections of the server to hosts that tenants name: which hosts and addresses are allowed, and the only function that dials them.
//!
//! Proxy variables of the environment have no effect here, except on package installation through [`Upstream`].

mod address;
mod connect;
mod package_host;
mod package_proxy;
mod upstream;
mod webhook_policy;

pub use connect::{ConnectError, Connector, Resolver};
pub use package_host::{NamedBy, PackageHost};
pub use package_proxy::{PackageProxy, ProxyFailure};
pub use upstream::Upstream;
pub use webhook_policy::{PrivateDestination, RejectedDestination, WebhookPolicy};
