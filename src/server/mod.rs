//! Assembles a process from its configuration, and runs the server.

mod admin_key;
mod assemble;
mod banner;
mod error;
#[cfg(target_os = "linux")]
mod idle_memory;
#[cfg(target_os = "linux")]
mod memory;
mod observe;
mod open_files;
mod prover;
#[cfg_attr(windows, path = "signals_windows.rs")]
mod signals;
mod transports;

use std::time::Duration;

use tokio_util::sync::CancellationToken;

use crate::config::Config;
use crate::engine::Engine;
use crate::http;
use crate::limits;

pub use admin_key::{AdminKey, find_or_create_admin_key, recover_key};
pub use assemble::{Assembled, assemble};
pub use banner::{Greeting, reachable};
pub use error::Error;
pub use signals::Signals;
use transports::Transports;

/// Serves until a signal arrives, then drains running executions (F-05).
pub async fn serve(config: Config, greeting: Greeting) -> Result<(), Error> {
    let _traces = observe::begin(&config)?;
    // Register signal handlers first: an early signal must not trigger the default action.
    let mut signals = Signals::new()?;
    let files = open_files::raise_limit();
    let Assembled { engine, folder } = assemble(&config).await?;
    engine.maintenance().keep_warm(config.sandbox.pool);
    let transports = Transports::bind(&config).await?;
    let (address, grpc) = (transports.address, transports.grpc_address);
    prover::enable(&engine, &config, &folder);
    let webhooks = engine.webhooks().sender()?;
    let key = find_or_create_admin_key(&engine, &folder).await?;
    let settings = http::Settings {
        server_url: config.server_url.clone(),
        allowed_hosts: config.allowed_hosts.clone(),
        dashboard: config.dashboard,
        metrics: observe::route(&config),
        connections: open_files::connections(files, &config),
    };
    let closing = CancellationToken::new();
    let api = http::Api::new(engine.clone(), &settings);
    let serving = transports.serve(&api, &settings.connections, &closing);
    let observed = observe::serve(&config, &engine, closing.clone()).await?;
    let maintenance = tokio::spawn(maintain(engine.clone(), closing.clone()));
    let delivering = tokio::spawn(webhooks.run(closing.clone()));
    for doubt in folder.doubts() {
        tracing::warn!("data_dir: {} {doubt}", folder.path().display());
    }
    for notice in &config.notices {
        tracing::warn!("{notice}");
    }
    banner::greet(
        greeting,
        &banner::Facts {
            config: &config,
            address,
            grpc,
            folder: &folder,
            key: &key,
            engine: &engine,
        },
    )
    .await;
    // Starting loads code pages that an idle server does not need.
    #[cfg(target_os = "linux")]
    tokio::spawn(idle_memory::release_when_idle(engine.clone(), closing.clone()));

    let ended = next_end(&engine, &mut signals).await;
    tracing::info!(
        "Shutting down: waiting up to {} s for running executions; signal again to stop immediately",
        limits::DRAIN_SERVER_MAX.as_secs()
    );
    engine.proofs().stop();
    let ending = async {
        // `/readyz` fails from here on while requests are still served, so that load balancers stop sending requests.
        engine.maintenance().shutdown(limits::DRAIN_SERVER_MAX).await;
        closing.cancel();
        let _ = tokio::join!(serving, observed, maintenance, delivering);
    };
    tokio::select! {
        () = ending => tracing::info!("Ended"),
        () = signals.next() => {
            tracing::warn!("Stopped immediately; the next start cleans up");
            std::process::exit(130);
        }
    }
    ended
}

/// Waits for a signal, or for the failure of the database, after which nothing can be recorded.
async fn next_end(engine: &Engine, signals: &mut Signals) -> Result<(), Error> {
    tokio::select! {
        () = signals.next() => Ok(()),
        () = engine.maintenance().storage_failed().cancelled_owned() => {
            tracing::error!("{}", Error::StorageFailed);
            Err(Error::StorageFailed)
        }
    }
}

/// Runs maintenance at start, to clean up after dead processes, and every minute.
async fn maintain(engine: Engine, closing: CancellationToken) {
    loop {
        let work = async {
            engine.maintenance().run().await;
            if let Err(error) = engine.runs().recover_queue().await {
                tracing::warn!(%error, "Resuming queued executions of earlier processes failed");
            }
        };
        // Executions start meanwhile.
        let maintenance = engine.maintenance();
        let round = async { tokio::join!(work, maintenance.wait()) };
        if closing.run_until_cancelled(round).await.is_none() {
            return;
        }
    }
}

pub fn runtime() -> Result<tokio::runtime::Runtime, Error> {
    tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(Error::Runtime)
}

/// Ends a runtime without waiting for blocked tasks.
pub fn end_runtime(runtime: tokio::runtime::Runtime) {
    const PATIENCE: Duration = Duration::from_secs(2);
    runtime.shutdown_timeout(PATIENCE);
}
