//! `skillbox sdk`: prints or writes the client libraries.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use crate::cli::console::Console;
use crate::cli::exit::Exit;
use crate::cli::failure::{Failure, Result};
use crate::http::sdk;

#[derive(Debug, Args)]
#[command(
    after_help = "The library is one file without dependencies. With --out the whole package is written: install it with `pip install DIR`, `npm install DIR`, or a `replace` in go.mod. A server has the same files at /sdk.\n\nExamples:\n  skillbox sdk python > skillbox.py\n  skillbox sdk go --out ./skillbox-sdk"
)]
pub(crate) struct SdkArgs {
    /// Language of the library
    #[arg(value_enum)]
    language: SdkLanguage,
    /// Write the package into this folder, which is created; existing files are not replaced
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
#[value(rename_all = "lower")]
enum SdkLanguage {
    Go,
    Python,
    TypeScript,
}

impl SdkLanguage {
    /// The folder of the package, and the library in it.
    const fn source(self) -> (&'static str, &'static str) {
        match self {
            Self::Go => ("go/", "skillbox.go"),
            Self::Python => ("python/", "skillbox/__init__.py"),
            Self::TypeScript => ("typescript/", "skillbox.js"),
        }
    }
}

pub(crate) fn sdk(args: &SdkArgs, console: &Console) -> Result<Exit> {
    let (folder, file) = args.language.source();
    let Some(out) = &args.out else {
        let path = format!("{folder}{file}");
        let content = sdk::content(&path)
            .ok_or_else(|| Failure::internal("printing the library", format!("{path} is not embedded")))?;
        console.bytes(&content)?;
        return Ok(Exit::Success);
    };
    for path in sdk::paths() {
        let (Some(name), Some(content)) = (path.strip_prefix(folder), sdk::content(&path)) else {
            continue;
        };
        let target = out.join(name);
        let parent = target.parent().unwrap_or(out);
        std::fs::create_dir_all(parent)
            .and_then(|()| std::fs::File::create_new(&target))
            .and_then(|mut file| std::io::Write::write_all(&mut file, &content))
            .map_err(|error| Failure::file(&target, &error))?;
    }
    console.success(format!("wrote the package into {}", out.display()));
    Ok(Exit::Success)
}
