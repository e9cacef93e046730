//! Values that are printed nowhere.

use std::borrow::Cow;

/// What stands in the place of a secret.
pub(super) const HIDDEN: &str = "[hidden]";

/// Whether a property's value is a secret, by its name: passwords, JAAS configurations, keys and tokens.
pub(super) fn is_secret(key: &str) -> bool {
    let key = key.to_ascii_lowercase();
    let words = [
        "pass",
        "pwd",
        "secret",
        "token",
        "credential",
        "jaas",
        "loginmodule",
        "digest",
        "auth.info",
        "user.info",
    ];
    let ends =
        ["keystore.key", "private.key", "api.key", "apikey", "api_key", "access.key", "accesskey", ".auth"];
    words.iter().any(|word| key.contains(word)) || ends.iter().any(|end| key.ends_with(end))
}

/// Whether a text sets a secret, as `username="u" password="p"` does: what is left of a JAAS configuration whose line
/// lacks the backslash at its end. A `:` sets something beside a quote or a space only, for it stands in `host:port` too.
pub(super) fn sets_a_secret(text: &str) -> bool {
    let is_quote = |c: char| c.is_whitespace() || matches!(c, '"' | '\'' | '\\');
    text.match_indices(['=', ':']).any(|(at, sign)| {
        let (before, after) = (&text[..at], &text[at + 1..]);
        let sets = sign == "=" || before.ends_with(is_quote) || after.starts_with(is_quote);
        let before = before.trim_end_matches(is_quote);
        let of_a_name = |c: char| c.is_alphanumeric() || matches!(c, '.' | '_' | '-');
        let name = before.rsplit(|c: char| !of_a_name(c)).next().unwrap_or_default();
        // `user_alice="..."` is how Kafka's PlainLoginModule is told the password of alice
        sets && (is_secret(name) || name.starts_with("user_"))
    })
}

/// Why a value does not do, without the value where that [sets a secret](sets_a_secret).
pub(super) fn unless_secret(value: &str, why: String) -> String {
    match sets_a_secret(value) {
        true => format!("{HIDDEN}: it sets a secret, as a line of a JAAS configuration does"),
        false => why,
    }
}

/// A value, such as a list of servers, as it may be shown: what stands before an `@`, as in `user:password@host`, is
/// hidden, and all of it where it [sets a secret](sets_a_secret).
pub(crate) fn without_credentials(value: &str) -> Cow<'_, str> {
    if sets_a_secret(value) {
        return Cow::Borrowed(HIDDEN);
    }
    if !value.contains('@') {
        return Cow::Borrowed(value);
    }
    let shown = value.split(',').map(|entry| match entry.rsplit_once('@') {
        Some((_, host)) => format!("{HIDDEN}@{host}"),
        None => entry.to_owned(),
    });
    Cow::Owned(shown.collect::<Vec<_>>().join(","))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_known_by_their_names() {
        for key in [
            "password",
            "ssl.key.password",
            "sasl.jaas.config",
            "SSL.KeyStore.Password",
            "zookeeper.auth.digest",
            "zookeeper.auth",
            "basic.auth.user.info",
            "truststore.pass",
            "pasword.pwd",
            "org.apache.kafka.common.security.plain.PlainLoginModule",
        ] {
            assert!(is_secret(key), "{key}");
        }
        for key in ["group.id", "zookeeper.connect", "key.separator", "ssl.truststore.location"] {
            assert!(!is_secret(key), "{key}");
        }
    }

    #[test]
    fn what_stands_before_a_host_is_hidden() {
        assert_eq!(without_credentials("a:1,b:2/kafka"), "a:1,b:2/kafka");
        assert_eq!(without_credentials("u:p@ss@a:1,b:2"), "[hidden]@a:1,b:2");
    }

    #[test]
    fn a_value_that_sets_a_secret_is_hidden_as_a_whole() {
        for value in [
            r#""u" \ password="x";"#,
            r#"required username="u" password="x";"#,
            "a Password = x",
            "passwd=x",
            "clientSecret='x'",
            r#"{"user": "u", "password":"x"}"#,
            "password: x",
            r#"required user_alice="x""#,
            "https://h/?a=b&access_token=x",
            r#"org.x.ScramLoginModule required password="x";"#,
        ] {
            assert_eq!(without_credentials(value), HIDDEN, "{value}");
        }
        for value in
            ["passport:2181,token-service:2181/pass", "a=b", "byte-passing", "org.x.Assignor", "x:y=z"]
        {
            assert_eq!(without_credentials(value), value);
        }
    }
}
