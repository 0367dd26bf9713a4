//! Titles in scripts other than ASCII (`数据分析`, `Заметки`) in place of a skill's name.

use crate::ids::Digest;
use crate::skill::{SkillName, hidden_character};

/// A name for such a skill: from its folder, else from a digest of the title. `None` for text that looks like another
/// name: hidden characters, look-alikes of ASCII letters, paths.
pub(super) fn name_of(title: &str, folder: Option<&str>) -> Option<SkillName> {
    if !is_title(title) {
        return None;
    }
    let of_folder = folder.and_then(|folder| SkillName::nearest(folder).ok());
    of_folder.map(|(name, _)| name).or_else(|| {
        format!("skill-{}", &Digest::of(title.as_bytes()).hex()[..HEX_DIGITS])
            .parse()
            .ok()
    })
}

/// Long enough to distinguish the skills of a tenant.
const HEX_DIGITS: usize = 12;
const CHARS_MAX: usize = 64;

fn is_title(text: &str) -> bool {
    let is_path = text.contains(['/', '\\', '%', '<', '>']);
    let bounded = text.chars().count() <= CHARS_MAX && text == text.trim();
    let visible = hidden_character(text).is_none() && !text.contains(char::is_control);
    let mut words = text
        .split(|c: char| !c.is_alphanumeric())
        .filter(|word| !word.is_empty());
    let is_foreign = text.chars().any(|c| !c.is_ascii() && c.is_alphanumeric());
    !is_path && bounded && visible && is_foreign && words.all(is_plain)
}

/// A word that cannot be read as another: ASCII, or only letters unlike ASCII.
fn is_plain(word: &str) -> bool {
    let rest: String = word.chars().filter(|c| !is_cjk(*c)).collect();
    rest.is_ascii() || (rest.chars().all(is_cyrillic) && rest.contains(unlike_latin))
}

/// Han, kana and Hangul look unlike ASCII, even next to it.
fn is_cjk(c: char) -> bool {
    matches!(c, '\u{3005}'..='\u{3007}' | '\u{3041}'..='\u{30ff}' | '\u{3400}'..='\u{4dbf}' | '\u{4e00}'..='\u{9fff}'
        | '\u{ac00}'..='\u{d7a3}' | '\u{f900}'..='\u{faff}' | '\u{20000}'..='\u{323af}')
}

fn is_cyrillic(c: char) -> bool {
    matches!(
        c,
        '\u{410}'..='\u{44f}' | 'Ё' | 'ё' | 'Є' | 'є' | 'І' | 'і' | 'Ї' | 'ї' | 'Ґ' | 'ґ'
    )
}

fn unlike_latin(c: char) -> bool {
    "бгджзийлптфцчшщъыьэюяБГДЖЗИЙЛПФЦЧШЩЪЫЬЭЮЯ".contains(c)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_title_in_another_script_by_folder_or_digest() {
        for title in [
            "数据分析",
            "Apple笔记",
            "データ 分析 2",
            "문서 도구",
            "Заметки",
            "PDF「变换」工具",
        ] {
            let named = |folder| name_of(title, folder).unwrap().to_string();
            assert_eq!(named(Some("data_tools")), "data-tools", "{title}");
            let derived = named(Some(title));
            assert_eq!((derived.len(), &named(None)), (18, &derived), "{title}");
            assert_ne!(
                Some(derived),
                name_of("另一个", None).map(|name| name.to_string())
            );
        }
    }

    /// Z-22, W-15.
    #[test]
    fn rejects_ambiguous_titles() {
        for wrong in [
            "dаta",
            "а",
            "сор",
            "ｄata",
            "ａ",
            "a\u{200b}数",
            "数/据",
            "数\\据",
            "数%2e",
            "α",
            "數\n據",
            " 数据",
            "",
            "a b",
            &"数".repeat(65),
        ] {
            assert!(name_of(wrong, Some("a")).is_none(), "{wrong:?}");
        }
    }
}
