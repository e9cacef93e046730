//! The macro behind the table of properties.

/// Declares every property once.
///
/// Makes the fields of `ConsumerConfig`, the builder and its setters, and the `TABLE` that properties are
/// read by. A default is the text of a value; after `=>` stands, if it is a rule, an expression over the
/// properties above it.
macro_rules! declare {
    (
        acted_on { $(
            $field:ident: $ty:ty $(, set by $given:ty)? {
                $key:literal, $unit:literal, default $default:literal $(=> $rule:expr)?
                $(, check $check:expr)?;
                $about:literal
            }
        )+ }
        not_acted_on { $( $other:literal: $other_ty:ty, $other_unit:literal, default $other_default:literal; $other_about:literal )+ }
    ) => {
        /// A consumer's configuration, checked as a whole.
        ///
        /// Made by [`ConsumerConfig::builder`], [`ConsumerConfig::from_properties`] or
        /// [`ConsumerConfig::from_pairs`].
        #[derive(Clone, Debug, PartialEq, Eq)]
        #[non_exhaustive]
        pub struct ConsumerConfig { $(
            #[doc = describe!($key, $unit, $default, $about)]
            pub $field: $ty,
        )+ }

        /// Collects settings, typed or as properties, for a [`ConsumerConfig`]. Mistakes are kept until
        /// `build`.
        #[derive(Clone, Debug, Default)]
        pub struct ConsumerConfigBuilder {
            $( $field: Option<$ty>, )+
            pub(super) problems: Vec<ConfigError>,
            pub(super) notices: Vec<PropertyNotice>,
            pub(super) strict: bool,
        }

        impl ConsumerConfigBuilder {
            $(
                #[doc = describe!($key, $unit, $default, $about)]
                pub fn $field(mut self, value: impl TryInto<first!($($given,)? $ty), Error: Display>) -> Self {
                    match given::<first!($($given,)? $ty), _>(value) {
                        Ok(value) => {
                            self.$field = Some(value.into());
                        }
                        Err(why) => self.problems.push(ConfigError::invalid($key, why)),
                    }
                    self
                }
            )+

            /// Fills in the defaults and checks each property by itself.
            pub(super) fn resolve(self) -> (ConsumerConfig, Vec<ConfigError>) {
                let mut problems = self.problems;
                $(
                    let $field: $ty = match self.$field {
                        Some(value) => {
                            $( problems.extend($check(&value).err().map(|why| ConfigError::invalid($key, why))); )?
                            value
                        }
                        None => {
                            let refused = problems.iter().any(|problem| problem.property() == Some($key));
                            if $default == REQUIRED && !refused {
                                problems.push(ConfigError::Missing { property: $key });
                            }
                            default!($default $(, $rule)?)
                        }
                    };
                )+
                (ConsumerConfig { $($field),+ }, problems)
            }
        }

        pub(super) const TABLE: &[Property] = &[
            $( Property {
                key: $key, unit: $unit, default: $default, about: $about,
                effect: Effect::Full,
                set: |builder, text| {
                    builder.$field = Some(PropertyValue::parse(text)?);
                    Ok(())
                },
            }, )+
            $( Property {
                key: $other, unit: $other_unit, default: $other_default, about: $other_about,
                effect: Effect::None,
                set: |_, text| <$other_ty>::parse(text).map(|_| ()),
            }, )+
        ];
    };
}

macro_rules! first {
    ($first:ty $(, $rest:ty)*) => {
        $first
    };
}

macro_rules! default {
    ($text:literal) => {
        parse_default($text)
    };
    ($text:literal, $rule:expr) => {
        $rule
    };
}

macro_rules! describe {
    ($key:literal, $unit:literal, $default:literal, $about:literal) => {
        concat!($about, "\n\nProperty `", $key, "` (", $unit, "), default: ", $default, ".")
    };
}

pub(super) use {declare, default, describe, first};
