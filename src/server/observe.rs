//! Log, metrics and traces of a server.

use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::config::Config;
use crate::engine::Engine;
use crate::http::{self, MetricsRoute};
use crate::server::Error;
use crate::telemetry;

/// Sends the remaining traces when dropped.
pub(super) struct TraceGuard {
    #[cfg(feature = "otlp")]
    sent: Option<telemetry::Traces>,
}

#[cfg(feature = "otlp")]
impl Drop for TraceGuard {
    fn drop(&mut self) {
        if let Some(sent) = &self.sent {
            tokio::task::block_in_place(|| sent.end());
        }
    }
}

pub(super) fn begin(config: &Config) -> Result<TraceGuard, Error> {
    let (filter, format) = (config.log.filter.as_deref().unwrap_or("info"), config.log.format);
    #[cfg(feature = "otlp")]
    if let Some(collector) = &config.observe.collector {
        let sent = Some(telemetry::init_with_traces(filter, format, collector)?);
        return Ok(TraceGuard { sent });
    }
    telemetry::init(filter, format)?;
    Ok(TraceGuard {
        #[cfg(feature = "otlp")]
        sent: None,
    })
}

pub(super) fn route(config: &Config) -> MetricsRoute {
    if config.observe.metrics {
        MetricsRoute::Served
    } else {
        MetricsRoute::Closed
    }
}

/// Serves metrics on their own address, if configured, until `closing`.
pub(super) async fn serve(
    config: &Config,
    engine: &Engine,
    closing: CancellationToken,
) -> Result<JoinHandle<()>, Error> {
    let Some(address) = config.observe.metrics_listen else {
        return Ok(tokio::spawn(async {}));
    };
    let listener = TcpListener::bind(address)
        .await
        .map_err(|source| Error::ListenForMetrics { address, source })?;
    let address = listener.local_addr().map_err(Error::Signals)?;
    tracing::info!(%address, "Serving metrics on {address} without authentication");
    Ok(tokio::spawn(http::serve(
        listener,
        http::metrics_app(engine.clone()),
        closing,
    )))
}
