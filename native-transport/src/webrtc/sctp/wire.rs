//! The packet format of SCTP (RFC 9260 section 3), as far as one data channel of short messages needs it. It reads and
//! writes bytes and keeps no state.

pub const DATA: u8 = 0;
pub const INIT: u8 = 1;
pub const INIT_ACK: u8 = 2;
pub const SACK: u8 = 3;
pub const HEARTBEAT: u8 = 4;
pub const HEARTBEAT_ACK: u8 = 5;
pub const ABORT: u8 = 6;
pub const SHUTDOWN: u8 = 7;
pub const SHUTDOWN_ACK: u8 = 8;
pub const COOKIE_ECHO: u8 = 10;
pub const COOKIE_ACK: u8 = 11;
pub const SHUTDOWN_COMPLETE: u8 = 14;
/// Resets streams (RFC 6525). Closing a data channel resets its stream.
pub const RE_CONFIG: u8 = 130;
/// Tells the receiver not to wait for lost packets (RFC 3758).
pub const FORWARD_TSN: u8 = 192;

/// Flags of DATA. The chunk holds the first and the last fragment of its message.
pub const WHOLE: u8 = 3;
pub const UNORDERED: u8 = 4;
/// The receiver should acknowledge at once (RFC 7053).
pub const AT_ONCE: u8 = 8;

const HEADER_BYTES: usize = 12;
const CHUNK_HEADER_BYTES: usize = 4;
/// TSN, stream, sequence number in the stream, payload protocol.
pub const DATA_HEADER_BYTES: usize = 12;

pub fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_be_bytes(bytes.get(at..at + 2)?.try_into().ok()?))
}

pub fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_be_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

pub struct Header {
    pub source: u16,
    pub destination: u16,
    pub tag: u32,
}

/// A chunk in the sense of RFC 9260: one part of a packet. It is not a chunk of a download.
pub struct SctpChunk<'a> {
    pub kind: u8,
    pub flags: u8,
    pub body: &'a [u8],
}

/// Reads a packet's header. None when the packet is too short. DTLS protects the packet, so the checksum is not
/// checked.
pub fn parse(packet: &[u8]) -> Option<(Header, SctpChunks<'_>)> {
    let header = Header { source: u16_at(packet, 0)?, destination: u16_at(packet, 2)?, tag: u32_at(packet, 4)? };
    Some((header, SctpChunks { rest: packet.get(HEADER_BYTES..)? }))
}

/// Ends before the first chunk that does not fit.
pub struct SctpChunks<'a> {
    rest: &'a [u8],
}

impl<'a> Iterator for SctpChunks<'a> {
    type Item = SctpChunk<'a>;

    fn next(&mut self) -> Option<SctpChunk<'a>> {
        let length = usize::from(u16_at(self.rest, 2)?);
        let body = self.rest.get(CHUNK_HEADER_BYTES..length)?;
        let chunk = SctpChunk { kind: self.rest[0], flags: self.rest[1], body };
        self.rest = self.rest.get(length.next_multiple_of(4)..).unwrap_or_default();
        Some(chunk)
    }
}

/// A packet that is being written.
pub struct Packet(Vec<u8>);

impl Packet {
    pub fn new(header: &Header, capacity: usize) -> Self {
        let mut bytes = Vec::with_capacity(HEADER_BYTES + capacity);
        bytes.extend_from_slice(&header.source.to_be_bytes());
        bytes.extend_from_slice(&header.destination.to_be_bytes());
        bytes.extend_from_slice(&header.tag.to_be_bytes());
        bytes.extend_from_slice(&[0; 4]);
        Self(bytes)
    }

    /// Adds a chunk. `body` comes in parts.
    pub fn add(&mut self, kind: u8, flags: u8, body: &[&[u8]]) {
        let length = CHUNK_HEADER_BYTES + body.iter().map(|part| part.len()).sum::<usize>();
        self.0.extend_from_slice(&[kind, flags]);
        self.0.extend_from_slice(&(length as u16).to_be_bytes());
        body.iter().for_each(|part| self.0.extend_from_slice(part));
        self.0.resize(self.0.len().next_multiple_of(4), 0);
    }

    pub fn is_empty(&self) -> bool {
        self.0.len() == HEADER_BYTES
    }

    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Writes the checksum (CRC32c, RFC 9260 appendix A) and returns the packet.
    pub fn finish(mut self) -> Vec<u8> {
        let checksum = crc32c::crc32c(&self.0);
        self.0[8..HEADER_BYTES].copy_from_slice(&checksum.to_le_bytes());
        self.0
    }
}

/// A parameter of a chunk: type, length and value, padded.
pub fn parameter(kind: u16, value: &[u8]) -> Vec<u8> {
    let length = (CHUNK_HEADER_BYTES + value.len()) as u16;
    let mut bytes = [kind.to_be_bytes(), length.to_be_bytes()].concat();
    bytes.extend_from_slice(value);
    bytes.resize(bytes.len().next_multiple_of(4), 0);
    bytes
}

/// The types and values of parameters that lie end to end in a chunk's body.
pub fn parameters(bytes: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    let mut rest = bytes;
    std::iter::from_fn(move || {
        let (kind, length) = (u16_at(rest, 0)?, usize::from(u16_at(rest, 2)?));
        let value = rest.get(CHUNK_HEADER_BYTES..length)?;
        rest = rest.get(length.next_multiple_of(4)..).unwrap_or_default();
        Some((kind, value))
    })
}

/// Extends a TSN to 64 bits. Of the numbers with these last 32 bits, it is the one nearest to `near`.
pub fn unwrapped(tsn: u32, near: u64) -> u64 {
    near.wrapping_add_signed(i64::from(tsn.wrapping_sub(near as u32) as i32))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_the_chunks_that_were_added_and_stops_at_one_that_does_not_fit() {
        let mut packet = Packet::new(&Header { source: 1, destination: 2, tag: 3 }, 64);
        packet.add(HEARTBEAT, 5, &[&[1, 2, 3]]);
        packet.add(DATA, WHOLE, &[&[0; 12], &[9]]);
        let bytes = packet.finish();
        let (header, chunks) = parse(&bytes).unwrap();
        assert_eq!((header.source, header.destination, header.tag), (1, 2, 3));
        let seen: Vec<_> = chunks.map(|chunk| (chunk.kind, chunk.flags, chunk.body.len())).collect();
        assert_eq!(seen, [(HEARTBEAT, 5, 3), (DATA, WHOLE, 13)]);
        for end in 0..=bytes.len() {
            let seen = parse(&bytes[..end]).map_or(0, |(_, chunks)| chunks.count());
            assert_eq!(seen, usize::from(end >= 19) + usize::from(end >= 37), "chunks in {end} bytes");
        }
        assert_eq!(parse(&[[0; 12].as_slice(), &[0, 0, 0, 3]].concat()).unwrap().1.count(), 0);
    }

    #[test]
    fn writes_the_checksum_of_rfc_9260() {
        let packet = Packet::new(&Header { source: 5000, destination: 5000, tag: 0 }, 0).finish();
        let mut bare = packet.clone();
        bare[8..12].fill(0);
        assert_eq!(u32::from_le_bytes(packet[8..12].try_into().unwrap()), crc32c::crc32c(&bare));
        assert_eq!(crc32c::crc32c(b"123456789"), 0xe306_9283);
    }

    #[test]
    fn extends_tsns_across_their_wrap() {
        let near = (7 << 32) + 5;
        assert_eq!(unwrapped(5, near), near);
        assert_eq!(unwrapped(u32::MAX, near), near - 6);
        assert_eq!(unwrapped(100, near), near + 95);
    }
}
