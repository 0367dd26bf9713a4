//! Reads what the source of a client library declares of the API.
//!
//! A comment `openapi: NAME` above a declaration names its schema, and the declaration ends at the next blank line. A comment
//! `openapi: GET /path` above a method names its route.

use std::collections::{BTreeMap, BTreeSet};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sdk {
    Go,
    Python,
    TypeScript,
}

impl Sdk {
    pub(super) const ALL: [Self; 3] = [Self::Go, Self::Python, Self::TypeScript];

    /// Files below `web/sdk` with the code and its types.
    pub(super) const fn sources(self) -> &'static [&'static str] {
        match self {
            Self::Go => &["go/skillbox.go"],
            Self::Python => &["python/skillbox/__init__.py"],
            Self::TypeScript => &["typescript/skillbox.js", "typescript/skillbox.d.ts"],
        }
    }

    /// The name of the field that a line declares.
    fn field(self, line: &str) -> Option<String> {
        if line.contains("not in the API") {
            return None;
        }
        let declared = match self {
            Self::Go => line.split_once("json:\"")?.1,
            Self::Python => line.strip_prefix("    ")?,
            Self::TypeScript => {
                let line = line.strip_prefix("  ")?;
                line.strip_prefix("readonly ").unwrap_or(line)
            }
        };
        let name: String = declared
            .chars()
            .take_while(|c| c.is_ascii_alphanumeric() || *c == '_')
            .collect();
        let rest = &declared[name.len()..];
        let is_field = match self {
            Self::Go => rest.starts_with([',', '"']),
            Self::Python => rest.starts_with(':'),
            Self::TypeScript => rest.starts_with(':') || rest.starts_with("?:"),
        };
        (is_field && !name.is_empty()).then_some(name)
    }
}

/// What one source declares.
#[derive(Debug, Default)]
pub(super) struct Declared {
    /// The names of each schema: fields of a type, values of an enumeration.
    pub(super) schemas: BTreeMap<String, BTreeSet<String>>,
    /// `GET /v1/skills`.
    pub(super) routes: BTreeSet<String>,
}

/// A marked declaration.
struct Block<'a> {
    schemas: Vec<&'a str>,
    lines: Vec<&'a str>,
}

impl Declared {
    pub(super) fn of(sdk: Sdk, text: &str) -> Self {
        let mut found = Self::default();
        let mut blocks = Vec::new();
        let mut lines = text.lines().peekable();
        while let Some(line) = lines.next() {
            let Some(marks) = mark(line) else { continue };
            if ["GET ", "POST ", "PUT ", "DELETE "]
                .iter()
                .any(|method| marks.starts_with(method))
            {
                found.routes.insert(marks.to_owned());
                continue;
            }
            let mut block = Block {
                schemas: marks.split(' ').collect(),
                lines: Vec::new(),
            };
            while let Some(line) = lines.next_if(|line| !line.trim().is_empty()) {
                block.lines.push(line);
            }
            blocks.push(block);
        }
        let fields: BTreeMap<String, BTreeSet<String>> = blocks
            .iter()
            .filter(|block| block.is_type())
            .map(|block| (block.name(), block.fields(sdk)))
            .collect();
        for block in &blocks {
            let mut names = if block.is_type() {
                block.fields(sdk)
            } else {
                block.values()
            };
            for parent in block.parents() {
                names.extend(fields.get(&parent).into_iter().flatten().cloned());
            }
            for schema in &block.schemas {
                let before = found.schemas.insert((*schema).to_owned(), names.clone());
                assert!(before.is_none(), "{sdk:?} marks {schema} twice");
            }
        }
        found
    }
}

impl Block<'_> {
    /// The lines after comments of the declaration.
    fn code(&self) -> impl Iterator<Item = &str> {
        self.lines
            .iter()
            .copied()
            .filter(|line| !line.trim_start().starts_with(['/', '#', '*', '@']))
    }

    fn header(&self) -> &str {
        self.code().next().unwrap_or_default()
    }

    /// Otherwise a list of values.
    fn is_type(&self) -> bool {
        let words = words(self.header());
        let kinds = ["struct", "class", "interface"];
        words.iter().any(|word| kinds.contains(&word.as_str())) && !words.iter().any(|word| word == "Enum")
    }

    fn name(&self) -> String {
        let skipped = ["export", "type", "class", "interface"];
        let words = words(self.header());
        let name = words.into_iter().find(|word| !skipped.contains(&word.as_str()));
        name.unwrap_or_default()
    }

    /// Types whose fields the declaration has, too: named in its header, or alone on a line, as Go embeds them.
    fn parents(&self) -> Vec<String> {
        let own = self.name();
        let embedded = self
            .code()
            .skip(1)
            .map(str::trim)
            .filter(|line| line.chars().all(|c| c.is_ascii_alphanumeric()))
            .map(ToOwned::to_owned);
        let named = words(self.header()).into_iter();
        named.chain(embedded).filter(|name| *name != own).collect()
    }

    fn fields(&self, sdk: Sdk) -> BTreeSet<String> {
        self.code().skip(1).filter_map(|line| sdk.field(line)).collect()
    }

    fn values(&self) -> BTreeSet<String> {
        let text: Vec<_> = self.code().collect();
        let text = text.join("\n").replace('\'', "\"");
        text.split('"')
            .skip(1)
            .step_by(2)
            .map(ToOwned::to_owned)
            .collect()
    }
}

/// What follows `openapi: ` in a comment.
fn mark(line: &str) -> Option<&str> {
    let comment = line.trim().trim_start_matches(['/', '#', '*']).trim_start();
    let has_sign = comment.len() < line.trim().len();
    comment
        .strip_prefix("openapi: ")
        .filter(|_| has_sign)
        .map(str::trim)
}

fn words(line: &str) -> Vec<String> {
    let words = line.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    words
        .filter(|word| !word.is_empty())
        .map(ToOwned::to_owned)
        .collect()
}

#[test]
fn reads_marked_declarations_of_each_language() {
    let go = "// openapi: A\ntype A struct {\n\tB\n\tX string `json:\"x,omitempty\"`\n\tY string `json:\"-\"`\n}\n\n// openapi: B\n\
              type b struct{}\n\n// openapi: S\nconst (\n\tQ S = \"q\" // r\n)\n\n// Runs.\n// openapi: POST /v1/x\nfunc F() {}\n";
    let python = "# openapi: A\nclass A(B, total=False):\n    \"\"\"Text.\"\"\"\n    x: int\n    own: int  # not in the API\n\n\
                  # openapi: B\n@dataclass\nclass B:\n    z: Optional[str] = None\n\n# openapi: S\nS = Literal['q', \"r\"]\n\n    # openapi: POST /v1/x\n";
    let typescript = "// openapi: A\nexport interface A extends B {\n  readonly x: number;\n  /** Text: */\n  y?: string;\n}\n\n\
                      // openapi: B\nexport interface B {\n  z: string;\n}\n\n// openapi: S\nexport type S = 'q' | 'r';\n\n  // openapi: POST /v1/x\n";
    for (sdk, text, fields, values) in [
        (Sdk::Go, go, &["x"][..], &["q"][..]),
        (Sdk::Python, python, &["x", "z"], &["q", "r"]),
        (Sdk::TypeScript, typescript, &["x", "y", "z"], &["q", "r"]),
    ] {
        let declared = Declared::of(sdk, text);
        let names = |schema: &str| {
            declared.schemas[schema]
                .iter()
                .map(String::as_str)
                .collect::<Vec<_>>()
        };
        assert_eq!(
            (names("A"), names("S")),
            (fields.to_vec(), values.to_vec()),
            "{sdk:?}"
        );
        assert!(declared.routes.contains("POST /v1/x"), "{sdk:?}");
    }
}
