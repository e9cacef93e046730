use super::*;

fn layout(given: &[(&str, &str)]) -> Result<(Layout, Vec<String>), String> {
    let mut layout = Layout::default();
    let mut rest = Vec::new();
    for (key, value) in given {
        if !layout.set(key, value)? {
            rest.push((*key).to_owned());
        }
    }
    Ok((layout, rest))
}

#[test]
fn a_formatter_takes_its_own_properties_only() {
    let (layout, rest) =
        layout(&[("print.key", " TRUE "), ("auto.commit.enable", "false"), ("key.separator", "|")]).unwrap();
    assert!(layout.key && layout.value && !layout.offset);
    assert_eq!((layout.separator.as_str(), rest), ("|", vec!["auto.commit.enable".to_owned()]));
}

#[test]
fn a_flag_must_be_true_or_false() {
    let error = layout(&[("print.key", "yes")]).err().unwrap();
    assert_eq!(error, "print.key: must be true or false, not `yes`");
}

#[test]
fn formatters_are_known_by_our_names_and_by_kafkas() {
    for name in [
        "default",
        "hex",
        "kafka.consumer.ChecksumMessageFormatter",
        "kafka.tools.DefaultMessageFormatter",
        "org.apache.kafka.tools.consumer.LoggingMessageFormatter",
        "kafka.tools.NoOpMessageFormatter",
        "kafka.coordinator.group.GroupMetadataManager$OffsetsMessageFormatter",
        r"kafka.coordinator.GroupMetadataManager\$OffsetsMessageFormatter",
        "kafka.server.OffsetManager$OffsetsMessageFormatter",
        "kafka.coordinator.group.GroupMetadataManager$GroupMetadataMessageFormatter",
    ] {
        assert!(named(name, Layout::default()).is_ok(), "{name}");
    }
    let error = named("com.example.OurFormatter", Layout::default()).err().unwrap();
    assert!(
        error.starts_with("no formatter `com.example.OurFormatter`; there are default, logging, no-op"),
        "{error}"
    );
    assert!(named("kafka.tools.json", Layout::default()).is_err());
}
