//! Creates the engine from the configuration. The one place that chooses adapters.

use crate::blob::{Blob, LinkSigner};
use crate::config::{BackendChoice, Config, DataFolder};
use crate::engine::{Engine, Parts};
use crate::ids::InstanceId;
use crate::sandbox::Sandbox;
#[cfg(target_os = "linux")]
use crate::sandbox::linux::{self, Degraded};
use crate::server::Error;
use crate::store::{Instance, Store};

#[derive(Debug)]
pub struct Assembled {
    pub engine: Engine,
    pub folder: DataFolder,
}

/// Creates an engine. Several processes may share a data folder.
pub async fn assemble(config: &Config) -> Result<Assembled, Error> {
    let folder = config.data_folder()?;
    let path = config.database_in(&folder);
    let store = match Store::open_sqlite(&path).await {
        Ok(store) => store,
        Err(source) => return Err(Error::Database { path, source }),
    };
    let instance = Instance::register_beside(&path)?.recognizing_locks_in(folder.path());
    let path = folder.path().join("blobs");
    let blob = Blob::open_local(&path).map_err(|source| Error::Files { path, source })?;
    let sandbox = sandbox(config, &folder, instance.id())?;
    #[cfg(target_os = "linux")]
    if let Err(error) = super::memory::keep_out_of_cores() {
        tracing::warn!(%error, "Core dumps not disabled, and they would contain secrets; set RLIMIT_CORE to 0");
    }
    let links = LinkSigner::new(&folder.signing_key()?)?;
    let master_key = config.master_key(&folder)?;
    let settings = config.engine_settings(folder.path());
    let engine = Engine::new(Parts {
        store,
        blob,
        sandbox,
        links,
        master_key,
        settings,
        instance,
    });
    Ok(Assembled { engine, folder })
}

#[cfg(target_os = "linux")]
fn sandbox(config: &Config, folder: &DataFolder, instance: InstanceId) -> Result<Sandbox, Error> {
    let wanted = &config.sandbox;
    let folders = config.native_folders(folder)?;
    let native = |allow_degraded| linux::Settings {
        program: None,
        allow_degraded,
        // One is being replaced, which takes longer than many programs run.
        waiting_max: 2 * config.limits.concurrency,
        folders,
    };
    Ok(match wanted.backend {
        BackendChoice::Auto => {
            let degraded = match wanted.native_degraded {
                true => Degraded::UnusedByAuto,
                false => Degraded::Refused,
            };
            Sandbox::auto(wanted.docker.clone(), native(degraded), instance)
        }
        BackendChoice::Docker => Sandbox::docker(wanted.docker.clone(), instance),
        BackendChoice::Native if wanted.native_degraded => {
            Sandbox::native(native(Degraded::Allowed), instance)
        }
        BackendChoice::Native => Sandbox::native(native(Degraded::Refused), instance),
    })
}

/// Only Linux has the native backend.
#[cfg(not(target_os = "linux"))]
fn sandbox(config: &Config, _: &DataFolder, instance: InstanceId) -> Result<Sandbox, Error> {
    Ok(match config.sandbox.backend {
        BackendChoice::Auto => Sandbox::auto(config.sandbox.docker.clone(), instance),
        BackendChoice::Docker | BackendChoice::Native => {
            Sandbox::docker(config.sandbox.docker.clone(), instance)
        }
    })
}
