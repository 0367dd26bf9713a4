//! What the operator lets webhooks reach: the Internet over HTTPS, and what is named besides.

use std::net::IpAddr;
use std::str::FromStr;

use url::Host;

use crate::addresses;
use crate::error::quoted;
use crate::webhook::CallbackUrl;

/// What may be reached.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Policy {
    /// Whether it may be reached in the clear.
    pub allow_http: bool,
    /// Hosts and networks that are meant though they are not of the Internet.
    pub allow_private: Vec<Private>,
    /// The only ports, where the operator names them.
    pub ports: Vec<u16>,
}

/// A host or a network that the operator means.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Private {
    /// Wherever it leads.
    Host(String),
    /// Whatever leads there.
    Network {
        /// Its first address.
        first: IpAddr,
        /// The bits that all of its addresses share.
        bits: u8,
    },
}

/// Why an address is not reached.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// In the clear.
    #[error("must begin with https://; an operator may allow http by webhooks.allow_http")]
    InTheClear,
    /// A port of something else.
    #[error(
        "port {0} is not one that webhooks are sent to; use 443, or have the operator name it in webhooks.ports"
    )]
    Port(u16),
    /// Not of the Internet.
    #[error("{0} is no host of the Internet; an operator who means it names it in webhooks.allow_private")]
    Private(String),
}

/// Below 1024 only these.
const PORTS: [u16; 2] = [80, 443];
/// From there on all but those of what listens inside, and trusts whoever reaches it.
const PORTS_INSIDE: [u16; 51] = [
    1080, 1099, 1433, 1521, 1883, 2049, 2181, 2375, 2376, 2377, 2379, 2380, 3128, 3306, 3389, 4243, 4369,
    5432, 5672, 5900, 5901, 5984, 5985, 5986, 6000, 6066, 6379, 6380, 6443, 7000, 7001, 7077, 8009, 8086,
    8125, 8300, 8500, 8600, 9042, 9092, 9100, 9160, 9200, 9300, 10250, 10255, 11211, 15672, 27017, 27018,
    50070,
];

/// Names that lead inside, and the ends of such names (RFC 6761, 8375, and what networks call themselves).
const NAMES_INSIDE: [&str; 11] = [
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

impl Policy {
    /// Whether `url` may be reached, as far as that can be said before its name is resolved.
    pub fn judge(&self, url: &CallbackUrl) -> Result<(), Refused> {
        if !url.is_encrypted() && !self.allow_http {
            return Err(Refused::InTheClear);
        }
        if !self.takes_port(url.port()) {
            return Err(Refused::Port(url.port()));
        }
        let may = match url.address() {
            Some(address) => self.may_be_at(url, address),
            None => self.names(url.host()) || is_name_of_the_internet(url.host()),
        };
        may.then_some(())
            .ok_or_else(|| Refused::Private(quoted(url.host())))
    }

    /// Whether `url` may be reached at an address that its host was found to have.
    #[must_use]
    pub fn may_be_at(&self, url: &CallbackUrl, address: IpAddr) -> bool {
        self.names(url.host()) || self.holds(address) || addresses::is_on_the_internet(address)
    }

    fn takes_port(&self, port: u16) -> bool {
        if !self.ports.is_empty() {
            return self.ports.contains(&port);
        }
        PORTS.contains(&port) || (port >= 1024 && !PORTS_INSIDE.contains(&port))
    }

    fn names(&self, host: &str) -> bool {
        let is_named = |one: &Private| matches!(one, Private::Host(name) if name == host);
        self.allow_private.iter().any(is_named)
    }

    fn holds(&self, address: IpAddr) -> bool {
        let is_in = |one: &Private| match one {
            Private::Host(_) => false,
            Private::Network { first, bits } => shares(*first, addresses::plain(address), *bits),
        };
        self.allow_private.iter().any(is_in)
    }
}

/// What has one word only is a neighbour's name, and what ends so leads inside.
fn is_name_of_the_internet(host: &str) -> bool {
    let ends_in = |end: &&str| {
        host.strip_suffix(*end)
            .is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
    };
    host.contains('.') && !NAMES_INSIDE.iter().any(ends_in)
}

/// Whether two addresses of one kind have so many bits in common.
fn shares(one: IpAddr, other: IpAddr, bits: u8) -> bool {
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

impl FromStr for Private {
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
                .then_some(Self::Network { first, bits })
                .ok_or_else(wrong);
        }
        // As a callback writes it.
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

    /// Every spelling of what is not of the Internet.
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

    fn judged(policy: &Policy, text: &str) -> Result<(), Refused> {
        let url: CallbackUrl = text.parse().unwrap_or_else(|error| panic!("{text}: {error}"));
        policy.judge(&url)
    }

    fn allowing(private: &[&str]) -> Policy {
        let private = private.iter().map(|text| text.parse().unwrap());
        Policy {
            allow_private: private.collect(),
            ..Policy::default()
        }
    }

    ///
    #[test]
    fn no_spelling_of_a_private_host_is_reached() {
        let policy = Policy::default();
        for host in PRIVATE.split_whitespace() {
            let judged = judged(&policy, &format!("https://{host}/hook"));
            assert!(matches!(judged, Err(Refused::Private(_))), "{host}: {judged:?}");
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
            assert_eq!(judged(&policy, &format!("https://{host}/hook")), Ok(()), "{host}");
        }
    }

    ///
    #[test]
    fn only_ports_of_the_web_and_high_ones_are_reached() {
        let at = |policy: &Policy, port: u16| judged(policy, &format!("https://hooks.example:{port}/"));
        let policy = Policy::default();
        for port in [
            1, 21, 22, 23, 25, 53, 110, 143, 389, 445, 587, 631, 873, 1023, 2375, 2376, 5432, 6379, 9200,
            10250, 27017,
        ] {
            assert_eq!(at(&policy, port), Err(Refused::Port(port)), "{port}");
        }
        for port in [80, 443, 1024, 3000, 5000, 8000, 8080, 8443, 9000, 65535] {
            assert_eq!(at(&policy, port), Ok(()), "{port}");
        }
        let named = Policy {
            ports: vec![443, 22],
            ..Policy::default()
        };
        assert_eq!(
            (at(&named, 22), at(&named, 8443)),
            (Ok(()), Err(Refused::Port(8443)))
        );
    }

    #[test]
    fn the_operator_decides_about_the_clear() {
        let clear = "http://hooks.example/";
        assert_eq!(judged(&Policy::default(), clear), Err(Refused::InTheClear));
        let policy = Policy {
            allow_http: true,
            ..Policy::default()
        };
        assert_eq!(judged(&policy, clear), Ok(()));
    }

    #[test]
    fn what_the_operator_names_is_reached_and_nothing_beside_it() {
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
            assert_eq!(judged(&policy, &format!("https://{host}/")), Ok(()), "{host}");
        }
        for host in [
            "10.2.0.0",
            "127.0.0.2",
            "[fc00::1]",
            "x.db.internal",
            "xdb.internal",
            "a.localhost",
        ] {
            assert!(judged(&policy, &format!("https://{host}/")).is_err(), "{host}");
        }
        // A host that is named may be anywhere, any other only where the Internet or a named network is.
        let (named, other): (CallbackUrl, CallbackUrl) = (
            "https://db.internal/".parse().unwrap(),
            "https://hooks.example/".parse().unwrap(),
        );
        let private = "192.168.0.1".parse().unwrap();
        assert!(policy.may_be_at(&named, private) && !policy.may_be_at(&other, private));
        assert!(policy.may_be_at(&other, "10.1.2.3".parse().unwrap()));
        assert!(allowing(&["0.0.0.0/0"]).may_be_at(&other, private));
        assert!(!allowing(&["::/0"]).may_be_at(&other, private));
    }

    #[test]
    fn an_exception_is_a_host_an_address_or_a_network() {
        for text in [
            "10.0.0.0/8",
            "10.0.0.1",
            "::1",
            "[::1]",
            "fd00::/8",
            "hooks.corp.example",
            "localhost",
        ] {
            assert!(text.parse::<Private>().is_ok(), "{text}");
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
            assert!(text.parse::<Private>().is_err(), "{text}");
        }
    }
}
