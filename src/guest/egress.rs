//! Network access of a build: forwards connections to a port of its loopback to the host, each as a stream.
//!
//! Nothing is checked here: the server authorizes each connection.

use std::io;
use std::net::Ipv4Addr;
use std::sync::Arc;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, copy_bidirectional};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::time::sleep;

use crate::guest::wire::{Channel, Opener};
use crate::limits;

/// Bytes still read from a tunnel after the program closed it.
const LEFT_BYTES_MAX: u64 = 64 * 1024;

/// Listens before the program starts; ends with the guest.
pub(super) async fn listen(port: u16, opener: Opener) -> io::Result<()> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).await?;
    let places = Arc::new(Semaphore::new(limits::EGRESS_CONNECTIONS_MAX));
    tokio::spawn(async move {
        // Further connections wait in the listener's queue.
        while let Ok(place) = places.clone().acquire_owned().await {
            let Ok((connection, _)) = listener.accept().await else {
                // Without descriptors, for example: try again later.
                sleep(limits::DRAIN_MAX).await;
                continue;
            };
            let opener = opener.clone();
            tokio::spawn(async move {
                // The program notices a closed connection itself.
                let _ = tunnel(connection, opener).await;
                drop(place);
            });
        }
    });
    Ok(())
}

async fn tunnel(mut connection: TcpStream, opener: Opener) -> io::Result<()> {
    let mut stream = opener.open(Channel::Egress).await?;
    let copied = copy_bidirectional(&mut connection, &mut stream).await;
    drop(connection);
    // A program that closes and reconnects must not exceed the limit while the host still dials: wait until the host
    // has seen the end.
    let _ = stream.shutdown().await;
    let mut rest = stream.take(LEFT_BYTES_MAX);
    let _ = tokio::io::copy(&mut rest, &mut tokio::io::sink()).await;
    copied.map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::guest::wire::{Link, Side};

    /// Each breaks off while the host is still busy with it.
    #[tokio::test]
    async fn link_survives_many_short_connections() {
        let (near, far) = tokio::io::duplex(64 * 1024);
        let (mut host, guest) = (Link::new(near, Side::Host), Link::new(far, Side::Guest));
        let port = free_port().await;
        listen(port, guest.opener()).await.unwrap();
        for round in 0..4 {
            let mut held = Vec::new();
            for _ in 0..limits::EGRESS_CONNECTIONS_MAX {
                let mut client = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).await.unwrap();
                client.write_all(b"CONNECT").await.unwrap();
                let (channel, mut stream) = host.accept().await.unwrap();
                assert_eq!(channel, Channel::Egress, "round {round}");
                stream.read_exact(&mut [0; 7]).await.unwrap();
                client.set_zero_linger().unwrap();
                drop(client);
                held.push(stream);
            }
            // All permits are taken: no other connection is forwarded until one of these has ended.
            let _waits = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).await.unwrap();
            let next = tokio::time::timeout(std::time::Duration::from_millis(50), host.accept()).await;
            assert!(next.is_err(), "round {round}");
            drop(held);
            assert!(host.accept().await.is_ok(), "round {round}");
        }
    }

    /// From all sides at once, over a link that holds them up.
    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn link_survives_hundreds_of_refused_connections() {
        let (near, far) = tokio::io::duplex(64);
        let (mut host, guest) = (Link::new(near, Side::Host), Link::new(far, Side::Guest));
        let port = free_port().await;
        listen(port, guest.opener()).await.unwrap();
        let clients: Vec<_> = (0..2 * limits::EGRESS_CONNECTIONS_MAX)
            .map(|_| {
                tokio::spawn(async move {
                    for _ in 0..16 {
                        let mut client = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).await.unwrap();
                        let _ = client.write_all(&[b'x'; 512]).await;
                    }
                })
            })
            .collect();
        for _ in 0..clients.len() * 16 {
            let (channel, stream) = host.accept().await.unwrap();
            assert_eq!(channel, Channel::Egress);
            tokio::spawn(async move { drop(stream) });
        }
        for client in clients {
            client.await.unwrap();
        }
    }

    async fn free_port() -> u16 {
        let free = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        free.local_addr().unwrap().port()
    }
}
