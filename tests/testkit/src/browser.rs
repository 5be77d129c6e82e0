//! A page in a real browser: headless Chromium with a separate profile.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

/// A script that lists visual faults of a page, in an element of the page.
const LOOK: &str = include_str!("look.js");

/// A page as shown by a browser.
pub struct Shown {
    /// The final page.
    pub dom: String,
    /// The browser's log.
    pub log: String,
}

/// Opens a page with these options; `None`, with a message, if there is no browser.
///
/// # Panics
///
/// Panics if there must be one, or no profile can be created.
#[must_use]
pub fn open(page: &Path, options: &[&str]) -> Option<Shown> {
    let profile = tempfile::tempdir().expect("a temporary profile");
    let output = Command::new("chromium")
        .args([
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-quic",
            "--no-first-run",
            "--disable-background-networking",
            "--disable-component-update",
            "--disable-sync",
            "--enable-logging=stderr",
            "--window-size=1200,3000",
        ])
        .arg(format!("--user-data-dir={}", profile.path().display()))
        .args(options)
        .arg(format!("file://{}", page.display()))
        .stdin(Stdio::null())
        .output();
    match output {
        Ok(output) => Some(Shown {
            dom: String::from_utf8_lossy(&output.stdout).into_owned(),
            log: String::from_utf8_lossy(&output.stderr).into_owned(),
        }),
        Err(error) => {
            crate::skip("chromium", &error.to_string());
            None
        }
    }
}

/// Checks a page of this width in pixels, or as printed, for visual faults: text that leaves its
/// picture or overlaps other text, a page wider than its window, hidden parts without a hint at
/// scrolling, legends without a line, tables invisible on paper, and faint colours. `None` if there
/// is no browser.
///
/// # Panics
///
/// Panics if the page can't be written or does not answer.
#[must_use]
pub fn faults(html: &str, width: u32, printed: bool, options: &[&str]) -> Option<Vec<String>> {
    let folder = tempfile::tempdir().expect("a folder for the page");
    let (page, frame) = (
        folder.path().join("page.html"),
        folder.path().join("frame.html"),
    );
    // A window has a minimum width, a frame has none. Printed pages are laid out by the rules for
    // paper.
    let html = match printed {
        true => html
            .replace("@media print", "@media all")
            .replace("@media screen", "@media speech"),
        false => html.to_owned(),
    };
    // Paper has no scroll bar.
    let bar = if printed { "none" } else { "auto" };
    let script = format!(
        "<style>html {{ scrollbar-width: {bar} }}</style><script>const printed = {printed};{LOOK}</script></body>"
    );
    let framed = format!(
        "<pre></pre><script>onmessage = told => document.querySelector('pre').textContent = told.data</script>\
         <iframe src=\"page.html\" width=\"{width}\" height=\"3000\" frameborder=\"0\"></iframe>"
    );
    fs::write(&page, html.replace("</body>", &script)).expect("the page is written");
    fs::write(&frame, framed).expect("its frame is written");
    let options: Vec<&str> = ["--dump-dom", "--virtual-time-budget=3000"]
        .into_iter()
        .chain(options.iter().copied())
        .collect();
    let shown = open(&frame, &options)?;
    let told = shown.dom.split_once("<pre>looked: ");
    let told = told.and_then(|(_, rest)| Some(rest.split_once("</pre>")?.0));
    let told = told.unwrap_or_else(|| panic!("no answer: {}\n{}", shown.dom, shown.log));
    let faults = told.lines().map(str::to_owned);
    Some(faults.filter(|fault| !fault.is_empty()).collect())
}
