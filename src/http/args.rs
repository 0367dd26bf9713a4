//! The member `args` of a request: the words of a command line, or what a function is called with.

use serde::de::{self, Deserializer};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::error::Error;
use crate::execution::JsonText;

/// An array of texts, or an object.
#[derive(Debug, Serialize, utoipa::ToSchema)]
#[serde(untagged)]
pub(crate) enum Args {
    /// Arguments of a program, after its own name.
    Words(Vec<String>),
    /// What `main(args)` is called with.
    #[schema(value_type = Object)]
    Object(JsonText),
}

impl Default for Args {
    fn default() -> Self {
        Self::Words(Vec::new())
    }
}

impl Args {
    /// The input and the arguments of a program that they are.
    pub(crate) fn with(self, input: Option<JsonText>) -> Result<(Option<JsonText>, Vec<String>), Error> {
        match (self, input) {
            (Self::Words(words), input) => Ok((input, words)),
            (Self::Object(object), None) => Ok((Some(object), Vec::new())),
            (Self::Object(_), Some(_)) => Err(Error::invalid(
                "args, input: an object in `args` is the input; give one of the two",
            )),
        }
    }
}

impl<'de> Deserialize<'de> for Args {
    /// The object is kept as it was written.
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let raw = Box::<RawValue>::deserialize(deserializer)?;
        if raw.get().starts_with('{') {
            return JsonText::from_raw(raw)
                .map(Self::Object)
                .map_err(de::Error::custom);
        }
        serde_json::from_str(raw.get())
            .map(Self::Words)
            .map_err(|_| de::Error::custom("args: neither an array of texts nor an object"))
    }
}
