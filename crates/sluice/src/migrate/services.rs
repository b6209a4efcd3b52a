//! Postfix's `master.cf`: its services, and what `-o` sets for each.

use super::parameters::{Place, logical_lines};

/// A service.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Service {
    /// Where it stands.
    pub place: Place,
    /// `smtp`, `submission`, `127.0.0.1:10025`.
    pub name: String,
    /// `inet`, `unix`, `pass`.
    pub kind: String,
    /// The program.
    pub command: String,
    /// Settings of the service: place, parameter, value.
    pub options: Vec<(Place, String, String)>,
}

/// Reads the services; an invalid line is returned unchanged.
pub fn services(file: &str, text: &str) -> Vec<Result<Service, (Place, String)>> {
    logical_lines(file, text).into_iter().map(|(place, line)| service(&place, &line).ok_or((place, line))).collect()
}

fn service(place: &Place, line: &str) -> Option<Service> {
    let words = split(line);
    let mut words = words.into_iter();
    let (name, kind) = (words.next()?, words.next()?);
    let command = words.nth(5)?;
    let mut options = Vec::new();
    while let Some(word) = words.next() {
        let Some(option) = word.strip_prefix("-o") else { continue };
        let option = if option.is_empty() { words.next()? } else { option.to_owned() };
        let option = option.trim_start_matches('{').trim_end_matches('}');
        if let Some((name, value)) = option.split_once('=') {
            options.push((place.clone(), name.trim().to_owned(), value.trim().to_owned()));
        }
    }
    Some(Service { place: place.clone(), name, kind, command, options })
}

/// Words, of which one in braces may hold white space.
fn split(line: &str) -> Vec<String> {
    let (mut words, mut word, mut depth) = (Vec::new(), String::new(), 0usize);
    for letter in line.chars().chain([' ']) {
        match letter {
            '{' => depth += 1,
            '}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        match depth == 0 && letter.is_whitespace() {
            true => words.extend(Some(std::mem::take(&mut word)).filter(|word| !word.is_empty())),
            false => word.push(letter),
        }
    }
    words
}

/// The port of a service of the network, and its host if it has one.
pub fn endpoint(name: &str) -> Option<(Option<String>, u16)> {
    let (host, port) = match name.rsplit_once(':') {
        Some((host, port)) => (Some(host.trim_matches(['[', ']']).to_owned()).filter(|host| !host.is_empty()), port),
        None => (None, name),
    };
    let port = match port {
        "smtp" => 25,
        "smtps" | "submissions" | "urd" => 465,
        "submission" => 587,
        port => port.parse().ok()?,
    };
    Some((host, port))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn services_have_their_options() {
        let text = "# x\nsubmission inet n - y - - smtpd\n  -o smtpd_tls_security_level=encrypt\n  -o{ a = b c }\n#  -o x=y\n\
                    broken line\npickup unix n - y 60 1 pickup\n";
        let found = services("master.cf", text);
        let Ok(Service { name, kind, command, options, .. }) = &found[0] else { panic!("{found:?}") };
        assert_eq!((name.as_str(), kind.as_str(), command.as_str()), ("submission", "inet", "smtpd"));
        let options: Vec<_> = options.iter().map(|(_, name, value)| (name.as_str(), value.as_str())).collect();
        assert_eq!(options, [("smtpd_tls_security_level", "encrypt"), ("a", "b c")]);
        assert!(found[1].is_err() && found[2].is_ok());
    }

    #[test]
    fn services_of_the_network_have_a_port() {
        assert_eq!(endpoint("smtp"), Some((None, 25)));
        assert_eq!(endpoint("127.0.0.1:10025"), Some((Some("127.0.0.1".into()), 10_025)));
        assert_eq!(endpoint("[::1]:submission"), Some((Some("::1".into()), 587)));
        assert_eq!(endpoint("pickup"), None);
    }
}
