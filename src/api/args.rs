//! The member `args` of a request: arguments of a program, or the argument of a function.

use std::fmt;

use serde::de::{self, Deserializer, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::error::Error;
use crate::execution::JsonText;

#[derive(Debug, Serialize, utoipa::ToSchema)]
#[serde(untagged)]
pub enum Args {
    /// Arguments of a program, after its own name.
    Words(Vec<String>),
    /// Argument of `main(args)`.
    #[schema(value_type = Object)]
    Object(JsonText),
}

impl Default for Args {
    fn default() -> Self {
        Self::Words(Vec::new())
    }
}

impl Args {
    /// The input and the arguments of the program.
    pub fn with(self, input: Option<JsonText>) -> Result<(Option<JsonText>, Vec<String>), Error> {
        match (self, input) {
            (Self::Words(words), input) => Ok((input, words)),
            (Self::Object(object), None) => Ok((Some(object), Vec::new())),
            (Self::Object(_), Some(_)) => Err(Error::invalid(
                "args, input: both given, and an object in `args` is the input; send one of them",
            )),
        }
    }
}

impl<'de> Deserialize<'de> for Args {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ArgsVisitor)
    }
}

struct ArgsVisitor;

impl<'de> Visitor<'de> for ArgsVisitor {
    type Value = Args;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an array of strings or an object")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Args, A::Error> {
        let mut words = Vec::new();
        while let Some(word) = seq.next_element()? {
            words.push(word);
        }
        Ok(Args::Words(words))
    }

    /// Keeps the text of the members, so that no number changes.
    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Args, A::Error> {
        let mut text = String::from("{");
        while let Some((name, value)) = map.next_entry::<String, Box<RawValue>>()? {
            if text.len() > 1 {
                text.push(',');
            }
            text += &serde_json::Value::from(name).to_string();
            text.push(':');
            text += value.get();
        }
        text.push('}');
        JsonText::parse(text.as_bytes())
            .map(Args::Object)
            .map_err(de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_an_object_as_input_and_an_array_as_arguments() {
        let object: Args = serde_json::from_str("{\"n\": 1.10, \"ü\\n\": [ ]}").unwrap();
        let (input, words) = object.with(None).unwrap();
        assert_eq!(input.unwrap().as_str(), "{\"n\":1.10,\"ü\\n\":[ ]}");
        assert!(words.is_empty());
        let array: Args = serde_json::from_str("[\"--n\", \"1\"]").unwrap();
        assert_eq!(array.with(None).unwrap().1, ["--n", "1"]);
        let twice = serde_json::from_str::<Args>("{}").unwrap();
        assert!(twice.with(JsonText::parse(b"1").ok()).is_err());
        for wrong in ["1", "[1]", "\"--n\"", "null"] {
            assert!(serde_json::from_str::<Args>(wrong).is_err(), "{wrong}");
        }
    }
}
