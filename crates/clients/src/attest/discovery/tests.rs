use proptest::prelude::*;
use tempfile::TempDir;

use super::*;

/// Content of a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Absent,
    Folder,
    NotExecutable,
    Program,
}

/// Files beside a cached engine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Marker {
    Absent,
    Folder,
    Other,
    Wanted,
}

struct World {
    root: TempDir,
    variable: Option<OsString>,
    path: Option<OsString>,
}

impl World {
    fn new() -> World {
        let root = tempfile::tempdir().unwrap();
        for folder in ["home/.attest/bin", "here/bin", "first", "second"] {
            fs::create_dir_all(root.path().join(folder)).unwrap();
        }
        let path = std::env::join_paths([root.path().join("first"), root.path().join("second")]).unwrap();
        World { root, variable: None, path: Some(path) }
    }

    fn at(&self, path: &str) -> PathBuf {
        self.root.path().join(path)
    }

    fn put(&self, path: &str, state: State) {
        let path = self.at(path);
        match state {
            State::Absent => {}
            State::Folder => fs::create_dir(&path).unwrap(),
            State::NotExecutable | State::Program => {
                fs::write(&path, "#!").unwrap();
                let mode = if state == State::Program { 0o755 } else { 0o644 };
                fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
            }
        }
    }

    fn mark(&self, marker: Marker) {
        let path = self.at("home/.attest/bin/.engine-version");
        match marker {
            Marker::Absent => {}
            Marker::Folder => fs::create_dir(path).unwrap(),
            Marker::Other => fs::write(path, "0.5.0\n").unwrap(),
            Marker::Wanted => fs::write(path, "0.9.0\n").unwrap(),
        }
    }

    fn discovery(&self) -> Discovery<impl Fn(&str) -> Option<OsString>> {
        let variable = self.variable.clone();
        Discovery::new(
            move |name| (name == "ATTEST_ENGINE_PATH").then(|| variable.clone()).flatten(),
            Some(self.at("home")),
            self.at("here"),
            self.path.clone(),
        )
    }
}

fn state() -> impl Strategy<Value = State> {
    prop_oneof![Just(State::Absent), Just(State::Folder), Just(State::NotExecutable), Just(State::Program)]
}

fn marker() -> impl Strategy<Value = Marker> {
    prop_oneof![Just(Marker::Absent), Just(Marker::Folder), Just(Marker::Other), Just(Marker::Wanted)]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// The first place that does is taken; if none does, all are told.
    #[test]
    fn the_chain_is_followed_in_order(
        variable in proptest::option::of(state()),
        first in state(),
        second in state(),
        cached in state(),
        marker in marker(),
        local in state(),
    ) {
        let mut world = World::new();
        if let Some(state) = variable {
            world.put("chosen", state);
            world.variable = Some(world.at("chosen").into());
        }
        world.put("first/attest-engine", first);
        world.put("second/attest-engine", second);
        world.put("home/.attest/bin/attest-engine", cached);
        world.mark(marker);
        world.put("here/bin/attest-engine", local);

        let chain = [
            (Location::Variable, "chosen", variable == Some(State::Program)),
            (Location::SearchPath, "first/attest-engine", first == State::Program),
            (Location::SearchPath, "second/attest-engine", second == State::Program),
            (
                Location::Cache,
                "home/.attest/bin/attest-engine",
                cached == State::Program && marker == Marker::Wanted,
            ),
            (Location::Local, "here/bin/attest-engine", local == State::Program),
        ];
        let ends = if variable.is_some() { 1 } else { chain.len() };
        let expected = chain.iter().take(ends).find(|(_, _, does)| *does);
        match (world.discovery().find(), expected) {
            (Ok(found), Some((place, path, _))) => {
                prop_assert_eq!(found, Found { path: world.at(path), location: *place });
            }
            (Err(error), None) => {
                let places: Vec<_> = error.rejected.iter().map(|looked| looked.location).collect();
                let all: Vec<_> = chain.iter().take(ends).map(|(place, _, _)| *place).collect();
                prop_assert_eq!(places, all);
                prop_assert_eq!(error.to_string().lines().count(), 1 + ends);
            }
            (found, expected) => prop_assert!(false, "{:?} instead of {:?}", found, expected),
        }
    }
}

#[test]
fn the_error_tells_every_place_and_why_it_did_not_do() {
    let world = World::new();
    world.put("first/attest-engine", State::Folder);
    world.put("second/attest-engine", State::NotExecutable);
    world.put("home/.attest/bin/attest-engine", State::Program);
    world.mark(Marker::Other);
    let text = world.discovery().find().unwrap_err().to_string();
    let text = text.replace(&world.root.path().display().to_string(), "");
    assert_eq!(
        text,
        "no Attest engine was found: install one, or set `ATTEST_ENGINE_PATH` to it; looked at:\n  \
         the variable `ATTEST_ENGINE_PATH` is not set\n  \
         `PATH`: `/first/attest-engine` is not a file\n  \
         `PATH`: `/second/attest-engine` may not be executed\n  \
         the cache `~/.attest/bin`: `/home/.attest/bin/attest-engine` is of version `0.5.0`, wanted is `0.9.0`\n  \
         the folder `./bin`: `/here/bin/attest-engine` does not exist"
    );
}

#[test]
fn a_wrong_variable_is_an_error_even_if_another_engine_exists() {
    let mut world = World::new();
    world.put("first/attest-engine", State::Program);
    world.variable = Some("nowhere".into());
    let error = world.discovery().find().unwrap_err();
    assert_eq!(
        error.rejected,
        [Rejected {
            location: Location::Variable,
            path: Some(world.at("here/nowhere")),
            problem: RejectReason::Missing
        }]
    );
}

#[test]
fn an_empty_variable_is_no_choice() {
    let mut world = World::new();
    world.put("second/attest-engine", State::Program);
    world.variable = Some(OsString::new());
    assert_eq!(world.discovery().find().unwrap().path, world.at("second/attest-engine"));
}

#[test]
fn relative_paths_start_from_the_current_folder() {
    let mut world = World::new();
    world.put("here/engine", State::Program);
    world.variable = Some("./engine".into());
    assert_eq!(world.discovery().find().unwrap().location, Location::Variable);
    world.variable = None;
    world.path = Some("bin".into());
    world.put("here/bin/attest-engine", State::Program);
    assert_eq!(
        world.discovery().find().unwrap(),
        Found { path: world.at("here/bin/attest-engine"), location: Location::SearchPath }
    );
}

#[test]
fn another_version_can_be_wanted_from_the_cache() {
    let world = World::new();
    world.put("home/.attest/bin/attest-engine", State::Program);
    world.mark(Marker::Other);
    assert!(world.discovery().find().is_err());
    assert_eq!(world.discovery().engine_version("0.5.0").find().unwrap().location, Location::Cache);
}

#[test]
fn without_home_and_path_the_rest_is_still_looked_at() {
    let world = World::new();
    world.put("here/bin/attest-engine", State::Program);
    let bare = Discovery::new(|_| None, None, world.at("here"), None);
    assert_eq!(bare.find().unwrap().location, Location::Local);
    let nothing = Discovery::new(|_| None, None, world.at("home"), None).find().unwrap_err();
    let text = nothing.to_string();
    assert!(text.contains("`PATH` is empty or not set"), "{text}");
    assert!(text.contains("no home folder is known"), "{text}");
}
