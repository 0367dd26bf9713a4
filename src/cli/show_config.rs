//! `skillbox config`: shows every setting, its value and its source; secrets as `***`.

use crate::cli::console::{Console, Format, Rows};
use crate::cli::exit::Exit;
use crate::cli::failure::Result;
use crate::config::Config;

pub(crate) fn show(config: &Config, console: &Console) -> Result<Exit> {
    let mut settings = config.effective.clone();
    for row in &mut settings {
        if row.key == "data_dir" && row.value.is_none() {
            row.value = config
                .data_folder_path()
                .ok()
                .map(|path| path.display().to_string());
        }
    }
    console.data(Format::Table, &settings, |settings| Rows {
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
