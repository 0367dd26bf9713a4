//! What every backend promises, on containers.

use crate::world::Backend;

/// What the tests below run on.
pub(crate) const BACKEND: Backend = Backend::Docker;

#[path = "../blobs.rs"]
mod blobs;
#[path = "../deps.rs"]
mod deps;
#[path = "../deps_added.rs"]
mod deps_added;
#[path = "../deps_programs.rs"]
mod deps_programs;
#[path = "../deps_requested.rs"]
mod deps_requested;
#[path = "../deps_speed.rs"]
mod deps_speed;
#[path = "../deps_storage.rs"]
mod deps_storage;
#[path = "../examples.rs"]
mod examples;
#[path = "../functions.rs"]
mod functions;
#[cfg(unix)]
#[path = "../office.rs"]
mod office;
#[path = "../published.rs"]
mod published;
#[cfg(unix)]
#[path = "../published_places.rs"]
mod published_places;
#[path = "../run.rs"]
mod run;
#[path = "../run_code.rs"]
pub(crate) mod run_code;
#[path = "../sandbox_confinement.rs"]
mod sandbox_confinement;
#[path = "../sandbox_dependencies.rs"]
mod sandbox_dependencies;
#[path = "../sandbox_exhaustion.rs"]
mod sandbox_exhaustion;
#[path = "../sandbox_inputs.rs"]
pub(crate) mod sandbox_inputs;
#[path = "../sandbox_output.rs"]
mod sandbox_output;
#[path = "../sandbox_streams.rs"]
mod sandbox_streams;
#[path = "../sandbox_survivors.rs"]
mod sandbox_survivors;
#[path = "../secret_code_paths.rs"]
mod secret_code_paths;
#[path = "../secrets.rs"]
mod secrets;
#[path = "../streams.rs"]
mod streams;
#[path = "../streams_ends.rs"]
mod streams_ends;
#[path = "../tenant_files.rs"]
mod tenant_files;
#[path = "../toolbox.rs"]
mod toolbox;
#[path = "../warm.rs"]
mod warm;
