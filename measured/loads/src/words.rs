//! Words in one text, with quotes: the notation for a command in the name of a load.
//!
//! It is not parsed by a shell, since a guest may lack one. Single quotes, double quotes and
//! backslashes have the same meaning as in a shell; no other character is special.

/// Splits a text into words; None if a quote is not closed or nothing follows a backslash.
pub(crate) fn split(text: &str) -> Option<Vec<String>> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        match c {
            c if c.is_ascii_whitespace() => words.extend(word.take()),
            '\'' | '"' => {
                let word = word.get_or_insert_default();
                loop {
                    match chars.next()? {
                        end if end == c => break,
                        '\\' if c == '"' => word.push(chars.next()?),
                        other => word.push(other),
                    }
                }
            }
            '\\' => word.get_or_insert_default().push(chars.next()?),
            other => word.get_or_insert_default().push(other),
        }
    }
    words.extend(word);
    Some(words)
}

/// Writes words so that [`split`] returns them.
pub(crate) fn join(words: &[String]) -> String {
    let quoted: Vec<String> = words.iter().map(|word| quote(word)).collect();
    quoted.join(" ")
}

fn quote(word: &str) -> String {
    let plain = |c: char| c.is_alphanumeric() || "-_./:=,@%+".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', "'\\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_split_as_a_shell_does() {
        for (text, words) in [
            ("", &[][..]),
            ("  a  b ", &["a", "b"]),
            (
                "sh -c 'while :; do :; done'",
                &["sh", "-c", "while :; do :; done"],
            ),
            (r#"a"b \" c"d ''"#, &["ab \" cd", ""]),
            (r"a\ b", &["a b"]),
        ] {
            assert_eq!(split(text).unwrap(), words, "{text}");
        }
        for open in ["'a", "\"a", "a\\", "\"a\\"] {
            assert_eq!(split(open), None, "{open}");
        }
    }

    #[test]
    fn what_is_joined_splits_into_the_same() {
        let words: Vec<String> = ["", "a", "a b", "it's", "\"", "\\", "$HOME", "α=1"]
            .iter()
            .map(|&word| word.to_owned())
            .collect();
        assert_eq!(split(&join(&words)), Some(words));
    }
}
