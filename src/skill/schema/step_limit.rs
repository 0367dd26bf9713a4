//! JSON values that count accesses, so that no schema makes a validation long or deep.

use std::any::Any;
use std::borrow::Cow;
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use jsonschema::JsonType;
use jsonschema::json::{Array, Json, Node, NodeIdentity, Object, SerdeJson, cmp, unique};
use serde_json::{Map, Number, Value};

use crate::limits;

thread_local! {
    /// The validation of this thread. The validator creates nodes itself, which could not carry a counter.
    static BUDGET: Cell<Budget> = const { Cell::new(Budget { steps: 0, stack_from: 0 }) };
}

#[derive(Clone, Copy)]
struct Budget {
    steps: usize,
    /// Stack address at the start of the validation.
    stack_from: usize,
}

/// Runs `check`; an error if it needs more than `steps` accesses to values.
pub(super) fn with_step_limit<T>(steps: usize, check: impl FnOnce() -> T) -> Result<T, Box<dyn Any + Send>> {
    BUDGET.set(Budget {
        steps,
        stack_from: stack(),
    });
    // A check owns all that it changes.
    catch_unwind(AssertUnwindSafe(check))
}

/// Ends the validation by unwinding, without the panic hook, if the budget is used up.
fn step(steps: usize) {
    let budget = BUDGET.get();
    let deep = budget.stack_from.abs_diff(stack()) > limits::SCHEMA_CHECK_STACK_BYTES;
    match budget.steps.checked_sub(steps) {
        Some(steps) if !deep => BUDGET.set(Budget { steps, ..budget }),
        Some(_) | None => resume_unwind(Box::new("the step limit of a schema was reached")),
    }
}

/// The approximate current stack address.
#[inline(never)]
fn stack() -> usize {
    let here = 0u8;
    std::ptr::from_ref(&here).addr()
}

#[derive(Debug)]
pub(super) struct CountedJson;

#[derive(Clone, Copy, Debug)]
pub(super) struct CountedValue<'a>(pub(super) &'a Value);

#[derive(Debug)]
pub(super) struct Members<'a>(&'a Map<String, Value>);

#[derive(Debug)]
pub(super) struct Elements<'a>(&'a [Value]);

type MembersIter<'a> =
    std::iter::Map<serde_json::map::Iter<'a>, fn((&'a String, &'a Value)) -> (&'a str, CountedValue<'a>)>;
type ElementsIter<'a> = std::iter::Map<std::slice::Iter<'a, Value>, fn(&'a Value) -> CountedValue<'a>>;

impl Json for CountedJson {
    type Node<'a> = CountedValue<'a>;
    type PreparedKey = String;
    type StringBuffer = Value;

    const KEYS_PER_LOOKUP: usize = SerdeJson::KEYS_PER_LOOKUP;

    fn prepare_key(key: &str) -> String {
        key.to_owned()
    }

    fn with_string_node<T>(buffer: &mut Value, string: &str, f: impl FnOnce(CountedValue<'_>) -> T) -> T {
        SerdeJson::with_string_node(buffer, string, |value| f(CountedValue(value)))
    }
}

impl<'a> Node<'a, CountedJson> for CountedValue<'a> {
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

    /// The caller may match a pattern.
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

    /// Called for each fault; faults are large.
    fn to_value(&self) -> Cow<'a, Value> {
        step(limits::SCHEMA_STEPS_OF_FAULT);
        Cow::Borrowed(self.0)
    }

    fn identity(&self) -> Option<NodeIdentity> {
        step(1);
        self.0.identity()
    }
}

impl<'a> Object<'a, CountedJson> for Members<'a> {
    type Node = CountedValue<'a>;
    type MemberName = &'a str;
    type MembersIter = MembersIter<'a>;

    fn len(&self) -> usize {
        self.0.len()
    }

    fn get(&self, key: &String) -> Option<CountedValue<'a>> {
        step(1);
        self.0.get(key.as_str()).map(CountedValue)
    }

    fn members(&self) -> MembersIter<'a> {
        step(1);
        self.0.iter().map(|(name, value)| {
            step(1 + name.len());
            (name.as_str(), CountedValue(value))
        })
    }
}

impl<'a> Array<'a, CountedJson> for Elements<'a> {
    type Node = CountedValue<'a>;
    type ElementsIter = ElementsIter<'a>;

    fn len(&self) -> usize {
        self.0.len()
    }

    fn elements(&self) -> ElementsIter<'a> {
        step(1);
        self.0.iter().map(|value| {
            step(1);
            CountedValue(value)
        })
    }

    fn is_unique(&self) -> bool {
        step(self.0.iter().map(weight).sum());
        // Nested values can share one hash, and then each is compared with each.
        if self.0.iter().any(|item| item.is_array() || item.is_object()) {
            step(self.0.len().saturating_mul(self.0.len()) / 32);
        }
        unique::is_unique(self.0)
    }
}

/// The cost of comparing `value`, in steps.
fn weight(value: &Value) -> usize {
    1 + match value {
        Value::String(text) => text.len() / 64,
        Value::Array(items) => items.iter().map(weight).sum(),
        Value::Object(members) => members.values().map(weight).sum(),
        Value::Null | Value::Bool(_) | Value::Number(_) => 0,
    }
}
