//! Relative paths of a suite.

use std::path::{Path, PathBuf};

/// The path that a suite means: absolute paths as they are; relative ones from the suite's directory, or from the working directory if
/// nothing is at the first and something at the second.
///
/// ```
/// use std::path::Path;
/// use proctor_runner::suite::locate;
///
/// let exists = |path: &Path| path == Path::new("/srv/fixture");
/// assert_eq!(locate("fixture", Path::new("/suites"), Path::new("/srv"), &exists), Path::new("/srv/fixture"));
/// assert_eq!(locate("other", Path::new("/suites"), Path::new("/srv"), &exists), Path::new("/suites/other"));
/// ```
pub fn locate(
    written: &str,
    suite_directory: &Path,
    working_directory: &Path,
    exists: &dyn Fn(&Path) -> bool,
) -> PathBuf {
    // `join` with an absolute path is that path.
    let beside_suite = suite_directory.join(written);
    if exists(&beside_suite) {
        return beside_suite;
    }
    let below_working = working_directory.join(written);
    if exists(&below_working) { below_working } else { beside_suite }
}
