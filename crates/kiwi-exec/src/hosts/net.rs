//! Networks of addresses.

use std::net::IpAddr;

use super::internal::plain;

/// A network: an address and how many of its first bits count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Net {
    address: IpAddr,
    bits: u32,
}

impl Net {
    pub fn read(text: &str) -> Option<Self> {
        let (address, bits) = text.split_once('/').map_or((text, None), |(ip, bits)| (ip, Some(bits)));
        let address: IpAddr = address.parse().ok()?;
        let all = if address.is_ipv4() { 32 } else { 128 };
        let bits = match bits {
            Some(bits) => bits.parse().ok().filter(|bits| *bits <= all)?,
            None => all,
        };
        // An address that means an IPv4 one is compared as that one.
        let address = if bits == all { plain(address) } else { address };
        let bits = if address.is_ipv4() { bits.min(32) } else { bits };
        Some(Self { address, bits })
    }

    pub fn covers(&self, address: IpAddr) -> bool {
        let shared = match (self.address, plain(address)) {
            (IpAddr::V4(own), IpAddr::V4(other)) => (own.to_bits() ^ other.to_bits()).leading_zeros(),
            (IpAddr::V6(own), IpAddr::V6(other)) => (own.to_bits() ^ other.to_bits()).leading_zeros(),
            _ => return false,
        };
        shared >= self.bits
    }
}
