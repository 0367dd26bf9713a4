//! Parses quantities: `30s`, `256Mi`, `500m`. Accepts plain positive numbers only.

use std::time::Duration;

use crate::error::quoted;
use crate::limits;

/// A wall clock limit: seconds (`30`, `1.5`) or with a unit (`500ms`, `30s`, `2m`, `1h`), at least 100 ms. It may
/// exceed the server's maximum.
pub fn parse_timeout(text: &str) -> Result<Duration, String> {
    let units = [
        ("", 1.0),
        ("s", 1.0),
        ("ms", 0.001),
        ("m", 60.0),
        ("min", 60.0),
        ("h", 3600.0),
    ];
    let seconds = measure(text, &units).ok_or("must be a number of seconds or like `30s`, `2m`")?;
    let timeout = Duration::try_from_secs_f64(seconds).map_err(|_| "is too long; write for example `2m`")?;
    if timeout < limits::TIMEOUT_MIN {
        return Err(format!("must be at least {} ms", limits::TIMEOUT_MIN.as_millis()));
    }
    Ok(timeout)
}

/// A duration: as a wall clock limit, or whole days (`30d`).
pub fn parse_span(text: &str) -> Result<Duration, String> {
    let seconds = match text.trim().strip_suffix('d') {
        Some(days) => days
            .trim()
            .parse::<u32>()
            .ok()
            .map(|days| Duration::from_hours(24 * u64::from(days))),
        None => parse_timeout(text).ok(),
    };
    seconds.ok_or_else(|| format!("{} is not a duration such as 30s, 5m, 12h or 30d", quoted(text)))
}

/// A size in bytes or with a unit (`256Mi`, `1Gi`, `512MB`, `0.5Gi`), at least `min` bytes.
pub fn parse_bytes(text: &str, min: u64) -> Result<u64, String> {
    let (kilo, kibi) = (1000.0_f64, 1024.0_f64);
    let units = [
        ("", 1.0),
        ("B", 1.0),
        ("k", kilo),
        ("kB", kilo),
        ("KB", kilo),
        ("M", kilo.powi(2)),
        ("MB", kilo.powi(2)),
        ("G", kilo.powi(3)),
        ("GB", kilo.powi(3)),
        ("Ki", kibi),
        ("KiB", kibi),
        ("Mi", kibi.powi(2)),
        ("MiB", kibi.powi(2)),
        ("Gi", kibi.powi(3)),
        ("GiB", kibi.powi(3)),
    ];
    let bytes = measure(text, &units).ok_or("must be a number of bytes or like `256Mi`, `512MB`, `1Gi`")?;
    whole(bytes, min, limits::BYTES_ASKED_MAX).ok_or_else(|| {
        format!(
            "must be from {}Mi to {}Gi",
            min / limits::MIB,
            limits::BYTES_ASKED_MAX / limits::MIB / 1024
        )
    })
}

/// CPU in thousandths of a core: cores (`0.5`, `2`) or `500m`.
pub fn parse_cpu(text: &str) -> Result<u32, String> {
    let millis =
        measure(text, &[("", 1000.0), ("m", 1.0)]).ok_or("must be a number of cores or like `500m`")?;
    whole(
        millis,
        limits::CPU_MILLIS_MIN.into(),
        limits::CPU_MILLIS_ASKED_MAX.into(),
    )
    .and_then(|millis| u32::try_from(millis).ok())
    .ok_or_else(|| {
        format!(
            "must be from {}m to {} cores",
            limits::CPU_MILLIS_MIN,
            limits::CPU_MILLIS_ASKED_MAX / 1000
        )
    })
}

/// Digits with at most one point, and one of `units`, after an optional space: no sign, no exponent, no `NaN`.
fn measure(text: &str, units: &[(&str, f64)]) -> Option<f64> {
    let end = text
        .find(|c: char| !c.is_ascii_digit() && c != '.')
        .unwrap_or(text.len());
    let (digits, unit) = text.split_at(end);
    let unit = match unit.strip_prefix(' ') {
        Some(spaced) if !spaced.is_empty() => spaced,
        _ => unit,
    };
    let (_, factor) = units.iter().find(|(name, _)| *name == unit)?;
    let value = digits.parse::<f64>().ok()? * factor;
    value.is_finite().then_some(value)
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the range is checked before"
)]
fn whole(value: f64, min: u64, max: u64) -> Option<u64> {
    #[expect(clippy::cast_precision_loss, reason = "our bounds are below 2^53")]
    let range = min as f64..=max as f64;
    range.contains(&value).then(|| value.round() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Z-21.
    #[test]
    fn rejects_unlimited_quantities() {
        let absurd = [
            "",
            "0",
            "-1",
            "0.0001",
            "NaN",
            ".nan",
            "inf",
            "-inf",
            "1e308",
            "1e999",
            "10y",
            "∞",
            "unlimited",
            "max",
            "1 2",
            "1.2.3",
            "0x10",
            " 30",
            "30 ",
            "30s\n",
        ];
        for text in absurd {
            assert!(parse_timeout(text).is_err(), "timeout {text}");
            assert!(parse_bytes(text, limits::MIB).is_err(), "bytes {text}");
            assert!(parse_cpu(text).is_err(), "cpu {text}");
        }
        assert!(parse_timeout(&"9".repeat(400)).is_err());
        assert!(parse_timeout("99999999999999999999h").is_err());
        for text in ["64Ti", "99999999999999999999Gi", "1", "512m", "0Gi"] {
            assert!(parse_bytes(text, limits::MEMORY_BYTES_MIN).is_err(), "{text}");
        }
        for text in ["0m", "1m", "0.001", "1025", "1G"] {
            assert!(parse_cpu(text).is_err(), "{text}");
        }
    }

    #[test]
    fn parses_common_quantities() {
        for (text, millis) in [
            ("30", 30_000),
            ("1.5", 1500),
            ("30s", 30_000),
            ("2m", 120_000),
            ("500ms", 500),
            ("1 h", 3_600_000),
        ] {
            assert_eq!(parse_timeout(text), Ok(Duration::from_millis(millis)), "{text}");
        }
        for (text, bytes) in [
            ("256Mi", 256 * limits::MIB),
            ("512MB", 512_000_000),
            ("0.5Gi", 512 * limits::MIB),
            ("67108864", 64 * limits::MIB),
        ] {
            assert_eq!(parse_bytes(text, limits::MEMORY_BYTES_MIN), Ok(bytes), "{text}");
        }
        for (text, millis) in [("0.5", 500), ("500m", 500), ("2", 2000)] {
            assert_eq!(parse_cpu(text), Ok(millis), "{text}");
        }
    }
}
