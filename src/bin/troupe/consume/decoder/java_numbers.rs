//! Numbers as `Float.toString` and `Double.toString` of Java 19 and later write them: the fewest digits that name it,
//! and an exponent outside of 0.001 to 10 000 000.

pub fn double(number: f64) -> String {
    java(number.abs(), format!("{number:e}"), number.to_string())
}

pub fn float(number: f32) -> String {
    java(number.abs().into(), format!("{number:e}"), number.to_string())
}

/// `scientific` and `plain` as Rust writes it.
fn java(size: f64, scientific: String, plain: String) -> String {
    if size.is_infinite() {
        return plain.replace("inf", "Infinity");
    }
    if size.is_nan() || size == 0.0 || (1e-3..1e7).contains(&size) {
        return if size.is_nan() || plain.contains('.') { plain } else { plain + ".0" };
    }
    match scientific.split_once('e') {
        Some((digits, exponent)) if !digits.contains('.') => format!("{digits}.0E{exponent}"),
        Some((digits, exponent)) => format!("{digits}E{exponent}"),
        None => scientific,
    }
}
