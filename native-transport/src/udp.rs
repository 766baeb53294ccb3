//! Opens UDP sockets that have room for what arrives while the process waits for a processor.

use std::io;
use std::net::{SocketAddr, UdpSocket};

use socket2::{Domain, Protocol, Socket, Type};

/// What 100 MB/s bring in 40 ms. Systems have room for a twentieth by default, and drop the rest unseen.
const ROOM_BYTES: usize = 4 * 1024 * 1024;

/// A socket for IPv6 takes IPv4 too.
pub fn bind(address: SocketAddr) -> io::Result<UdpSocket> {
    let socket = Socket::new(Domain::for_address(address), Type::DGRAM, Some(Protocol::UDP))?;
    if address.is_ipv6() {
        // Some systems have sockets for one version of IP only.
        let _ = socket.set_only_v6(false);
    }
    // The machine may allow less. The socket works with any size.
    let _ = socket.set_recv_buffer_size(ROOM_BYTES);
    let _ = socket.set_send_buffer_size(ROOM_BYTES);
    socket.set_nonblocking(true)?;
    socket.bind(&address.into())?;
    Ok(socket.into())
}
