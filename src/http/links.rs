//! Signed download links that work without a key until they expire.

use axum::http::Uri;
use jiff::Timestamp;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde::Deserialize;

use super::attachment::disposition;
use crate::blob::Link;
use crate::engine::Engine;
use crate::error::{Code, Error};
use crate::execution::{Execution, Links, media_type};
use crate::ids::{ExecutionId, Tenant};

/// A download of an execution; the path parameters of both routes.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Download {
    pub(crate) id: ExecutionId,
    /// One file; all files as an archive if absent.
    #[serde(default)]
    pub(crate) path: Option<String>,
}

#[derive(Debug, Deserialize)]
struct LinkQuery {
    expires: i64,
    tenant: Tenant,
    signature: String,
}

/// Escapes all but the unreserved characters of RFC 3986.
const SEGMENT: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~');

impl Download {
    /// The canonical path of this download.
    pub(crate) fn url_path(&self) -> String {
        let mut url = format!("/v1/executions/{}/files", self.id);
        for segment in self.path.iter().flat_map(|path| path.split('/')) {
            url.push('/');
            url.extend(utf8_percent_encode(segment, SEGMENT));
        }
        url
    }

    pub(crate) fn content_type(&self) -> String {
        match &self.path {
            Some(path) => media_type(path),
            None => "application/gzip".to_owned(),
        }
    }

    pub(crate) fn content_disposition(&self) -> String {
        match &self.path {
            Some(path) => disposition(path),
            None => disposition(&format!("{}.tar.gz", self.id)),
        }
    }

    fn link(&self, tenant: Tenant, expires_at: Timestamp) -> Link {
        Link {
            method: "GET",
            path: self.url_path(),
            tenant,
            expires_at,
            content_type: self.content_type(),
            content_disposition: self.content_disposition(),
        }
    }
}

/// Links to all files of an execution.
pub(crate) fn links(engine: &Engine, execution: &Execution, base_url: &str) -> Links {
    let (id, tenant) = (execution.new.id, &execution.new.tenant);
    let expires_at = engine.executions().link_expiry();
    let url = |path: Option<String>| {
        let link = Download { id, path }.link(tenant.clone(), expires_at);
        let (expires, signature) = (expires_at.as_second(), engine.executions().sign_link(&link));
        format!(
            "{base_url}{}?expires={expires}&tenant={tenant}&signature={signature}",
            link.path
        )
    };
    let files = execution.outcome.iter().flat_map(|outcome| &outcome.files);
    Links {
        archive: url(None),
        files: files.map(|file| url(Some(file.path.clone()))).collect(),
    }
}

/// Whether a request without a key uses a link.
pub(crate) fn is_link(uri: &Uri) -> bool {
    let pairs = uri.query().unwrap_or_default().split('&');
    pairs
        .map(|pair| pair.split('=').next())
        .any(|name| name == Some("signature"))
}

/// The tenant that a valid link at `uri` belongs to.
pub(crate) fn check(engine: &Engine, download: &Download, uri: &Uri) -> Result<Tenant, Error> {
    let rejected = || {
        Error::new(
            Code::Forbidden,
            "signature: not valid for this link; get a new link from the execution",
        )
    };
    let axum::extract::Query(presented) =
        axum::extract::Query::<LinkQuery>::try_from_uri(uri).map_err(|_| rejected())?;
    let expires_at = Timestamp::from_second(presented.expires).map_err(|_| rejected())?;
    let link = download.link(presented.tenant, expires_at);
    engine.executions().check_link(&link, &presented.signature)?;
    Ok(link.tenant)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn encodes_paths_of_links() {
        let id = ExecutionId::generate();
        let path = |path: &str| {
            let download = Download {
                id,
                path: Some(path.to_owned()),
            };
            download.url_path()
        };
        let base = format!("/v1/executions/{id}/files");
        assert_eq!(path("a b/ü?.txt"), format!("{base}/a%20b/%C3%BC%3F.txt"));
        assert_eq!(path("a%2fb~"), format!("{base}/a%252fb~"));
        assert_eq!(Download { id, path: None }.url_path(), base);
    }

    #[test]
    fn recognizes_links_by_their_signature() {
        let has_signature = |uri: &str| is_link(&uri.parse().unwrap());
        assert!(has_signature("/x?expires=1&tenant=a&signature="));
        assert!(has_signature("/x?signature"));
        assert!(!has_signature("/x?expires=1"));
        assert!(!has_signature("/x"));
    }
}
