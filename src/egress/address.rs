//! Public addresses: all but those of private networks, the own host, multicast and cloud metadata, in every notation.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Documentation ranges (RFC 5737) count as public: no host is at risk there, and some networks use them for mirrors.
pub(super) fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => is_public_v4(address),
        IpAddr::V6(address) => is_public_v6(address),
    }
}

/// The host's metadata service in every network of Azure, at an address that looks public.
const AZURE_HOST: Ipv4Addr = Ipv4Addr::new(168, 63, 129, 16);

fn is_public_v4(address: Ipv4Addr) -> bool {
    let [a, b, c, _] = address.octets();
    let carrier_grade = a == 100 && (64..128).contains(&b);
    let benchmarking = a == 198 && (b & 0xfe) == 18;
    let reserved = a == 0 || a >= 240;
    let assigned = a == 192 && b == 0 && c == 0;
    let relay = a == 192 && b == 88 && c == 99;
    !(address.is_private()
        || address.is_loopback()
        || address.is_link_local()
        || address.is_multicast()
        || address == AZURE_HOST
        || carrier_grade
        || benchmarking
        || assigned
        || relay
        || reserved)
}

fn is_public_v6(address: Ipv6Addr) -> bool {
    // An embedded IPv4 address is classified by itself.
    let [a, b, c, d, e, f, g, h] = address.segments();
    let embedded = |high: u16, low: u16| {
        let ([a, b], [c, d]) = (high.to_be_bytes(), low.to_be_bytes());
        is_public_v4(Ipv4Addr::new(a, b, c, d))
    };
    match (a, b) {
        (0, 0) if (c, d, e) == (0, 0, 0) && matches!(f, 0 | 0xffff) => f == 0xffff && embedded(g, h),
        // NAT64. A local translator (64:ff9b:1::/48) may lead anywhere.
        (0x64, 0xff9b) => (c, d, e, f) == (0, 0, 0, 0) && embedded(g, h),
        (0x2002, _) => embedded(b, c),
        // Teredo and other protocol assignments.
        (0x2001, 0..0x200) => false,
        // ISATAP: the last two segments are an IPv4 address.
        _ if matches!(e, 0 | 0x200) && f == 0x5efe => is_global_unicast(a) && embedded(g, h),
        _ => is_global_unicast(a),
    }
}

fn is_global_unicast(first: u16) -> bool {
    (first & 0xe000) == 0x2000
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Addresses beside the forbidden ranges.
    const PUBLIC: &str = "
        1.1.1.1 8.8.8.8 9.255.255.255 11.0.0.0 100.63.255.255 100.128.0.1 128.0.0.1 151.101.0.223
        168.63.129.17 172.15.255.255 203.0.113.80 172.32.0.0 192.167.255.255 192.169.0.0 198.17.255.255 198.20.0.0
        223.255.255.255 ::ffff:151.101.0.223 64:ff9b::808:808 2001:200::1 2001:4860:4860::8888
        2002:808:808::1 2a04:4e42::223 2a00::5efe:808:808";

    /// First and last address of each forbidden range, and embedded in IPv6.
    const NOT_PUBLIC: &str = "
        0.0.0.0 0.255.255.255 10.0.0.0 10.255.255.255 100.64.0.0 100.100.100.200 100.127.255.255 127.0.0.1
        127.255.255.255 168.63.129.16 169.254.0.0 169.254.169.254 172.16.0.0 172.31.255.255 192.0.0.0
        192.0.0.192 192.88.99.1 192.168.0.0 192.168.255.255 198.18.0.0 198.19.255.255 224.0.0.1 239.255.255.255 240.0.0.1 255.255.255.255 :: ::1 ::7f00:1 ::8.8.8.8
        ::ffff:127.0.0.1 ::ffff:169.254.169.254 ::ffff:10.0.0.1 ::ffff:0:8.8.8.8 64:ff9b::a00:1
        64:ff9b::7f00:1 64:ff9b:1::808:808 64:ff9b:0:1::808:808 100::1 2001::1 2001:0:1:: 2001:10::1
        2001:20::1 2001:1ff::1 2002:7f00:1:: 2002:a9fe:a9fe::1 2a00::5efe:a00:1
        2a00::200:5efe:7f00:1 4000::1 5f00::1 fc00::1 fd00:ec2::254 fe80::1 fec0::1 ff02::1 ffff::1";

    /// A-20, E-06.
    #[test]
    fn classifies_private_reserved_and_embedded_addresses() {
        for address in NOT_PUBLIC.split_whitespace() {
            assert!(!is_public(address.parse().unwrap()), "{address}");
        }
        for address in PUBLIC.split_whitespace() {
            assert!(is_public(address.parse().unwrap()), "{address}");
        }
    }
}
