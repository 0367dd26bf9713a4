//! The ports of a server: the REST API, and the gRPC API on its own port or on the same one.

use std::net::SocketAddr;

use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::config::Config;
#[cfg(feature = "grpc")]
use crate::grpc::{self, RestApi};
use crate::http::{self, Api, ConnectionLimits, ConnectionSlots};
use crate::server::Error;

pub(super) struct Transports {
    rest: TcpListener,
    grpc: GrpcListener,
    pub(super) address: SocketAddr,
    /// Where gRPC is served, if it is.
    pub(super) grpc_address: Option<SocketAddr>,
}

enum GrpcListener {
    Off,
    #[cfg(feature = "grpc")]
    WithRest,
    #[cfg(feature = "grpc")]
    Own(TcpListener),
}

impl Transports {
    pub(super) async fn bind(config: &Config) -> Result<Self, Error> {
        let listen = config.listen;
        let rest = TcpListener::bind(listen).await.map_err(|source| Error::Listen {
            address: listen,
            source,
        })?;
        let address = rest.local_addr().map_err(Error::Signals)?;
        let grpc = GrpcListener::bind(config, address).await?;
        let grpc_address = match &grpc {
            GrpcListener::Off => None,
            #[cfg(feature = "grpc")]
            GrpcListener::WithRest => Some(address),
            #[cfg(feature = "grpc")]
            GrpcListener::Own(listener) => Some(listener.local_addr().map_err(Error::Signals)?),
        };
        Ok(Self {
            rest,
            grpc,
            address,
            grpc_address,
        })
    }

    /// Serves until `closing`. All ports share the connections of the server.
    pub(super) fn serve(
        self,
        api: &Api,
        limits: &ConnectionLimits,
        closing: &CancellationToken,
    ) -> JoinHandle<()> {
        let slots = ConnectionSlots::new(limits);
        let serve =
            |listener, app| tokio::spawn(http::serve_within(listener, app, slots.clone(), closing.clone()));
        match self.grpc {
            GrpcListener::Off => serve(self.rest, api.rest()),
            #[cfg(feature = "grpc")]
            GrpcListener::WithRest => serve(self.rest, grpc::with_rest(api)),
            #[cfg(feature = "grpc")]
            GrpcListener::Own(listener) => {
                let rest = serve(self.rest, api.rest());
                let grpc = serve(listener, grpc::app(api, RestApi::AtPort(self.address.port())));
                tokio::spawn(async {
                    let _ = tokio::join!(rest, grpc);
                })
            }
        }
    }
}

impl GrpcListener {
    #[cfg(feature = "grpc")]
    async fn bind(config: &Config, rest: SocketAddr) -> Result<Self, Error> {
        let port = config.grpc;
        if port.number == 0 {
            return Ok(Self::Off);
        }
        if port.number == rest.port() {
            return Ok(Self::WithRest);
        }
        let address = SocketAddr::new(rest.ip(), port.number);
        match TcpListener::bind(address).await {
            Ok(listener) => Ok(Self::Own(listener)),
            Err(source) if port.is_default && source.kind() == std::io::ErrorKind::AddrInUse => {
                tracing::warn!(
                    "gRPC API not served: port {} is in use; set grpc.port (SKILLBOX_GRPC_PORT) to a free port, or to 0",
                    port.number
                );
                Ok(Self::Off)
            }
            Err(source) => Err(Error::ListenForGrpc { address, source }),
        }
    }

    #[cfg(not(feature = "grpc"))]
    #[expect(clippy::unused_async, reason = "as the one of a build with gRPC")]
    async fn bind(_: &Config, _: SocketAddr) -> Result<Self, Error> {
        Ok(Self::Off)
    }
}
