//! `skillbox skill requirements`: packages of a published skill, beside its files.

use clap::{Args, Subcommand};
use serde::Serialize;

use crate::api::skills::{AddedRequirements, Skill};
use crate::cli::client::Client;
use crate::cli::console::{Console, Format, Rows};
use crate::cli::failure::{Failure, Result};
use crate::cli::package_arguments::PackageArguments;
use crate::cli::skill::suggest;
use crate::error::{did_you_mean, quoted};
use crate::skill::{Selector, SkillName, SkillRef, Version};

#[derive(Debug, Args)]
pub(crate) struct RequirementsArgs {
    /// Name of the skill
    name: SkillName,
    /// Version: 1.2.0, latest, or a digest sha256:…
    #[arg(long, default_value = "latest", global = true)]
    version: Selector,
    #[command(subcommand)]
    change: Option<Change>,
}

#[derive(Debug, Subcommand)]
enum Change {
    /// List the packages that were added
    #[command(after_help = "Example:\n  skillbox skill requirements pdf-tools list")]
    List,
    /// Add packages and install them; one that was added before is replaced
    #[command(after_help = "Example:\n  skillbox skill requirements pdf-tools add pypdf 'pandas>=2'")]
    Add {
        /// Packages, such as pypdf or 'pandas>=2'
        #[arg(value_name = "PACKAGE")]
        packages: Vec<String>,
        #[command(flatten)]
        others: PackageArguments,
    },
    /// Remove packages that were added
    #[command(after_help = "Example:\n  skillbox skill requirements pdf-tools remove pandas")]
    Remove {
        /// Packages by name
        #[arg(value_name = "PACKAGE", required = true)]
        packages: Vec<String>,
    },
}

/// Packages of a version that are not in its files.
#[derive(Serialize)]
struct Added<'a> {
    skill: &'a SkillName,
    version: &'a Version,
    requirements: &'a [String],
}

pub(crate) fn requirements(args: RequirementsArgs, client: &Client, console: &Console) -> Result<()> {
    let RequirementsArgs {
        name,
        version,
        change,
    } = args;
    let skill = client.skill(&name, &version);
    let skill = skill.map_err(|failure| suggest(failure, client, &name))?;
    let mut all = skill.requirements.clone();
    match change {
        None | Some(Change::List) => return print(&skill, console),
        Some(Change::Add { packages, others }) => {
            let added = [packages, others.read()?].concat();
            if added.is_empty() {
                return Err(Failure::refused("name a package to add, such as pypdf"));
            }
            all.retain(|known| !added.iter().any(|new| is_same_package(new, known)));
            all.extend(added);
        }
        Some(Change::Remove { packages }) => {
            for package in &packages {
                let before = all.len();
                all.retain(|known| !is_same_package(package, known));
                if all.len() == before {
                    let meant = did_you_mean(package, all.iter().map(|known| package_name(known)));
                    let message = format!("{} was not added to {name}{meant}", quoted(package));
                    let hint = format!("`skillbox skill requirements {name}` lists what was");
                    return Err(Failure::refused(message).hint(hint));
                }
            }
        }
    }
    let skill = set(client, &skill, all)?;
    prefetch(client, &skill, console)?;
    print(&skill, console)
}

fn set(client: &Client, skill: &Skill, requirements: Vec<String>) -> Result<Skill> {
    let version = SkillRef {
        name: skill.summary.name.clone(),
        selector: Selector::Version(skill.summary.version.clone()),
    };
    client.set_requirements(&version, &AddedRequirements { requirements })
}

/// Installs the packages of a version, so that its first run does not have to, and mistakes show now.
pub(crate) fn prefetch(client: &Client, skill: &Skill, console: &Console) -> Result<()> {
    if skill.requirements.is_empty() {
        return Ok(());
    }
    let (name, version) = (&skill.summary.name, &skill.summary.version);
    let installed = client.prefetch(name, &Selector::Version(version.clone()));
    installed.map_err(|failure| {
        let hint = format!("correct it with `skillbox skill requirements {name} add|remove PACKAGE`");
        failure.hint(hint)
    })?;
    console.success(format!("{name} {version}: packages installed"));
    Ok(())
}

fn print(skill: &Skill, console: &Console) -> Result<()> {
    let added = Added {
        skill: &skill.summary.name,
        version: &skill.summary.version,
        requirements: &skill.requirements,
    };
    if skill.requirements.is_empty() && console.format_or(Format::Table) == Format::Table {
        console.say(format!(
            "no packages were added to {} {}",
            added.skill, added.version
        ));
        return Ok(());
    }
    console.data(Format::Table, &added, |added| Rows {
        heading: &["package"],
        rows: added.requirements.iter().map(|text| vec![text.clone()]).collect(),
        optional: &[],
    })
}

fn is_same_package(one: &str, other: &str) -> bool {
    let normal = |text: &str| package_name(text).to_lowercase().replace(['_', '.'], "-");
    normal(one) == normal(other)
}

/// The name in `pandas[excel]>=2`, `@scope/name@1` or `pandas @ https://…`.
fn package_name(requirement: &str) -> &str {
    let requirement = requirement.trim();
    let end = requirement
        .char_indices()
        .skip(1)
        .find(|(_, c)| "<>=!~;[(@ ".contains(*c));
    end.map_or(requirement, |(at, _)| &requirement[..at])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_name_of_package() {
        for (requirement, name) in [
            ("pandas", "pandas"),
            (" pandas>=2,<3", "pandas"),
            ("pandas[excel]==2.1", "pandas"),
            ("lodash@^4", "lodash"),
            ("@scope/name@1.2", "@scope/name"),
            ("@scope/name", "@scope/name"),
            ("six ; python_version > '3'", "six"),
        ] {
            assert_eq!(package_name(requirement), name);
        }
        assert!(is_same_package("Typing_Extensions>=4", "typing-extensions"));
        assert!(!is_same_package("pandas", "pandas2"));
    }
}
