//! The language of our own pages: English, German, French, Spanish or Chinese, as `Accept-Language` asks (RFC 9110, section 12.5.4).
//!
//! Sentences are looked up in a table by their English; one that the table lacks, as a text of the operator's or of the lists, stays.

use proto::http::Fields;

/// Languages of a client that are looked at.
const RANGES_MAX: usize = 32;

/// A language of our own pages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Language {
    #[default]
    English,
    German,
    French,
    Spanish,
    Chinese,
}

impl Language {
    /// The one that a client likes best.
    pub fn of(fields: &Fields) -> Language {
        let ranges = fields.elements("accept-language").take(RANGES_MAX).filter_map(range);
        // Of several that it likes the same, the first.
        let best = ranges.reduce(|best, next| if next.1 > best.1 { next } else { best });
        best.map(|(language, _)| language).unwrap_or_default()
    }

    /// The tag of the language (RFC 5646).
    pub const fn tag(self) -> &'static str {
        match self {
            Language::English => "en",
            Language::German => "de",
            Language::French => "fr",
            Language::Spanish => "es",
            Language::Chinese => "zh",
        }
    }

    fn of_tag(tag: &[u8]) -> Option<Language> {
        let primary = tag.split(|&byte| byte == b'-').next()?;
        let all = [Language::English, Language::German, Language::French, Language::Spanish, Language::Chinese];
        all.into_iter().find(|language| language.tag().as_bytes().eq_ignore_ascii_case(primary))
    }

    /// A sentence of ours in this language. A name or an address may follow behind a colon.
    pub fn say(self, text: &str) -> String {
        let column = match self {
            Language::English => return text.into(),
            Language::German => 1,
            Language::French => 2,
            Language::Spanish => 3,
            Language::Chinese => 4,
        };
        let mut known = SENTENCES.iter().filter_map(|row| Some((row, text.strip_prefix(row[0])?)));
        let known = known.find(|(row, rest)| rest.is_empty() || row[0].ends_with(": "));
        known.map_or_else(|| text.into(), |(row, rest)| [row[column], rest].concat())
    }
}

/// A language that we have and its weight, in thousandths; none of weight 0.
fn range(element: &[u8]) -> Option<(Language, u32)> {
    let mut parts = element.split(|&byte| byte == b';').map(<[u8]>::trim_ascii);
    let language = Language::of_tag(parts.next()?)?;
    let weight = parts.find_map(|part| part.strip_prefix(b"q=").or(part.strip_prefix(b"Q=")));
    let weight = match weight {
        None => 1000,
        Some(text) => {
            let value: f32 = std::str::from_utf8(text).ok()?.parse().ok()?;
            (value.clamp(0.0, 1.0) * 1000.0) as u32
        }
    };
    (weight > 0).then_some((language, weight))
}

/// Sentences: English, German, French, Spanish, Chinese.
const SENTENCES: &[[&str; 5]] = &[
    ["Blocked", "Gesperrt", "Bloqué", "Bloqueado", "已阻止"],
    ["Not available", "Nicht verfügbar", "Indisponible", "No disponible", "无法访问"],
    ["Reference: ", "Kennung: ", "Référence : ", "Referencia: ", "编号："],
    ["Continue all the same", "Trotzdem fortfahren", "Continuer quand même", "Continuar de todos modos", "仍然继续"],
    [
        "This was found in it: ",
        "Darin wurde gefunden: ",
        "Contenu détecté : ",
        "Se ha encontrado en el contenido: ",
        "其中发现：",
    ],
    [
        "Something was found in it that is not let through.",
        "Darin wurde etwas gefunden, das nicht durchgelassen wird.",
        "Un contenu qui n'est pas autorisé y a été détecté.",
        "Se ha encontrado en el contenido algo que no se permite.",
        "其中发现了不允许通过的内容。",
    ],
    [
        "The content could not be inspected now. Try again later.",
        "Der Inhalt konnte jetzt nicht geprüft werden. Versuchen Sie es später noch einmal.",
        "Le contenu n'a pas pu être analysé. Réessayez plus tard.",
        "No se ha podido analizar el contenido. Inténtelo más tarde.",
        "目前无法检查该内容，请稍后再试。",
    ],
    [
        "The site is blocked: ",
        "Die Site ist gesperrt: ",
        "Le site est bloqué : ",
        "El sitio está bloqueado: ",
        "该网站已被阻止：",
    ],
    [
        "The URL is blocked: ",
        "Die Adresse ist gesperrt: ",
        "L'adresse est bloquée : ",
        "La dirección está bloqueada: ",
        "该网址已被阻止：",
    ],
    [
        "The URL matches a banned expression.",
        "Die Adresse passt auf einen gesperrten Ausdruck.",
        "L'adresse correspond à une expression interdite.",
        "La dirección coincide con una expresión prohibida.",
        "该网址符合被禁止的规则。",
    ],
    [
        "Search terms are blocked: ",
        "Diese Suchbegriffe sind gesperrt: ",
        "Ces termes de recherche sont bloqués : ",
        "Estos términos de búsqueda están bloqueados: ",
        "搜索词已被阻止：",
    ],
    [
        "The type is blocked: ",
        "Dieser Typ ist gesperrt: ",
        "Ce type est bloqué : ",
        "Este tipo está bloqueado: ",
        "该类型已被阻止：",
    ],
    [
        "The extension is blocked: ",
        "Diese Dateiendung ist gesperrt: ",
        "Cette extension est bloquée : ",
        "Esta extensión está bloqueada: ",
        "该扩展名已被阻止：",
    ],
    [
        "A banned phrase was found.",
        "Ein gesperrter Ausdruck wurde gefunden.",
        "Une expression interdite a été trouvée.",
        "Se ha encontrado una expresión prohibida.",
        "发现了禁用的词语。",
    ],
    [
        "Phrases that are banned together were found.",
        "Ausdrücke wurden gefunden, die zusammen gesperrt sind.",
        "Des expressions interdites ensemble ont été trouvées.",
        "Se han encontrado expresiones que están prohibidas juntas.",
        "发现了同时出现时禁用的词语。",
    ],
    [
        "The points of phrases are above the limit.",
        "Die Ausdrücke der Seite überschreiten die Grenze.",
        "Les expressions de la page dépassent la limite.",
        "Las expresiones de la página superan el límite.",
        "页面中的词语超过限制。",
    ],
    [
        "The address may not browse: ",
        "Von dieser Adresse darf nicht gesurft werden: ",
        "La navigation n'est pas permise depuis cette adresse : ",
        "No se permite navegar desde esta dirección: ",
        "该地址不允许上网：",
    ],
    [
        "A login is needed.",
        "Eine Anmeldung ist nötig.",
        "Une connexion est nécessaire.",
        "Es necesario iniciar sesión.",
        "需要登录。",
    ],
    [
        "The name or the password is wrong.",
        "Name oder Passwort ist falsch.",
        "Le nom ou le mot de passe est incorrect.",
        "El nombre o la contraseña no es correcto.",
        "用户名或密码错误。",
    ],
    [
        "Logins cannot be checked now. Try again later.",
        "Anmeldungen können jetzt nicht geprüft werden. Versuchen Sie es später noch einmal.",
        "Les connexions ne peuvent pas être vérifiées. Réessayez plus tard.",
        "Ahora no se puede comprobar el inicio de sesión. Inténtelo más tarde.",
        "目前无法验证登录，请稍后再试。",
    ],
    [
        "The name of the server has no address.",
        "Der Name des Servers hat keine Adresse.",
        "Le nom du serveur n'a pas d'adresse.",
        "El nombre del servidor no tiene dirección.",
        "找不到该服务器的地址。",
    ],
    [
        "The name of the server cannot be looked up now. Try again later.",
        "Der Name des Servers kann jetzt nicht aufgelöst werden. Versuchen Sie es später noch einmal.",
        "Le nom du serveur ne peut pas être résolu pour le moment. Réessayez plus tard.",
        "El nombre del servidor no se puede resolver ahora. Inténtelo más tarde.",
        "目前无法解析该服务器的名称，请稍后再试。",
    ],
    [
        "Access to this server or port is not allowed.",
        "Dieser Server oder Port darf von hier aus nicht aufgerufen werden.",
        "L'accès à ce serveur ou à ce port n'est pas permis depuis ici.",
        "Desde aquí no se permite acceder a este servidor o puerto.",
        "不允许从这里访问该服务器或端口。",
    ],
    [
        "The server does not answer.",
        "Der Server antwortet nicht.",
        "Le serveur ne répond pas.",
        "El servidor no responde.",
        "服务器没有响应。",
    ],
    [
        "The server takes too long.",
        "Der Server braucht zu lange.",
        "Le serveur met trop de temps à répondre.",
        "El servidor tarda demasiado.",
        "服务器响应超时。",
    ],
    [
        "The server has ended the connection without an answer.",
        "Der Server hat die Verbindung ohne Antwort beendet.",
        "Le serveur a fermé la connexion sans répondre.",
        "El servidor ha cerrado la conexión sin responder.",
        "服务器未响应就关闭了连接。",
    ],
    [
        "The server has sent a malformed or ambiguous answer.",
        "Der Server hat eine fehlerhafte oder mehrdeutige Antwort gesendet.",
        "Le serveur a envoyé une réponse incorrecte ou ambiguë.",
        "El servidor ha enviado una respuesta incorrecta o ambigua.",
        "服务器发送了错误或含糊的响应。",
    ],
    [
        "The content is in a coding that is not known here.",
        "Der Inhalt ist in einer hier unbekannten Kodierung.",
        "Le contenu est dans un codage inconnu ici.",
        "El contenido está en una codificación desconocida.",
        "内容使用了未知的编码。",
    ],
    [
        "The TLS handshake with the server has failed.",
        "Mit dem Server ist keine TLS-Verbindung möglich.",
        "Aucune connexion TLS n'est possible avec le serveur.",
        "No es posible una conexión TLS con el servidor.",
        "无法与服务器建立 TLS 连接。",
    ],
    [
        "The certificate of the server cannot be verified.",
        "Der Server weist sich nicht als der gewünschte aus.",
        "Le serveur ne prouve pas qu'il est celui qui a été demandé.",
        "El servidor no demuestra que es el solicitado.",
        "服务器无法证明其身份。",
    ],
    [
        "The proxy ahead does not let it through.",
        "Der vorgeschaltete Proxy lässt es nicht durch.",
        "Le proxy en amont ne le laisse pas passer.",
        "El proxy superior no lo deja pasar.",
        "上级代理不允许通过。",
    ],
    [
        "The request was changed to one that is not allowed.",
        "Die Anfrage wurde in eine geändert, die nicht erlaubt ist.",
        "La demande a été changée en une demande qui n'est pas autorisée.",
        "La petición fue cambiada por otra que no está permitida.",
        "请求被改成了不允许的请求。",
    ],
];

#[cfg(test)]
mod tests {
    use super::*;

    fn of(value: &str) -> &'static str {
        let mut fields = Fields::default();
        fields.push("Accept-Language", value.as_bytes());
        Language::of(&fields).tag()
    }

    #[test]
    fn the_language_is_the_one_that_the_client_likes_best() {
        assert_eq!(["de-AT, en;q=0.9", "en;q=0.5, FR;q=0.8", "zh-Hant-TW", "es"].map(of), ["de", "fr", "zh", "es"]);
        assert_eq!(["", "pt, it;q=0.5", "de;q=0", "de;q=x", "deu", "*"].map(of), ["en"; 6]);
        assert_eq!(["pt, de;q=0.3", "en, de", "de;q=-1, fr;q=0.1"].map(of), ["de", "en", "fr"]);
        assert_eq!(Language::of(&Fields::default()), Language::English);
    }

    #[test]
    fn each_sentence_is_there_in_each_language() {
        for row in SENTENCES {
            assert!(row.iter().all(|text| !text.is_empty()), "{row:?}");
            assert_eq!(row.iter().filter(|text| text.ends_with('.')).count() % 4, 0, "{row:?}");
        }
        assert_eq!(Language::German.say("This was found in it: Blocked."), "Darin wurde gefunden: Blocked.");
        assert_eq!(Language::French.say("A text of the operator's"), "A text of the operator's");
        assert_eq!(Language::Chinese.say("Blocked for reasons"), "Blocked for reasons");
    }
}
