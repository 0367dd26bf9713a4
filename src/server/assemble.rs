//! From configuration to engine: the one place where the adapters are chosen.

use crate::blob::{Blob, LinkSigner};
use crate::config::{Backend, Config, DataFolder};
use crate::engine::{Engine, Instance, Parts};
use crate::sandbox::Sandbox;
use crate::server::Error;
use crate::store::Store;

/// An engine and the folder it keeps everything in.
#[derive(Debug)]
pub struct Assembled {
    /// The use cases.
    pub engine: Engine,
    /// The data folder.
    pub folder: DataFolder,
}

/// Puts an engine together. Several processes may share one data folder.
///
/// # Errors
///
/// The part that cannot be had, and what to do.
pub async fn assemble(config: &Config) -> Result<Assembled, Error> {
    let folder = config.data_folder()?;
    let instances = folder.path().join("instances");
    let instance = Instance::register(&instances).map_err(|source| Error::Instance {
        folder: instances,
        source,
    })?;
    let path = config.database_in(&folder);
    let store = Store::open_sqlite(&path)
        .await
        .map_err(|source| Error::Database { path, source })?;
    let path = folder.path().join("blobs");
    let blob = Blob::open_local(&path).map_err(|source| Error::Files { path, source })?;
    let sandbox = match config.sandbox.backend {
        Backend::Auto | Backend::Docker => Sandbox::docker(config.sandbox.docker.clone(), instance.id()),
    };
    let links = LinkSigner::new(&folder.signing_key()?)?;
    let settings = config.engine_settings(folder.path());
    let engine = Engine::new(Parts {
        store,
        blob,
        sandbox,
        links,
        settings,
        instance,
    });
    Ok(Assembled { engine, folder })
}
