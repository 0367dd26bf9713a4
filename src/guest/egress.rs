//! The only way out of a sandbox that has one: connections to a port of its loopback, each handed to the host as a stream.
//!
//! Nothing is decided here. What comes out at the other end is the server's to judge.

use std::io;
use std::net::Ipv4Addr;
use std::sync::Arc;

use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::time::sleep;

use crate::guest::wire::{Channel, Opener};
use crate::limits;

/// Listens before the program starts; ends with the guest.
pub(super) async fn listen(port: u16, opener: Opener) -> io::Result<()> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).await?;
    let places = Arc::new(Semaphore::new(limits::EGRESS_CONNECTIONS_MAX));
    tokio::spawn(async move {
        // Who comes when all places are taken waits in the listener's own queue.
        while let Ok(place) = places.clone().acquire_owned().await {
            let Ok((connection, _)) = listener.accept().await else {
                // For want of descriptors, say: not at once again.
                sleep(limits::DRAIN_MAX).await;
                continue;
            };
            let opener = opener.clone();
            tokio::spawn(async move {
                // An end on either side is the program's to notice.
                let _ = tunnel(connection, opener).await;
                drop(place);
            });
        }
    });
    Ok(())
}

async fn tunnel(mut connection: TcpStream, opener: Opener) -> io::Result<()> {
    let mut stream = opener.open(Channel::Egress).await?;
    tokio::io::copy_bidirectional(&mut connection, &mut stream)
        .await
        .map(drop)
}
