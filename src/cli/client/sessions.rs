//! Sign-in links of a server's dashboard.

use ureq::http::Method;

use super::RemoteClient;
use crate::api::sessions::SignInUrl;
use crate::cli::failure::Result;

impl RemoteClient {
    pub(crate) fn create_sign_in_link(&self) -> Result<SignInUrl> {
        self.request_json(Method::POST, "/v1/session/links")
    }
}
