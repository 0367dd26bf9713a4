//! Programs that attack from inside. Tests of the sandbox run them, too.

use crate::skill::Language;

/// Prefix of every Python program.
const PRELUDE: &str = include_str!("probes/prelude.py");

macro_rules! programs {
    ($($language:ident $name:literal;)*) => {
        &[$(($name, Language::$language, include_str!(concat!("probes/", $name)))),*]
    };
}

/// Name, language, text.
pub(super) const PROGRAMS: &[(&str, Language, &str)] = programs! {
    Python "environment.py";
    Python "exhaust.py";
    Python "flood.py";
    Python "frozen.py";
    Python "honest.py";
    Bash "exit.sh";
    Node "honest.js";
    Bash "honest.sh";
    Python "identity.py";
    Python "output_kinds.py";
    Python "secrets.py";
    Python "speak.py";
    Python "surroundings.py";
    Python "survivors.py";
    Python "syscalls.py";
    Python "tree.py";
};

/// The language and complete text of a program.
pub(super) fn find(name: &str) -> Option<(Language, String)> {
    let (_, language, text) = PROGRAMS.iter().find(|(known, _, _)| *known == name)?;
    let text = match language {
        Language::Python => python(text),
        Language::Node | Language::Bash => (*text).to_owned(),
    };
    Some((*language, text))
}

/// The complete text of a Python program.
pub(super) fn python(text: &str) -> String {
    format!("{PRELUDE}\n{text}")
}
