//! Measures how many bytes a receiver gathers into one acknowledgement. Browsers gather ten packets, TCP gathers two.
//! Bytes that have arrived and wait for an acknowledgement still count as in flight, so the link sees a window that is
//! smaller by these bytes. The controller adds them.

/// Packets per acknowledgement of TCP. The controller adds nothing for them.
const GATHERED_PACKETS: u64 = 2;
/// The controller adds at most this many packets.
const UNHEARD_PACKETS_MAX: u64 = 16;

#[derive(Clone, Default)]
pub struct Gathering {
    /// Bytes of the acknowledgement that is being read.
    batch: u64,
    /// The most bytes of one acknowledgement, in this round and in the round before.
    most: [u64; 2],
    /// Acknowledgements in this round.
    acks: u64,
    /// Mean bytes per acknowledgement in the round before.
    mean: u64,
}

impl Gathering {
    pub fn note_acked(&mut self, bytes: u64) {
        self.batch += bytes;
    }

    /// Ends an acknowledgement. Returns its bytes, and those of earlier ones that told of no new packet.
    pub fn end_ack(&mut self) -> u64 {
        let acked = std::mem::take(&mut self.batch);
        self.most[0] = self.most[0].max(acked);
        self.acks += 1;
        acked
    }

    pub fn end_round(&mut self, acked: u64) {
        self.most = [0, self.most[0]];
        self.mean = acked / self.acks.max(1);
        self.acks = 0;
    }

    /// Bytes to add when no other flow is on the link. A receiver that paused once needs no larger window, so the mean
    /// counts.
    pub fn mean_unheard(&self, mtu: u64) -> u64 {
        unheard(self.mean, mtu)
    }

    /// Bytes to add beside other flows. Their queue takes whatever is missing, so the maximum counts.
    pub fn most_unheard(&self, mtu: u64) -> u64 {
        unheard(self.most[0].max(self.most[1]), mtu)
    }
}

fn unheard(gathered: u64, mtu: u64) -> u64 {
    gathered.saturating_sub(GATHERED_PACKETS * mtu).min(UNHEARD_PACKETS_MAX * mtu)
}
