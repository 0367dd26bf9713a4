//! Loads SKILL.md and skill.toml of every dialect into a manifest.

use std::time::Duration;

use crate::error::quoted;
use crate::limits;
use crate::skill::File;
use crate::skill::document::{Document, SkillMdError};
use crate::skill::{
    Dialect, Function, InvalidName, Language, Manifest, Origin, Permissions, Resources, SkillName, Version,
    description::{description, paragraph},
    entrypoint,
    fields::{Field, Fields},
    function, hidden_character, private_files, quantity, title,
    undeclared::is_template,
};

/// The declaration files of a skill.
#[derive(Debug, Clone, Copy, Default)]
pub struct Declaration<'a> {
    pub skill_md: Option<&'a [u8]>,
    pub skill_toml: Option<&'a [u8]>,
    /// Name of the folder or archive, for a skill that declares no name.
    pub fallback_name: Option<&'a str>,
    /// Paths of its files, in byte order.
    pub files: &'a [&'a str],
}

/// A version as it stands in a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WrittenVersion {
    pub file: File,
    /// From 1.
    pub line: u32,
    pub text: String,
}

impl Declaration<'_> {
    /// The manifest, without the scripts that can be run by path.
    ///
    /// # Errors
    ///
    /// Wrong types and values, a missing entrypoint, YAML beyond its limits. The message names the file, the line,
    /// the field and the remedy.
    pub fn manifest(&self) -> Result<Manifest, SkillMdError> {
        self.manifest_or_errors()
            .map_err(|mut errors| errors.swap_remove(0))
    }

    /// As [`manifest`](Self::manifest), but returns all errors, at least one.
    pub(super) fn manifest_or_errors(&self) -> Result<Manifest, Vec<SkillMdError>> {
        let document = self.document().map_err(|error| vec![error])?;
        let body = document.as_ref().map_or("", |document| document.body);
        let front_matter = document.as_ref().map(|document| &*document.front_matter);
        let mut fields = Fields::read(front_matter, self.skill_toml).map_err(|error| vec![error])?;
        let mut errors = Errors(std::mem::take(&mut fields.errors));
        if let Some(above) = document.as_ref().and_then(|document| document.passed_over) {
            fields.warn(
                1,
                format!("{above} above the front matter is ignored; start with `---`"),
            );
        }
        let mut inferred = Vec::new();
        let name = errors.keep(name(&mut fields, self.fallback_name, &mut inferred));
        // Even an empty front matter has its first line.
        let missing = if front_matter == Some("") && self.skill_toml.is_none() {
            "the front matter is missing; the folder's name and the first paragraph are used"
        } else {
            "`description` is missing; the first words below the front matter are used"
        };
        let description = errors.keep(description(&mut fields, body, missing, &mut inferred));
        let timeout = errors.keep(timeout(&mut fields)).flatten();
        let version = errors.keep(version(&mut fields)).flatten();
        let run = name.as_ref().map(|name| run(&mut fields, name, self));
        let run = run.and_then(|run| errors.keep(run)).unwrap_or(Runs::NOTHING);
        inferred.extend(run.inferred(&fields));
        let (license, compatibility) = (fields.words("license"), fields.words("compatibility"));
        let allowed_tools = fields.joined("allowed-tools");
        check_instructions(&mut fields, body);
        private_files::warnings(self.files).for_each(|warning| fields.warn(None, warning));
        let mut origins = fields.origins();
        for key in inferred {
            origins.entry(key.to_owned()).or_insert(Origin::Inferred);
        }
        let permissions = errors.keep(permissions(&mut fields)).unwrap_or_default();
        let image = errors.keep(fields.parsed("image", image)).flatten();
        let resources = errors.keep(resources(&fields)).unwrap_or_default();
        let [input_schema, output_schema] =
            ["input_schema", "output_schema"].map(|key| errors.keep(fields.schema(key)).flatten());
        let (Some(name), Some(description), true) = (name, description, errors.0.is_empty()) else {
            return Err(errors.0);
        };
        Ok(Manifest {
            name,
            version,
            description,
            dialect: run.dialect,
            language: run.language,
            entrypoint: run.entrypoint,
            function: run.function,
            modules: function::labels(self.files)
                .into_iter()
                .map(str::to_owned)
                .collect(),
            permissions,
            actions: Vec::new(),
            image,
            timeout,
            resources,
            input_schema,
            output_schema,
            license,
            compatibility,
            allowed_tools,
            metadata: fields.metadata,
            instructions: body.to_owned(),
            origins,
            warnings: fields.warnings,
        })
    }

    /// Where the author wrote the version, valid or not.
    ///
    /// # Errors
    ///
    /// The front matter or skill.toml cannot be read.
    pub fn written_version(&self) -> Result<Option<WrittenVersion>, SkillMdError> {
        let document = self.document()?;
        let front_matter = document.as_ref().map(|document| &*document.front_matter);
        let fields = Fields::read(front_matter, self.skill_toml)?;
        Ok(fields.field("version").map(|field| WrittenVersion {
            file: match field.origin {
                Origin::SkillToml => File::SkillToml,
                Origin::Metadata | Origin::FrontMatter | Origin::Inferred => File::SkillMd,
            },
            line: field.node.line,
            text: field.node.to_text(),
        }))
    }

    /// SKILL.md needs no front matter if a skill.toml exists, or if its first paragraph can describe the skill.
    pub(super) fn document(&self) -> Result<Option<Document<'_>>, SkillMdError> {
        let Some(skill_md) = self.skill_md else {
            return Ok(None);
        };
        let refused = match Document::split(skill_md) {
            Ok(document) => return Ok(Some(document)),
            Err(refused) => refused,
        };
        let whole = Document::without_front_matter(skill_md);
        let is_enough = |document: &Document<'_>| {
            self.skill_toml.is_some()
                || paragraph(document.body).is_some_and(|text| !is_template(self.fallback_name, &text))
        };
        whole.filter(is_enough).ok_or(refused).map(Some)
    }

    fn has_file(&self, path: &str) -> bool {
        self.files.binary_search(&path).is_ok()
    }
}

/// Errors so far.
struct Errors(Vec<SkillMdError>);

impl Errors {
    fn keep<T>(&mut self, read: Result<T, SkillMdError>) -> Option<T> {
        read.map_err(|error| self.0.push(error)).ok()
    }
}

fn name(
    fields: &mut Fields,
    fallback: Option<&str>,
    inferred: &mut Vec<&'static str>,
) -> Result<SkillName, SkillMdError> {
    if let Some(text) = fields.exact("name")?.map(str::to_owned) {
        let near = SkillName::nearest(&text);
        let (name, is_exact) = near
            .or_else(|rule| {
                title::name_of(&text, fallback)
                    .map(|name| (name, false))
                    .ok_or(rule)
            })
            .map_err(|rule| fields.refuse("name", format!("`name` {}: {rule}", quoted(&text))))?;
        if let (false, Some(field)) = (is_exact, fields.field("name")) {
            let (origin, line) = (field.origin, field.node.line);
            fields.warn_of(
                origin,
                line,
                format!(
                    "the skill is named `{name}`: {} is not a valid name",
                    quoted(&text)
                ),
            );
        }
        return Ok(name);
    }
    let fallback =
        fallback.ok_or_else(|| SkillMdError::new(None, "`name` is missing; add it to the front matter"))?;
    inferred.push("name");
    SkillName::of_folder(fallback).ok_or_else(|| {
        let stands_in = quoted(fallback);
        let message = format!("`name` is missing and {stands_in} cannot stand in: {InvalidName}");
        SkillMdError::new(None, message)
    })
}

/// W-13: warns of text that a model reads and a reviewer does not see.
fn check_instructions(fields: &mut Fields, body: &str) {
    if let Some(hidden) = hidden_character(body) {
        let hidden = u32::from(hidden);
        fields.warn(
            None,
            format!("the instructions contain the invisible character U+{hidden:04X}; remove it"),
        );
    }
}

fn timeout(fields: &mut Fields) -> Result<Option<Duration>, SkillMdError> {
    let timeout = fields.parsed("timeout", quantity::parse_timeout)?;
    if let (Some(_), Some(field)) = (
        timeout.filter(|timeout| *timeout > limits::TIMEOUT_MAX),
        fields.field("timeout"),
    ) {
        let max = limits::TIMEOUT_MAX.as_secs();
        let (origin, line) = (field.origin, field.node.line);
        fields.warn_of(
            origin,
            line,
            format!("`timeout` is above {max} s, the maximum that is granted"),
        );
    }
    Ok(timeout.map(|timeout| timeout.min(limits::TIMEOUT_MAX)))
}

/// Other products accept any text as a version; in our own fields, an invalid one is an error.
fn version(fields: &mut Fields) -> Result<Option<Version>, SkillMdError> {
    let parsed = fields.parsed("version", str::parse);
    match (parsed, fields.field("version")) {
        (Err(error), Some(field)) if is_word_of_others(field) => {
            let (origin, line) = (field.origin, field.node.line);
            fields.warn_of(
                origin,
                line,
                format!("{}; the digest of the content is used", error.message),
            );
            Ok(None)
        }
        (parsed, _) => parsed,
    }
}

/// At the top level, or `1.0` in a skill.toml, which may belong to another product.
fn is_word_of_others(version: &Field) -> bool {
    let text = version.node.to_text();
    let number = |part: &str| part.len() < 5 && !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
    let is_short = text.split('.').count() == 2 && text.split('.').all(number);
    match version.origin {
        Origin::FrontMatter => true,
        Origin::SkillToml => is_short,
        Origin::Metadata | Origin::Inferred => false,
    }
}

fn permissions(fields: &mut Fields) -> Result<Permissions, SkillMdError> {
    let names = fields.texts("permissions.secrets")?.unwrap_or_default();
    let max = limits::SKILL_SECRETS_MAX;
    if names.len() > max {
        return Err(fields.refuse(
            "permissions.secrets",
            format!("`permissions.secrets`: more than {max} names"),
        ));
    }
    let mut secrets = Vec::with_capacity(names.len());
    for name in names {
        let secret = name.parse().map_err(|rule| {
            fields.refuse(
                "permissions.secrets",
                format!("`permissions.secrets` {}: {rule}", quoted(&name)),
            )
        })?;
        if !secrets.contains(&secret) {
            secrets.push(secret);
        }
    }
    // No network exists, whatever is requested.
    let network = fields
        .texts("permissions.network")
        .unwrap_or_else(|_| Some(vec![String::new()]));
    let mut network = network.unwrap_or_default();
    if let (false, Some(field)) = (network.is_empty(), fields.field("permissions.network")) {
        let (origin, line) = (field.origin, field.node.line);
        fields.warn_of(
            origin,
            line,
            "`permissions.network` is ignored: sandboxes have no network access".to_owned(),
        );
    }
    network.retain(|host| !host.is_empty());
    Ok(Permissions { secrets, network })
}

fn resources(fields: &Fields) -> Result<Resources, SkillMdError> {
    Ok(Resources {
        memory_bytes: fields.parsed("resources.memory", |text| {
            quantity::parse_bytes(text, limits::MEMORY_BYTES_MIN)
        })?,
        cpu_millis: fields.parsed("resources.cpu", quantity::parse_cpu)?,
        disk_bytes: fields.parsed("resources.disk", |text| quantity::parse_bytes(text, limits::MIB))?,
    })
}

/// The program of the skill.
#[derive(Debug)]
struct Runs {
    dialect: Dialect,
    language: Option<Language>,
    entrypoint: Option<String>,
    function: Option<Function>,
}

impl Runs {
    const NOTHING: Self = Self {
        dialect: Dialect::Instructions,
        language: None,
        entrypoint: None,
        function: None,
    };

    /// Requirements that are not declared.
    fn inferred(&self, fields: &Fields) -> impl Iterator<Item = &'static str> {
        let language = self.language.is_some() && fields.field("lang").is_none();
        let entrypoint = self.entrypoint.is_some() && fields.field("entrypoint").is_none();
        let told = [(language, "lang"), (entrypoint, "entrypoint"), (true, "dialect")];
        told.into_iter()
            .filter_map(|(is_inferred, key)| is_inferred.then_some(key))
    }
}

fn run(fields: &mut Fields, name: &SkillName, declaration: &Declaration<'_>) -> Result<Runs, SkillMdError> {
    let language = fields.parsed("lang", |text| {
        Language::from_alias(&text.to_ascii_lowercase()).ok_or("must be `python`, `node` or `bash`")
    })?;
    let declared = function::DeclaredFunction {
        entrypoint: fields.exact("entrypoint")?,
        export: fields.exact("export")?,
        language,
    };
    let key = if declared.entrypoint.is_some() {
        "entrypoint"
    } else {
        "lang"
    };
    let is_function = declaration.skill_toml.is_some() || declared.export.is_some();
    if is_function && function::is_meant(&declared, declaration.files) {
        let called = function::choose(name, &declared, declaration.files)
            .map_err(|rule| fields.refuse(key, format!("`entrypoint`: {rule}")))?;
        return Ok(match called {
            Some(called) => Runs {
                dialect: Dialect::Function,
                language: Some(called.language),
                entrypoint: Some(called.entrypoint),
                function: Some(called.function),
            },
            None => {
                fields.warn(
                    None,
                    "no function is called by default; name a module of code/ in `entrypoint`".to_owned(),
                );
                Runs {
                    dialect: Dialect::Function,
                    ..Runs::NOTHING
                }
            }
        });
    }
    let usual = language.map(Language::default_entrypoint);
    if let (Some(usual), None, Some(field)) = (usual, declared.entrypoint, fields.field("lang"))
        && field.origin == Origin::FrontMatter
        && !declaration.has_file(usual)
    {
        // Other products tag a skill with the language it is about.
        let line = field.node.line;
        fields.warn(
            line,
            format!("the language is ignored: there is no `{usual}`; name the program in `entrypoint`"),
        );
        return Ok(Runs::NOTHING);
    }
    let declared = entrypoint::DeclaredProgram {
        language,
        entrypoint: declared.entrypoint,
    };
    let choice = entrypoint::choose(&declared, |path| declaration.has_file(path))
        .map_err(|rule| fields.refuse(key, format!("`entrypoint`: {rule}")))?;
    Ok(program(fields, choice))
}

fn program(fields: &mut Fields, choice: entrypoint::Choice) -> Runs {
    match choice {
        entrypoint::Choice::Program { language, entrypoint } => Runs {
            dialect: Dialect::Program,
            language: Some(language),
            entrypoint: Some(entrypoint),
            function: None,
        },
        entrypoint::Choice::NoProgram => Runs::NOTHING,
        entrypoint::Choice::Ambiguous(found) => {
            let found = found.join(", ");
            fields.warn(
                None,
                format!("no program is selected, because {found} are all possible; name one in `entrypoint`"),
            );
            Runs::NOTHING
        }
    }
}

/// A name to compare with the allowlist later.
fn image(text: &str) -> Result<String, &'static str> {
    if (1..=limits::IMAGE_CHARS_MAX).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_graphic()) {
        Ok(text.to_owned())
    } else {
        Err("must be an image name such as `python:3.12-slim`, without white space")
    }
}
