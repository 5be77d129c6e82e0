//! The request for a page by HTTP/1.1, and its answer.

/// The request for the page that a service without files has.
pub const REQUEST: &[u8] = b"GET / HTTP/1.1\r\nHost: example\r\n\r\n";
/// The end of a head.
const END: &[u8] = b"\r\n\r\n";
/// The beginning of the page.
const PAGE: &[u8] = b"<!doctype html><title>tare</title>";

/// Returns the length of the answer that some bytes begin with: of its head, and of its body as the
/// head has it. `None` if the head is not whole.
pub fn length(bytes: &[u8]) -> Option<usize> {
    let head = head(bytes)?;
    let lines = head.split(|byte| *byte == b'\n');
    let mut named = lines.filter_map(|line| line.split_at_checked(NAME.len()));
    let (_, value) = named.find(|(name, _)| name.eq_ignore_ascii_case(NAME))?;
    let value = str::from_utf8(value).ok()?.trim();
    value.parse::<usize>().ok()?.checked_add(head.len())
}

const NAME: &[u8] = b"content-length:";

/// Returns whether a whole answer has the page.
pub fn is_right(answer: &[u8]) -> bool {
    let body = head(answer).map(|head| &answer[head.len()..]);
    answer.starts_with(b"HTTP/1.1 200 ") && body.is_some_and(|body| body.starts_with(PAGE))
}

/// Returns the head that some bytes begin with, and its end.
fn head(bytes: &[u8]) -> Option<&[u8]> {
    let at = bytes.windows(END.len()).position(|window| window == END)?;
    Some(&bytes[..at + END.len()])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_as_long_as_its_head_has_it_and_right_with_the_page() {
        let body = "<!doctype html><title>tare</title>…";
        let head = format!(
            "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\ncontent-length: {}\r\n\r\n",
            body.len()
        );
        let whole = format!("{head}{body}");
        assert_eq!(length(whole.as_bytes()), Some(whole.len()));
        assert_eq!(length(head.as_bytes()), Some(whole.len()));
        assert_eq!(length(&head.as_bytes()[..head.len() - 1]), None);
        assert!(is_right(whole.as_bytes()));
        for (from, to) in [("200", "404"), ("tare", "rate")] {
            assert!(!is_right(whole.replace(from, to).as_bytes()));
        }
    }
}
