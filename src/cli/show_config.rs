//! `skillbox config`: shows every setting, its value and its source; secrets as `***`.

use crate::cli::console::{Console, Format, Rows};
use crate::cli::exit::Exit;
use crate::cli::failure::Result;
use crate::config::Config;

pub(crate) fn show(config: &Config, console: &Console) -> Result<Exit> {
    console.data(Format::Table, &config.effective, |settings| Rows {
        heading: &["setting", "value", "set by", "variable"],
        optional: &["variable", "set by"],
        rows: settings
            .iter()
            .map(|row| {
                let value = row.value.clone().unwrap_or_else(|| "-".to_owned());
                vec![
                    row.key.to_owned(),
                    value,
                    row.source.clone(),
                    row.variable.to_owned(),
                ]
            })
            .collect(),
    })?;
    for notice in &config.notices {
        console.say(notice);
    }
    Ok(Exit::Success)
}
