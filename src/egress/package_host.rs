//! Hosts that package installation may reach: exact names and ports.

use std::net::IpAddr;

use crate::egress::address::is_public;

/// The origin of a host name decides whether it may be private.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NamedBy {
    /// A default of Skillbox: public addresses only.
    Default,
    /// The operator's configuration: may be in a private network.
    Operator,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PackageHost {
    name: String,
    port: u16,
    named_by: NamedBy,
}

impl PackageHost {
    /// Parses `host` or `host:port`; the default port is 443.
    pub fn parse(text: &str, named_by: NamedBy) -> Result<Self, String> {
        let wrong = || "must be a host such as files.example or files.example:8443".to_owned();
        let (name, port) = match text.rsplit_once(':') {
            Some((name, port)) if !port.contains(']') => (name, port.parse().map_err(|_| wrong())?),
            _ => (text, 443),
        };
        let legal = |c: char| c.is_ascii_alphanumeric() || "-._[]:".contains(c);
        let plain = !name.is_empty() && !name.starts_with(['.', '-']) && !name.ends_with('.');
        let is_address = name.starts_with('[') == name.contains(':');
        if !plain || !is_address || port == 0 || !name.chars().all(legal) {
            return Err(wrong());
        }
        Ok(Self {
            name: name.to_ascii_lowercase(),
            port,
            named_by,
        })
    }

    /// Compares exactly, except for the case of the name.
    #[must_use]
    pub fn is(&self, name: &str, port: u16) -> bool {
        self.port == port && self.name.eq_ignore_ascii_case(name)
    }

    /// Without the brackets of an IPv6 address.
    pub(super) fn name(&self) -> &str {
        self.name.trim_matches(['[', ']'])
    }

    pub(super) fn port(&self) -> u16 {
        self.port
    }

    /// Whether the host may be dialled at an address that its name resolves to (E-06).
    pub(super) fn allows_address(&self, address: IpAddr) -> bool {
        self.named_by == NamedBy::Operator || is_public(address)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// E-01, E-09.
    #[test]
    fn compares_exact_host_and_port() {
        let host = PackageHost::parse("files.example", NamedBy::Default).unwrap();
        assert!(host.is("files.example", 443) && host.is("FILES.example", 443));
        for (name, port) in [
            ("evil-files.example", 443),
            ("files.example.evil", 443),
            ("example", 443),
            ("a.files.example", 443),
            ("files.example.", 443),
            ("files.example", 22),
            ("files.example", 2375),
        ] {
            assert!(!host.is(name, port), "{name}:{port}");
        }
        // E-02.
        for wrong in [
            "*", "*.com", "a*b", "", ":443", "a:b", "a b", "a/b", "-a", ".a", "a.",
        ] {
            assert!(PackageHost::parse(wrong, NamedBy::Operator).is_err(), "{wrong}");
        }
        let host = PackageHost::parse("[::1]:443", NamedBy::Operator).unwrap();
        assert_eq!((host.name(), host.port()), ("::1", 443));
    }

    /// E-06.
    #[test]
    fn allows_private_addresses_only_to_hosts_of_the_operator() {
        let ours = PackageHost::parse("files.example", NamedBy::Default).unwrap();
        let operators = PackageHost::parse("files.example", NamedBy::Operator).unwrap();
        for address in [
            "127.0.0.1",
            "10.1.2.3",
            "172.16.0.1",
            "192.168.1.1",
            "169.254.169.254",
            "100.64.0.1",
            "100.127.255.255",
            "0.0.0.0",
            "0.1.2.3",
            "224.0.0.1",
            "255.255.255.255",
            "240.0.0.1",
            "198.18.0.1",
            "192.0.0.192",
            "::",
            "::1",
            "::7f00:1",
            "::ffff:127.0.0.1",
            "::ffff:169.254.169.254",
            "64:ff9b::a00:1",
            "2002:7f00:1::",
            "2001:0:1::",
            "fe80::1",
            "fc00::1",
            "fd12::1",
            "ff02::1",
        ] {
            let address = address.parse().unwrap();
            assert!(!ours.allows_address(address), "{address}");
            assert!(operators.allows_address(address));
        }
        for address in [
            "151.101.0.223",
            "100.128.0.1",
            "2a04:4e42::223",
            "::ffff:151.101.0.223",
        ] {
            assert!(ours.allows_address(address.parse().unwrap()), "{address}");
        }
    }
}
