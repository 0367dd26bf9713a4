//! Package indexes, known by an HTTPS URL.

use crate::egress::{NamedBy, PackageHost};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Index {
    url: String,
    host: PackageHost,
}

impl Index {
    pub const PYTHON: &str = "https://pypi.org/simple";
    pub const NODE: &str = "https://registry.npmjs.org";
    /// Host of the files of the Python index.
    pub const PYTHON_FILES: &str = "files.pythonhosted.org";

    pub fn parse(url: &str, named_by: NamedBy) -> Result<Self, String> {
        let wrong =
            || "must look like https://index.example/simple, without user, query or fragment".to_owned();
        let rest = url.strip_prefix("https://").ok_or_else(wrong)?;
        let legal = |c: char| c.is_ascii_alphanumeric() || "-._~:/[]%+".contains(c);
        let authority = rest.split('/').next().unwrap_or_default();
        if !rest.chars().all(legal) {
            return Err(wrong());
        }
        let host = PackageHost::parse(authority, named_by).map_err(|_| wrong())?;
        Ok(Self {
            url: url.trim_end_matches('/').to_owned(),
            host,
        })
    }

    /// Without trailing slash.
    #[must_use]
    pub fn url(&self) -> &str {
        &self.url
    }

    #[must_use]
    pub fn host(&self) -> &PackageHost {
        &self.host
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parses_index_urls_over_https_only() {
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
}
