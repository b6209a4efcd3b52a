//! Makes pages safe, for `ci/webmail_browser.mjs`: a list of texts as JSON comes in, a list of what they come to goes out.

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let pages: Vec<String> = serde_json::from_reader(std::io::stdin().lock())?;
    let safe: Vec<String> = pages.iter().map(|page| webmail::sanitise(page, &mut |_| None).html).collect();
    serde_json::to_writer(std::io::stdout().lock(), &safe)?;
    Ok(())
}
