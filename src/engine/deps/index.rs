//! Where packages come from: the operator's indexes, and the hosts that a builder may therefore reach.

use std::net::IpAddr;

use crate::addresses::is_on_the_internet;

/// A package index, by an address over HTTPS.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Index {
    url: String,
    host: Host,
}

impl Index {
    /// Python's, unless the operator names another.
    pub const PYTHON: &str = "https://pypi.org/simple";
    /// Node's, unless the operator names another.
    pub const NODE: &str = "https://registry.npmjs.org";
    /// Where Python's keeps its files.
    pub const PYTHON_FILES: &str = "files.pythonhosted.org";

    /// Reads an address; `named_by` says whose word it is.
    ///
    /// # Errors
    ///
    /// What it must look like.
    pub fn parse(url: &str, named_by: NamedBy) -> Result<Self, String> {
        let wrong =
            || "must look like https://index.example/simple, without user, query or fragment".to_owned();
        let rest = url.strip_prefix("https://").ok_or_else(wrong)?;
        let legal = |c: char| c.is_ascii_alphanumeric() || "-._~:/[]%+".contains(c);
        let authority = rest.split('/').next().unwrap_or_default();
        if !rest.chars().all(legal) {
            return Err(wrong());
        }
        let host = Host::parse(authority, named_by).map_err(|_| wrong())?;
        Ok(Self {
            url: url.trim_end_matches('/').to_owned(),
            host,
        })
    }

    /// The address, without a slash at its end.
    #[must_use]
    pub fn url(&self) -> &str {
        &self.url
    }

    /// The host that it names.
    #[must_use]
    pub fn host(&self) -> &Host {
        &self.host
    }
}

/// Whose word a host is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NamedBy {
    /// Ours: it lies on the Internet, and nowhere else.
    Default,
    /// The operator's, who may mean a host of a private network.
    Operator,
}

/// A host and a port that a builder may reach.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Host {
    name: String,
    port: u16,
    named_by: NamedBy,
}

impl Host {
    /// Reads `host` or `host:port`; the port is else that of HTTPS.
    ///
    /// # Errors
    ///
    /// What it must look like.
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

    /// Whether `name` and `port` mean this host. Case does not matter; everything else does.
    pub(super) fn is(&self, name: &str, port: u16) -> bool {
        self.port == port && self.name.eq_ignore_ascii_case(name)
    }

    /// Its name as a resolver takes it, and its port.
    pub(super) fn to_resolve(&self) -> (&str, u16) {
        (self.name.trim_matches(['[', ']']), self.port)
    }

    /// Whether packages may be fetched from an address that the name was found to have (E-06).
    pub(super) fn may_be_at(&self, address: IpAddr) -> bool {
        self.named_by == NamedBy::Operator || is_on_the_internet(address)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_index_is_an_address_over_https() {
        let index = Index::parse("https://Index.example:8443/simple/", NamedBy::Operator).unwrap();
        assert_eq!(index.url(), "https://Index.example:8443/simple");
        assert!(index.host().is("index.EXAMPLE", 8443));
        for wrong in [
            "http://index.example/simple",
            "https://",
            "https://u:p@index.example/",
            "https://index.example/?x",
            "https://index.example:0/",
            "https://index.example./",
            "index.example",
        ] {
            assert!(Index::parse(wrong, NamedBy::Operator).is_err(), "{wrong}");
        }
    }

    /// E-01, E-09.
    #[test]
    fn a_host_is_that_host_and_port_alone() {
        let host = Host::parse("files.example", NamedBy::Default).unwrap();
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
            assert!(Host::parse(wrong, NamedBy::Operator).is_err(), "{wrong}");
        }
        assert_eq!(
            Host::parse("[::1]:443", NamedBy::Operator).unwrap().to_resolve(),
            ("::1", 443)
        );
    }

    /// E-06.
    #[test]
    fn only_the_internet_is_reached_unless_the_operator_says_so() {
        let ours = Host::parse("files.example", NamedBy::Default).unwrap();
        let operators = Host::parse("files.example", NamedBy::Operator).unwrap();
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
            assert!(!ours.may_be_at(address), "{address}");
            assert!(operators.may_be_at(address));
        }
        for address in [
            "151.101.0.223",
            "100.128.0.1",
            "2a04:4e42::223",
            "::ffff:151.101.0.223",
        ] {
            assert!(ours.may_be_at(address.parse().unwrap()), "{address}");
        }
    }
}
