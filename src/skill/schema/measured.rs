//! JSON values that count how often they are looked at, so that no schema can make a check long or deep.

use std::any::Any;
use std::borrow::Cow;
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use jsonschema::JsonType;
use jsonschema::json::{Array, Json, Node, NodeIdentity, Object, SerdeJson, cmp, unique};
use serde_json::{Map, Number, Value};

use crate::limits;

thread_local! {
    /// What is left of the check that this thread does. Here, since the validator makes nodes of its own that could carry nothing.
    static LEFT: Cell<Left> = const { Cell::new(Left { steps: 0, stack_from: 0 }) };
}

#[derive(Clone, Copy)]
struct Left {
    steps: usize,
    /// Where the stack was when the check began.
    stack_from: usize,
}

/// Does `check` as long as it takes no more than `steps` looks at values.
pub(super) fn measured<T>(steps: usize, check: impl FnOnce() -> T) -> Result<T, Box<dyn Any + Send>> {
    LEFT.set(Left {
        steps,
        stack_from: stack(),
    });
    // What a check leaves behind it owns itself.
    catch_unwind(AssertUnwindSafe(check))
}

/// Counts; where nothing is left, the check ends here, past the panic hook: it is no fault of ours.
fn step(steps: usize) {
    let left = LEFT.get();
    let deep = left.stack_from.abs_diff(stack()) > limits::SCHEMA_CHECK_STACK_BYTES;
    match left.steps.checked_sub(steps) {
        Some(steps) if !deep => LEFT.set(Left { steps, ..left }),
        Some(_) | None => resume_unwind(Box::new("a schema took too long")),
    }
}

/// About where the stack ends now.
#[inline(never)]
fn stack() -> usize {
    let here = 0u8;
    std::ptr::from_ref(&here).addr()
}

/// The representation of [`Measured`] values.
#[derive(Debug)]
pub(super) struct Measuring;

/// A value that counts.
#[derive(Clone, Copy, Debug)]
pub(super) struct Measured<'a>(pub(super) &'a Value);

/// An object of [`Measured`] values.
#[derive(Debug)]
pub(super) struct Members<'a>(&'a Map<String, Value>);

/// An array of [`Measured`] values.
#[derive(Debug)]
pub(super) struct Elements<'a>(&'a [Value]);

type MembersIter<'a> =
    std::iter::Map<serde_json::map::Iter<'a>, fn((&'a String, &'a Value)) -> (&'a str, Measured<'a>)>;
type ElementsIter<'a> = std::iter::Map<std::slice::Iter<'a, Value>, fn(&'a Value) -> Measured<'a>>;

impl Json for Measuring {
    type Node<'a> = Measured<'a>;
    type PreparedKey = String;
    type StringBuffer = Value;

    const KEYS_PER_LOOKUP: usize = SerdeJson::KEYS_PER_LOOKUP;

    fn prepare_key(key: &str) -> String {
        key.to_owned()
    }

    fn with_string_node<T>(buffer: &mut Value, string: &str, f: impl FnOnce(Measured<'_>) -> T) -> T {
        SerdeJson::with_string_node(buffer, string, |value| f(Measured(value)))
    }
}

impl<'a> Node<'a, Measuring> for Measured<'a> {
    type Object = Members<'a>;
    type Array = Elements<'a>;
    type Number = &'a Number;

    fn as_object(&self) -> Option<Members<'a>> {
        step(1);
        self.0.as_object().map(Members)
    }

    fn as_array(&self) -> Option<Elements<'a>> {
        step(1);
        self.0.as_array().map(|items| Elements(items))
    }

    /// Whoever asks may match a pattern.
    fn as_string(&self) -> Option<Cow<'a, str>> {
        let text = self.0.as_str();
        step(1 + text.map_or(0, str::len) / 4);
        text.map(Cow::Borrowed)
    }

    fn as_number(&self) -> Option<&'a Number> {
        step(1);
        self.0.as_number()
    }

    fn as_boolean(&self) -> Option<bool> {
        step(1);
        self.0.as_bool()
    }

    fn is_null(&self) -> bool {
        step(1);
        self.0.is_null()
    }

    fn is_number(&self) -> bool {
        step(1);
        self.0.is_number()
    }

    fn json_type(&self) -> JsonType {
        step(1);
        self.0.json_type()
    }

    fn string_length(&self) -> Option<u64> {
        step(1 + self.0.as_str().map_or(0, |text| text.len() / 64));
        self.0.string_length()
    }

    fn equals_value(&self, expected: &Value) -> bool {
        step(weight(expected).min(weight(self.0)));
        cmp::equal(self.0, expected)
    }

    /// Asked for each fault, and a fault is large.
    fn to_value(&self) -> Cow<'a, Value> {
        step(limits::SCHEMA_STEPS_OF_FAULT);
        Cow::Borrowed(self.0)
    }

    fn identity(&self) -> Option<NodeIdentity> {
        step(1);
        self.0.identity()
    }
}

impl<'a> Object<'a, Measuring> for Members<'a> {
    type Node = Measured<'a>;
    type MemberName = &'a str;
    type MembersIter = MembersIter<'a>;

    fn len(&self) -> usize {
        self.0.len()
    }

    fn get(&self, key: &String) -> Option<Measured<'a>> {
        step(1);
        self.0.get(key.as_str()).map(Measured)
    }

    fn members(&self) -> MembersIter<'a> {
        step(1);
        self.0.iter().map(|(name, value)| {
            step(1 + name.len());
            (name.as_str(), Measured(value))
        })
    }
}

impl<'a> Array<'a, Measuring> for Elements<'a> {
    type Node = Measured<'a>;
    type ElementsIter = ElementsIter<'a>;

    fn len(&self) -> usize {
        self.0.len()
    }

    fn elements(&self) -> ElementsIter<'a> {
        step(1);
        self.0.iter().map(|value| {
            step(1);
            Measured(value)
        })
    }

    fn is_unique(&self) -> bool {
        step(self.0.iter().map(weight).sum());
        // Nested values can be made to have one hash, and then each is compared with each.
        if self.0.iter().any(|item| item.is_array() || item.is_object()) {
            step(self.0.len().saturating_mul(self.0.len()) / 32);
        }
        unique::is_unique(self.0)
    }
}

/// Values and text in `value`, in steps.
fn weight(value: &Value) -> usize {
    1 + match value {
        Value::String(text) => text.len() / 64,
        Value::Array(items) => items.iter().map(weight).sum(),
        Value::Object(members) => members.values().map(weight).sum(),
        Value::Null | Value::Bool(_) | Value::Number(_) => 0,
    }
}
