//! Functions about PDF attachments: the plugin PDFInfo.
//!
//! What is read is what stands uncompressed in the file ([`facts`]). Left out: addresses in PDFs are not among those of the
//! mail, tags (`_PDF..._`), and with `rawbody` the length of the text is that of `body`.

mod facts;

pub use facts::Facts;

use super::{Arguments, Context, Function, look, truth};

/// The functions.
pub(super) const FUNCTIONS: &[Function] = &[
    look("pdf_count", |context, arguments| within(arguments, Some(f64::from(of(context).count)))),
    look("pdf_image_count", |context, arguments| within(arguments, Some(f64::from(of(context).images)))),
    look("pdf_pixel_coverage", |context, arguments| within(arguments, of(context).area)),
    look("pdf_image_to_text_ratio", text_ratio),
    look("pdf_image_size_exact", |context, arguments| {
        let size = (arguments.text(0).to_string(), arguments.text(1).to_string());
        truth(arguments.len() > 1 && of(context).sizes.contains(&size))
    }),
    look("pdf_image_size_range", size_in_range),
    look("pdf_named", |context, arguments| {
        truth(of(context).names.iter().any(|name| arguments.get(0) == Some(&**name)))
    }),
    look("pdf_name_regex", |context, arguments| any_matches(context, arguments, 0, &of(context).names)),
    look("pdf_match_md5", |context, arguments| has_digest(&of(context).digests, arguments)),
    look("pdf_match_fuzzy_md5", |context, arguments| has_digest(&of(context).fuzzy_digests, arguments)),
    look("pdf_match_details", |context, arguments| {
        let details = of(context).details.get(arguments.text(0));
        details.map_or(0.0, |details| any_matches(context, arguments, 1, details))
    }),
    look("pdf_is_encrypted", |context, _| truth(of(context).is_encrypted)),
    look("pdf_is_empty_body", is_empty_body),
];

/// Functions whose arguments are expressions in their delimiters.
pub(super) const TAKES_EXPRESSION: [&str; 2] = ["pdf_name_regex", "pdf_match_details"];

fn of<'c>(context: &'c Context<'_>) -> &'c Facts {
    context.pdf.get_or_init(|| Facts::of(context.mail))
}

/// Whether a value is within the bounds of a call, the second of which may be missing.
fn within(arguments: &Arguments<'_>, value: Option<f64>) -> f64 {
    let Some(value) = value.filter(|_| !arguments.is_empty()) else { return 0.0 };
    truth(value >= arguments.number(0) && (arguments.len() < 2 || value <= arguments.number(1)))
}

fn text_ratio(context: &Context<'_>, arguments: &Arguments<'_>) -> f64 {
    let Some(area) = of(context).area.filter(|_| arguments.len() > 1) else { return 0.0 };
    let bytes: usize = context.mail.body().iter().map(|line| line.len()).sum();
    let ratio = bytes as f64 / area;
    truth(bytes > 0 && ratio >= arguments.number(0) && ratio < arguments.number(1))
}

fn size_in_range(context: &Context<'_>, arguments: &Arguments<'_>) -> f64 {
    let number = |text: &str| text.parse::<f64>().unwrap_or(0.0);
    let most = |place: usize| if arguments.len() > place { arguments.number(place) } else { f64::INFINITY };
    let fits = |(height, width): &(String, String)| {
        let (height, width) = (number(height), number(width));
        (arguments.number(0)..=most(2)).contains(&height) && (arguments.number(1)..=most(3)).contains(&width)
    };
    truth(arguments.len() > 1 && of(context).sizes.iter().any(fits))
}

fn any_matches(context: &Context<'_>, arguments: &Arguments<'_>, place: usize, texts: &[Box<[u8]>]) -> f64 {
    let Some(expression) = arguments.expression(place) else { return 0.0 };
    truth(texts.iter().any(|text| context.matches(expression, text)))
}

fn has_digest(digests: &[String], arguments: &Arguments<'_>) -> f64 {
    let wanted = arguments.text(0).to_ascii_lowercase();
    truth(digests.contains(&wanted))
}

/// Whether a mail with a PDF has no more text than so many bytes, the subject not counted.
fn is_empty_body(context: &Context<'_>, arguments: &Arguments<'_>) -> f64 {
    let lines = context.mail.body().iter().skip(1).filter(|line| !line.trim_ascii().is_empty());
    let bytes: usize = lines.map(|line| line.len()).sum();
    truth(of(context).count > 0 && bytes as f64 <= arguments.number(0))
}

#[cfg(test)]
mod tests {
    use crate::spam::message::{Message, MessageLimits};
    use crate::spam::run::{Engine, EngineOptions, Expressions, Scratch};
    use crate::spam::{File, Limits, Loader, Options};

    /// Functions that hit a mail with this file.
    fn hits(calls: &[&str], pdf: &str) -> Vec<String> {
        let rules = calls.iter().enumerate().map(|(number, call)| format!("body R{number} eval:{call}\n"));
        let text = "loadplugin Mail::SpamAssassin::Plugin::PDFInfo\n".to_string() + &rules.collect::<String>();
        let options = Options { default_plugins: true, local_tests_only: true, ..Options::default() };
        let mut loader = Loader::new(options, Limits::default());
        loader.read(&File { name: "a.cf".into(), bytes: text.into() }, &mut |_, name| Err(name.into()));
        let engine = Engine::new(loader.finish(&Expressions), EngineOptions::default());
        assert_eq!(engine.rules().errors(), 0, "{:?}", engine.rules().problems());
        let mail = format!("Subject: x\nContent-Type: application/octet-stream; name=\"A.pdf\"\n\n{pdf}");
        let mail = Message::read(mail.as_bytes(), engine.reading(), &MessageLimits::default());
        let outcome = engine.check(&mail, 0, false, &mut Scratch::default());
        outcome.hits.iter().map(|hit| engine.rules().names()[hit.rule as usize].name.to_string()).collect()
    }

    #[test]
    fn functions_look_at_the_files_that_are_called_pdf() {
        let pdf = "%PDF-1.4\n<</Producer(GPL Ghostscript 8.15)\n/Subtype/Image\n630 0 0 149 0 0 cm\n/Encrypt 5 0 R\n";
        let calls = [
            "pdf_count(1)",
            "pdf_image_count(1,1)",
            "pdf_pixel_coverage(90000,94000)",
            "pdf_image_size_exact(149,630)",
            "pdf_image_size_range(100,450,240,800)",
            "pdf_named('A.pdf')",
            "pdf_name_regex('/^a\\.pdf$/i')",
            "pdf_match_details('producer','/^gpl ghostscript/i')",
            "pdf_is_encrypted()",
            "pdf_is_empty_body()",
            "pdf_count(2)",
            "pdf_image_size_exact(630,149)",
            "pdf_match_details('title','/./')",
            "pdf_match_md5('00000000000000000000000000000000')",
            "pdf_image_to_text_ratio(0.1,0.2)",
        ];
        let expected: Vec<String> = (0..10).map(|number| format!("R{number}")).collect();
        assert_eq!(hits(&calls, pdf), expected);
        assert_eq!(hits(&calls, "no mark"), ["R0", "R9"]);
    }
}
