//! docs/RELIABILITY.md names tests; they exist.

use std::fs;
use std::path::{Path, PathBuf};

/// All Rust sources below a folder.
fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let hidden = path.file_name().is_some_and(|name| name.to_string_lossy().starts_with('.'));
        match path.is_dir() {
            true if hidden || path.ends_with("target") => {}
            true => sources(&path, found),
            false if path.extension().is_some_and(|extension| extension == "rs") => {
                found.push(path)
            }
            false => {}
        }
    }
}

#[test]
fn every_test_that_the_table_names_exists() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let mut files = Vec::new();
    sources(root, &mut files);
    let code: String = files.iter().map(|file| fs::read_to_string(file).unwrap()).collect();
    let table = fs::read_to_string(root.join("docs/RELIABILITY.md")).unwrap();
    let rows = table.lines().filter(|line| line.starts_with("| O-"));
    let tests = rows
        .flat_map(|row| row.rsplit_terminator('|').next().unwrap().split('`').skip(1).step_by(2));
    let tests: Vec<&str> = tests.filter(|name| !name.starts_with('.')).collect();
    assert!(tests.len() > 30, "{tests:?}");
    for name in tests {
        // Macros make some tests of their names, without `fn`.
        let there =
            code.contains(&format!("fn {name}(")) || code.contains(&format!("    {name}: "));
        assert!(there, "no test is called {name}");
    }
}
