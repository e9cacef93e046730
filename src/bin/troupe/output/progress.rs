//! Bars of long work: on stderr, only on a terminal, and gone when the work is. Elsewhere nothing is drawn.
//!
//! ```ignore
//! let progress = Progress::beside_results("offsets read", Some(total)); // or Progress::of("written", None)
//! for record in records {
//!     progress.add(1);
//! }
//! ```

use std::io::{self, IsTerminal};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// Of a total that is known.
const BAR: &str = "{msg} [{bar:30}] {human_pos}/{human_len} ({per_sec}, {eta} left)";
/// Of work whose end is not known.
const COUNT: &str = "{msg} {spinner} {human_pos} ({per_sec}, {elapsed})";
/// Of waiting, where there is nothing to count.
const WAIT: &str = "{msg} {spinner} {elapsed}";
/// How often a spinner turns.
const TURN: Duration = Duration::from_millis(250);

/// How far a piece of work is. Its bar goes when it is dropped.
pub struct Progress(ProgressBar);

impl Progress {
    /// Of work that prints nothing until it is done, or all of it to a file. `what` is done, as in `offsets written`.
    pub fn of(what: &'static str, total: Option<u64>) -> Self {
        Self::drawn(ProgressDrawTarget::stderr(), what, total)
    }

    /// Of work that prints its results to stdout meanwhile: no bar where that is a terminal too, as both would tangle.
    pub fn beside_results(what: &'static str, total: Option<u64>) -> Self {
        let tangles = io::stdout().is_terminal();
        let target = if tangles { ProgressDrawTarget::hidden() } else { ProgressDrawTarget::stderr() };
        Self::drawn(target, what, total)
    }

    /// Of waiting: just what for, and since when.
    pub fn waiting(what: &'static str) -> Self {
        let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
        Self::styled(bar, what, WAIT)
    }

    fn drawn(target: ProgressDrawTarget, what: &'static str, total: Option<u64>) -> Self {
        let bar = ProgressBar::with_draw_target(total, target);
        Self::styled(bar, what, if total.is_some() { BAR } else { COUNT })
    }

    fn styled(bar: ProgressBar, what: &'static str, template: &str) -> Self {
        let style = ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar());
        bar.set_style(style.progress_chars("=> "));
        bar.set_message(what);
        if !bar.is_hidden() {
            bar.enable_steady_tick(TURN);
        }
        Self(bar)
    }

    /// So many more are done.
    pub fn add(&self, done: u64) {
        self.0.inc(done);
    }

    /// Shows from now on that it is about something else.
    pub fn show(&self, what: String) {
        self.0.set_message(what);
    }

    /// Prints to stderr with `say`, the bar out of the way meanwhile: warnings, notes.
    pub fn beside<R>(&self, say: impl FnOnce() -> R) -> R {
        self.0.suspend(say)
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use indicatif::TermLike;

    use super::*;

    /// A terminal that keeps what stands on its last line.
    #[derive(Clone, Debug, Default)]
    struct Line(Arc<Mutex<String>>);

    impl Line {
        fn bar(&self, what: &'static str, total: Option<u64>) -> Progress {
            Progress::drawn(ProgressDrawTarget::term_like(Box::new(self.clone())), what, total)
        }

        fn text(&self) -> String {
            self.0.lock().unwrap().trim_end().to_owned()
        }
    }

    impl TermLike for Line {
        fn width(&self) -> u16 {
            100
        }

        fn move_cursor_up(&self, _: usize) -> io::Result<()> {
            Ok(())
        }

        fn move_cursor_down(&self, _: usize) -> io::Result<()> {
            Ok(())
        }

        fn move_cursor_right(&self, _: usize) -> io::Result<()> {
            Ok(())
        }

        fn move_cursor_left(&self, _: usize) -> io::Result<()> {
            Ok(())
        }

        fn write_line(&self, text: &str) -> io::Result<()> {
            self.write_str(text)
        }

        fn write_str(&self, text: &str) -> io::Result<()> {
            self.0.lock().unwrap().push_str(text);
            Ok(())
        }

        fn clear_line(&self) -> io::Result<()> {
            self.0.lock().unwrap().clear();
            Ok(())
        }

        fn flush(&self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_bar_shows_how_far_the_work_is_and_goes_with_it() {
        let line = Line::default();
        let progress = line.bar("offsets written", Some(2_000));
        progress.add(999);
        progress.add(1);
        progress.0.force_draw();
        let shown = line.text();
        assert!(shown.starts_with("offsets written [===============>"), "{shown}");
        assert!(shown.contains("] 1,000/2,000 ("), "{shown}");
        drop(progress);
        assert_eq!(line.text(), "");
    }

    #[test]
    fn work_without_a_known_end_is_counted() {
        let line = Line::default();
        let progress = line.bar("records read", None);
        progress.add(1_234_567);
        progress.0.force_draw();
        assert!(line.text().starts_with("records read "), "{}", line.text());
        assert!(line.text().contains(" 1,234,567 ("), "{}", line.text());
    }

    #[test]
    fn what_it_is_about_may_change() {
        let line = Line::default();
        let progress = line.bar("members", None);
        progress.show("offsets".to_owned());
        progress.0.force_draw();
        assert!(line.text().starts_with("offsets "), "{}", line.text());
    }

    #[test]
    fn notes_do_not_tangle_with_the_bar() {
        let line = Line::default();
        let progress = line.bar("records read", Some(2));
        progress.0.force_draw();
        progress.beside(|| assert_eq!(line.text(), "", "the bar is out of the way"));
        assert!(line.text().starts_with("records read"), "{}", line.text());
    }

    #[test]
    fn nothing_is_drawn_without_a_terminal() {
        // whether the test's own stderr and stdout are terminals is not known: the rule is
        let beside = Progress::beside_results("records read", Some(2));
        assert_eq!(beside.0.is_hidden(), io::stdout().is_terminal() || !io::stderr().is_terminal());
        assert_eq!(Progress::waiting("members").0.is_hidden(), !io::stderr().is_terminal());
        assert!([BAR, COUNT, WAIT].iter().all(|style| ProgressStyle::with_template(style).is_ok()));
    }
}
