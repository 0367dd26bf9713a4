//! Allowed destinations of webhooks: public hosts over HTTPS, and exceptions of the operator.

use std::net::IpAddr;
use std::str::FromStr;

use url::Host;

use crate::egress::address::is_public;
use crate::error::quoted;
use crate::webhook::CallbackUrl;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WebhookPolicy {
    pub allow_http: bool,
    pub allow_private: Vec<PrivateDestination>,
    /// The only allowed ports; empty for the default rule.
    pub ports: Vec<u16>,
}

/// A private host or network that the operator allows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PrivateDestination {
    /// Allowed at any address.
    Host(String),
    Network {
        first: IpAddr,
        prefix_bits: u8,
    },
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RejectedDestination {
    #[error("must begin with https://; an operator can allow http with webhooks.allow_http")]
    Unencrypted,
    #[error("port {0} is not allowed for webhooks; use 443, or ask the operator to add it to webhooks.ports")]
    Port(u16),
    #[error("{0} is not a public host; an operator can allow it with webhooks.allow_private")]
    Private(String),
}

/// Allowed ports below 1024.
const WEB_PORTS: [u16; 2] = [80, 443];
/// Ports above 1023 of internal services without authentication.
const INTERNAL_PORTS: [u16; 51] = [
    1080, 1099, 1433, 1521, 1883, 2049, 2181, 2375, 2376, 2377, 2379, 2380, 3128, 3306, 3389, 4243, 4369,
    5432, 5672, 5900, 5901, 5984, 5985, 5986, 6000, 6066, 6379, 6380, 6443, 7000, 7001, 7077, 8009, 8086,
    8125, 8300, 8500, 8600, 9042, 9092, 9100, 9160, 9200, 9300, 10250, 10255, 11211, 15672, 27017, 27018,
    50070,
];

/// Private names and suffixes (RFC 6761, RFC 8375 and usual names of internal networks).
const INTERNAL_NAMES: [&str; 11] = [
    "localhost",
    "localdomain",
    "local",
    "internal",
    "intranet",
    "private",
    "corp",
    "home",
    "lan",
    "home.arpa",
    "onion",
];

impl WebhookPolicy {
    /// Checks everything except what the name resolves to.
    pub fn check(&self, url: &CallbackUrl) -> Result<(), RejectedDestination> {
        if !url.is_encrypted() && !self.allow_http {
            return Err(RejectedDestination::Unencrypted);
        }
        if !self.allows_port(url.port()) {
            return Err(RejectedDestination::Port(url.port()));
        }
        let allowed = match url.address() {
            Some(address) => self.allows_address(url, address),
            None => self.allows_host(url.host()) || is_public_name(url.host()),
        };
        allowed
            .then_some(())
            .ok_or_else(|| RejectedDestination::Private(quoted(url.host())))
    }

    /// Whether `url` may be dialled at an address that its host resolves to.
    #[must_use]
    pub fn allows_address(&self, url: &CallbackUrl, address: IpAddr) -> bool {
        self.allows_host(url.host()) || self.allows_private_address(address) || is_public(address)
    }

    fn allows_port(&self, port: u16) -> bool {
        if !self.ports.is_empty() {
            return self.ports.contains(&port);
        }
        WEB_PORTS.contains(&port) || (port >= 1024 && !INTERNAL_PORTS.contains(&port))
    }

    fn allows_host(&self, host: &str) -> bool {
        let is_host =
            |one: &PrivateDestination| matches!(one, PrivateDestination::Host(name) if name == host);
        self.allow_private.iter().any(is_host)
    }

    fn allows_private_address(&self, address: IpAddr) -> bool {
        self.allow_private.iter().any(|one| match one {
            PrivateDestination::Host(_) => false,
            PrivateDestination::Network { first, prefix_bits } => {
                have_same_prefix(*first, address.to_canonical(), *prefix_bits)
            }
        })
    }
}

/// A name without a dot belongs to the local network.
fn is_public_name(host: &str) -> bool {
    let ends_in = |end: &&str| {
        host.strip_suffix(*end)
            .is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
    };
    host.contains('.') && !INTERNAL_NAMES.iter().any(ends_in)
}

fn have_same_prefix(one: IpAddr, other: IpAddr, bits: u8) -> bool {
    let (one, other, width) = match (one, other) {
        (IpAddr::V4(one), IpAddr::V4(other)) => (u128::from(one.to_bits()), u128::from(other.to_bits()), 32),
        (IpAddr::V6(one), IpAddr::V6(other)) => (one.to_bits(), other.to_bits(), 128),
        (IpAddr::V4(_), IpAddr::V6(_)) | (IpAddr::V6(_), IpAddr::V4(_)) => return false,
    };
    let apart = u32::from(width - bits.min(width));
    (one ^ other)
        .checked_shr(apart)
        .is_none_or(|differs| differs == 0)
}

impl FromStr for PrivateDestination {
    type Err = String;

    /// `10.0.0.0/8`, an address, or the name of a host.
    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || {
            format!(
                "{} is not a host, an address or a network such as 10.0.0.0/8",
                quoted(text)
            )
        };
        let (address, bits) = match text.split_once('/') {
            Some((address, bits)) => (address, Some(bits.parse::<u8>().map_err(|_| wrong())?)),
            None => (text, None),
        };
        if let Ok(first) = address.trim_matches(['[', ']']).parse::<IpAddr>() {
            let width = if first.is_ipv4() { 32 } else { 128 };
            let bits = bits.unwrap_or(width);
            return (bits <= width)
                .then_some(Self::Network {
                    first,
                    prefix_bits: bits,
                })
                .ok_or_else(wrong);
        }
        // In the spelling of `CallbackUrl`.
        match Host::parse(address) {
            Ok(Host::Domain(name)) if bits.is_none() && !name.ends_with('.') && !name.contains('*') => {
                Ok(Self::Host(name))
            }
            _ => Err(wrong()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Private hosts in every spelling.
    const PRIVATE: &str = "
        127.0.0.1 127.1 127.0.1 0 0.0.0.0 0x7f.1 0x7f000001 0X7F.0.0.1 2130706433 017700000001 0177.0.0.1
        0177.1 127.0.0.0x1 １２７.0.0.1 127。0。0。1 %31%32%37.0.0.1 10.0.0.1 0xa000001 167772161 012.1 172.16.0.1
        192.168.0.1 0xc0.0xa8.1 169.254.169.254 2852039166 0xa9fea9fe 025177524776 100.64.0.1
        100.100.100.200 168.63.129.16 192.0.0.192 198.18.0.1 224.0.0.1 255.255.255.255 4294967295 [::] [::1]
        [0:0:0:0:0:0:0:1] [::127.0.0.1] [::ffff:127.0.0.1] [::ffff:7f00:1] [::ffff:10.0.0.1]
        [::ffff:169.254.169.254] [64:ff9b::7f00:1] [64:ff9b::169.254.169.254] [64:ff9b:1::1] [2002:7f00:1::]
        [2002:a9fe:a9fe::] [2001::1] [fe80::1] [fc00::1] [fd00:ec2::254] [ff02::1] [fec0::1] localhost
        LOCALHOST a.localhost ⓛocalhost loc%61lhost metadata.google.internal db.internal internal
        printer.local host.docker.internal nas.lan a.home.arpa ldap.corp db kubernetes
        kubernetes.default.svc.cluster.local";

    fn check(policy: &WebhookPolicy, text: &str) -> Result<(), RejectedDestination> {
        let url: CallbackUrl = text.parse().unwrap_or_else(|error| panic!("{text}: {error}"));
        policy.check(&url)
    }

    fn allowing(private: &[&str]) -> WebhookPolicy {
        let private = private.iter().map(|text| text.parse().unwrap());
        WebhookPolicy {
            allow_private: private.collect(),
            ..WebhookPolicy::default()
        }
    }

    ///
    #[test]
    fn rejects_private_hosts_in_every_spelling() {
        let policy = WebhookPolicy::default();
        for host in PRIVATE.split_whitespace() {
            let checked = check(&policy, &format!("https://{host}/hook"));
            assert!(
                matches!(checked, Err(RejectedDestination::Private(_))),
                "{host}: {checked:?}"
            );
        }
        for host in [
            "hooks.example",
            "8.8.8.8",
            "134744072",
            "[2a00::1]",
            "[64:ff9b::808:808]",
            "a.localhost.example",
            "internals.example",
        ] {
            assert_eq!(check(&policy, &format!("https://{host}/hook")), Ok(()), "{host}");
        }
    }

    ///
    #[test]
    fn rejects_ports_of_internal_services() {
        let at = |policy: &WebhookPolicy, port: u16| check(policy, &format!("https://hooks.example:{port}/"));
        let policy = WebhookPolicy::default();
        for port in [
            1, 21, 22, 23, 25, 53, 110, 143, 389, 445, 587, 631, 873, 1023, 2375, 2376, 5432, 6379, 9200,
            10250, 27017,
        ] {
            assert_eq!(at(&policy, port), Err(RejectedDestination::Port(port)), "{port}");
        }
        for port in [80, 443, 1024, 3000, 5000, 8000, 8080, 8443, 9000, 65535] {
            assert_eq!(at(&policy, port), Ok(()), "{port}");
        }
        let named = WebhookPolicy {
            ports: vec![443, 22],
            ..WebhookPolicy::default()
        };
        assert_eq!(
            (at(&named, 22), at(&named, 8443)),
            (Ok(()), Err(RejectedDestination::Port(8443)))
        );
    }

    #[test]
    fn allows_http_only_by_setting() {
        let clear = "http://hooks.example/";
        assert_eq!(
            check(&WebhookPolicy::default(), clear),
            Err(RejectedDestination::Unencrypted)
        );
        let policy = WebhookPolicy {
            allow_http: true,
            ..WebhookPolicy::default()
        };
        assert_eq!(check(&policy, clear), Ok(()));
    }

    #[test]
    fn allows_only_the_configured_private_destinations() {
        let policy = allowing(&["10.1.0.0/16", "127.0.0.1", "fd00::/8", "db.internal", "LocalHost"]);
        for host in [
            "10.1.255.255",
            "0x7f.1",
            "[::ffff:10.1.2.3]",
            "[fd12::1]",
            "db.internal",
            "DB.internal",
            "localhost",
        ] {
            assert_eq!(check(&policy, &format!("https://{host}/")), Ok(()), "{host}");
        }
        for host in [
            "10.2.0.0",
            "127.0.0.2",
            "[fc00::1]",
            "x.db.internal",
            "xdb.internal",
            "a.localhost",
        ] {
            assert!(check(&policy, &format!("https://{host}/")).is_err(), "{host}");
        }
        // A configured host may be at any address, other hosts only at public and configured ones.
        let (named, other): (CallbackUrl, CallbackUrl) = (
            "https://db.internal/".parse().unwrap(),
            "https://hooks.example/".parse().unwrap(),
        );
        let private = "192.168.0.1".parse().unwrap();
        assert!(policy.allows_address(&named, private) && !policy.allows_address(&other, private));
        assert!(policy.allows_address(&other, "10.1.2.3".parse().unwrap()));
        assert!(allowing(&["0.0.0.0/0"]).allows_address(&other, private));
        assert!(!allowing(&["::/0"]).allows_address(&other, private));
    }

    #[test]
    fn parses_private_hosts_addresses_and_networks() {
        for text in [
            "10.0.0.0/8",
            "10.0.0.1",
            "::1",
            "[::1]",
            "fd00::/8",
            "hooks.corp.example",
            "localhost",
        ] {
            assert!(text.parse::<PrivateDestination>().is_ok(), "{text}");
        }
        for text in [
            "",
            "10.0.0.0/33",
            "::/129",
            "10.0.0.0/x",
            "a/8",
            "*",
            "*.corp.example",
            "a b",
            "https://a",
            "a.",
            "0x7f.1/8",
        ] {
            assert!(text.parse::<PrivateDestination>().is_err(), "{text}");
        }
    }
}
