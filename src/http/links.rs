//! Signed download links that work without a key until they expire.

use axum::http::Uri;
use jiff::Timestamp;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde::Deserialize;

use super::attachment::disposition;
use crate::blob::Link;
use crate::engine::Engine;
use crate::error::{Code, Error};
use crate::execution::{Execution, Links, ResultForm, media_type};
use crate::ids::{ExecutionId, Tenant};

/// A download of an execution.
#[derive(Clone, Debug, Deserialize)]
#[serde(from = "PathParameters")]
pub(crate) struct Download {
    pub(crate) id: ExecutionId,
    pub(crate) part: Part,
}

#[derive(Clone, Debug)]
pub(crate) enum Part {
    /// All files.
    Archive,
    File(String),
    /// One form of a result.
    Result(usize, ResultForm),
}

/// The path parameters of all routes of downloads.
#[derive(Deserialize)]
struct PathParameters {
    id: ExecutionId,
    #[serde(default)]
    path: Option<String>,
    #[serde(default)]
    n: Option<usize>,
    #[serde(default)]
    form: Option<ResultForm>,
}

impl From<PathParameters> for Download {
    fn from(parameters: PathParameters) -> Self {
        let PathParameters { id, path, n, form } = parameters;
        let part = match (path, n.zip(form)) {
            (Some(path), _) => Part::File(path),
            (None, Some((n, form))) => Part::Result(n, form),
            (None, None) => Part::Archive,
        };
        Self { id, part }
    }
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
        let execution = format!("/v1/executions/{}", self.id);
        match &self.part {
            Part::Archive => format!("{execution}/files"),
            Part::File(path) => {
                let mut url = format!("{execution}/files");
                for segment in path.split('/') {
                    url.push('/');
                    url.extend(utf8_percent_encode(segment, SEGMENT));
                }
                url
            }
            Part::Result(n, form) => format!("{execution}/results/{n}/{form}"),
        }
    }

    pub(crate) fn content_type(&self) -> String {
        match &self.part {
            Part::Archive => "application/gzip".to_owned(),
            Part::File(path) => media_type(path),
            Part::Result(_, form) => form.media_type().to_owned(),
        }
    }

    pub(crate) fn content_disposition(&self) -> String {
        match &self.part {
            Part::Archive => disposition(&format!("{}.tar.gz", self.id)),
            Part::File(path) => disposition(path),
            // A viewer of PDF runs scripts of its own.
            Part::Result(n, ResultForm::Pdf) => disposition(&format!("result-{n}.pdf")),
            Part::Result(..) => "inline".to_owned(),
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

/// Links to all files and results of an execution.
pub(crate) fn links(engine: &Engine, execution: &Execution, base_url: &str) -> Links {
    let (id, tenant) = (execution.new.id, &execution.new.tenant);
    let expires_at = engine.executions().link_expiry();
    let url = |part: Part| {
        let link = Download { id, part }.link(tenant.clone(), expires_at);
        let (expires, signature) = (expires_at.as_second(), engine.executions().sign_link(&link));
        format!(
            "{base_url}{}?expires={expires}&tenant={tenant}&signature={signature}",
            link.path
        )
    };
    let files = execution.outcome.iter().flat_map(|outcome| &outcome.files);
    let results = execution.outcome.iter().flat_map(|outcome| &outcome.results);
    Links {
        archive: url(Part::Archive),
        files: files.map(|file| url(Part::File(file.path.clone()))).collect(),
        results: results
            .enumerate()
            .map(|(n, result)| {
                let forms = result.forms();
                forms
                    .map(|form| (form.to_string(), url(Part::Result(n, form))))
                    .collect()
            })
            .collect(),
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
                part: Part::File(path.to_owned()),
            };
            download.url_path()
        };
        let base = format!("/v1/executions/{id}/files");
        assert_eq!(path("a b/ü?.txt"), format!("{base}/a%20b/%C3%BC%3F.txt"));
        assert_eq!(path("a%2fb~"), format!("{base}/a%252fb~"));
        let part = |part: Part| Download { id, part }.url_path();
        assert_eq!(part(Part::Archive), base);
        assert_eq!(
            part(Part::Result(3, ResultForm::Svg)),
            format!("/v1/executions/{id}/results/3/svg")
        );
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
