//! Dials hosts: resolves a name once, checks every address, and connects to a checked address.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::limits;

/// Dials hosts that a tenant or a package list names.
#[derive(Clone, Copy, Debug)]
pub struct Connector {
    pub resolver: Resolver,
    /// Time limit for connecting to one of several addresses.
    pub connect_max: Duration,
}

/// Translates names to addresses.
#[derive(Clone, Copy, Debug, Default)]
pub enum Resolver {
    #[default]
    System,
    /// Answers of a test.
    #[cfg(feature = "testing")]
    Scripted(fn(&str) -> Vec<IpAddr>),
}

#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    #[error("{0}")]
    Unresolved(#[source] io::Error),
    #[error("{0} is not a public address")]
    Forbidden(IpAddr),
    #[error("{0}")]
    Unreachable(#[source] io::Error),
    #[error("timed out")]
    TimedOut,
}

impl Connector {
    /// Connects to a host name or IP address (IPv6 with or without brackets) if all of its addresses are allowed (A-21, E-06).
    pub async fn connect_checked(
        &self,
        host: &str,
        port: u16,
        is_allowed: impl Fn(IpAddr) -> bool,
    ) -> Result<TcpStream, ConnectError> {
        let addresses = self.resolver.resolve(host).await;
        let addresses = addresses.map_err(ConnectError::Unresolved)?;
        // One forbidden address makes the whole answer suspicious.
        if let Some(forbidden) = addresses.iter().find(|address| !is_allowed(**address)) {
            return Err(ConnectError::Forbidden(*forbidden));
        }
        let mut failed = ConnectError::Unresolved(io::ErrorKind::NotFound.into());
        for address in addresses.into_iter().take(limits::EGRESS_ADDRESSES_MAX) {
            let connecting = TcpStream::connect(SocketAddr::new(address, port));
            failed = match timeout(self.connect_max, connecting).await {
                Ok(Ok(stream)) => return Ok(stream),
                Ok(Err(error)) => ConnectError::Unreachable(error),
                Err(_) => ConnectError::TimedOut,
            };
        }
        Err(failed)
    }
}

impl Resolver {
    async fn resolve(self, host: &str) -> io::Result<Vec<IpAddr>> {
        let host = host.trim_matches(['[', ']']);
        if let Ok(address) = host.parse() {
            return Ok(vec![address]);
        }
        match self {
            Self::System => {
                let found = tokio::net::lookup_host((host, 0)).await?;
                Ok(found.map(|address| address.ip()).collect())
            }
            #[cfg(feature = "testing")]
            Self::Scripted(resolve) => Ok(resolve(host)),
        }
    }
}
