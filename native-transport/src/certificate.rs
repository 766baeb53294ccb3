//! Self-signed certificates. Browsers accept a WebTransport server's certificate by its hash alone
//! (`serverCertificateHashes` of W3C WebTransport) when its key is ECDSA P-256 and it is valid for at most 14 days. The
//! server holds two: the one it shows and the next one. It publishes both hashes, so a client that learned them before
//! a rotation can still connect after it.

use dimpl::DtlsCertificate;
use time::{Duration, OffsetDateTime};
use wtransport::tls::{Certificate, Sha256DigestFmt};
use wtransport::Identity;

/// A certificate is valid from this time before it is made, for clients whose clocks are slow.
const SLOW_CLOCK: Duration = Duration::days(2);
/// Together with `SLOW_CLOCK`, less than the 14 days that browsers allow.
const LIFETIME: Duration = Duration::days(11);

pub struct Certificates {
    name: String,
    shown: Identity,
    next: Identity,
}

impl Certificates {
    /// `name`: the server's host name or address. No client checks it.
    pub fn new(name: &str) -> Result<Self, String> {
        Ok(Self { name: name.to_owned(), shown: make(name)?, next: make(name)? })
    }

    /// The next one becomes the one shown.
    pub fn rotate(&mut self) -> Result<(), String> {
        let fresh = make(&self.name)?;
        self.shown = std::mem::replace(&mut self.next, fresh);
        Ok(())
    }

    pub fn shown(&self) -> Identity {
        self.shown.clone_identity()
    }

    /// SHA-256 in lower-case hex of the certificate that is shown, then of the next one.
    pub fn hashes(&self) -> Vec<String> {
        [&self.shown, &self.next].map(hash_of).to_vec()
    }
}

/// A certificate for one connection of WebRTC, and its SHA-256. Each end knows the other's certificate by its hash
/// alone.
pub fn make_for_dtls() -> Result<(DtlsCertificate, [u8; 32]), String> {
    let identity = make("tributary")?;
    let certificate = identity.certificate_chain().as_slice()[0].der().to_vec();
    let fingerprint = sha256(&certificate);
    Ok((DtlsCertificate { certificate, private_key: identity.private_key().secret_der().to_vec() }, fingerprint))
}

/// The hash of a certificate in DER. Zeros when `der` is no certificate.
pub fn sha256(der: &[u8]) -> [u8; 32] {
    Certificate::from_der(der.to_vec()).map_or([0; 32], |certificate| *certificate.hash().as_ref())
}

fn make(name: &str) -> Result<Identity, String> {
    let now = OffsetDateTime::now_utc();
    Identity::self_signed_builder()
        .subject_alt_names([name])
        .validity_period(now - SLOW_CLOCK, now + LIFETIME)
        .build()
        .map_err(|error| format!("no certificate can be made for {name}: {error}"))
}

fn hash_of(identity: &Identity) -> String {
    identity.certificate_chain().as_slice()[0].hash().fmt(Sha256DigestFmt::DottedHex).replace(':', "")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rotation_shows_the_certificate_that_was_announced() {
        let mut certificates = Certificates::new("127.0.0.1").unwrap();
        let before = certificates.hashes();
        certificates.rotate().unwrap();
        let after = certificates.hashes();
        assert_eq!(before[1], after[0]);
        assert_ne!(after[0], after[1]);
        assert!(before.iter().all(|hash| hash.len() == 64));
    }
}
