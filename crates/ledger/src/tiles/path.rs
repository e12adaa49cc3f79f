//! Tile paths: `tile/<level>/<index>[.p/<width>]`, with the index in groups of three digits.

use super::{TILE_WIDTH, TileId};

/// Maximum length of a path: 20 digits of index in seven groups, and the rest.
const MAX_PATH_BYTES: usize = 80;

/// A path of the published ledger, taken apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TilePath {
    /// A tile of hashes.
    Hashes(TileId),
    /// A bundle of entries, named by the level 0 tile that has their hashes.
    Entries(TileId),
}

/// Error of parsing a tile path.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TilePathError {
    /// The level, index or width is out of range.
    #[error("no tree has a tile at level {level}, index {index} of width {width}")]
    NoSuchTile {
        /// The level.
        level: u8,
        /// The index.
        index: u64,
        /// The width.
        width: u16,
    },
    /// The text is not a path of a tile or entry bundle.
    #[error("`{path}` is not a tile path: {reason}")]
    Malformed {
        /// The path, shortened when very long.
        path: String,
        /// The violated rule.
        reason: &'static str,
    },
}

/// The path of a tile of hashes; a width of 256 is a full tile.
pub fn tile_path(level: u8, index: u64, width: u16) -> Result<String, TilePathError> {
    let no_such_tile = TilePathError::NoSuchTile { level, index, width };
    TileId::new(level, index, width).map(hashes_path).ok_or(no_such_tile)
}

/// The path of an entry bundle; a width of 256 is a full bundle.
pub fn entries_path(index: u64, width: u16) -> Result<String, TilePathError> {
    let no_such_tile = TilePathError::NoSuchTile { level: 0, index, width };
    TileId::new(0, index, width).map(bundle_path).ok_or(no_such_tile)
}

impl TilePath {
    /// Parses a path; only the one spelling of the layout is accepted.
    pub fn parse(path: &str) -> Result<Self, TilePathError> {
        let parsed = parse_path(path).map_err(|reason| TilePathError::Malformed {
            path: path.chars().take(MAX_PATH_BYTES).collect(),
            reason,
        })?;
        Ok(parsed)
    }
}

impl std::fmt::Display for TilePath {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(&match *self {
            Self::Hashes(tile) => hashes_path(tile),
            Self::Entries(tile) => bundle_path(tile),
        })
    }
}

pub(super) fn hashes_path(tile: TileId) -> String {
    located(format!("tile/{}", tile.level()), tile)
}

pub(super) fn bundle_path(tile: TileId) -> String {
    located("tile/entries".to_owned(), tile)
}

/// Appends the index in groups of three digits, and the width of a partial tile.
fn located(mut path: String, tile: TileId) -> String {
    let digits = tile.index().to_string();
    let groups = digits.len().div_ceil(3);
    let padded = format!("{digits:0>width$}", width = groups * 3);
    for (position, digit) in padded.chars().enumerate() {
        if position % 3 == 0 {
            path.push('/');
            if position / 3 + 1 < groups {
                path.push('x');
            }
        }
        path.push(digit);
    }
    if !tile.is_full() {
        path.push_str(".p/");
        path.push_str(&tile.width().to_string());
    }
    path
}

fn parse_path(path: &str) -> Result<TilePath, &'static str> {
    if path.len() > MAX_PATH_BYTES {
        return Err("it is too long");
    }
    let rest = path.strip_prefix("tile/").ok_or("it does not begin with `tile/`")?;
    let (kind, place) = rest.split_once('/').ok_or("it has no index")?;
    let (index, width) = match place.split_once(".p/") {
        None => (place, TILE_WIDTH),
        Some((index, width)) => (index, parse_decimal(width).ok_or("its width is not a number")?),
    };
    let index = parse_index(index).ok_or("its index is not in groups of three digits")?;
    let level = if kind == "entries" { 0 } else { parse_decimal(kind).ok_or("its level is not a number")? };
    let tile = TileId::new(level, index, width).ok_or("no tree has such a tile")?;
    let parsed = if kind == "entries" { TilePath::Entries(tile) } else { TilePath::Hashes(tile) };
    // One tile has one name: a second spelling (a needless group, `.p/256`) is refused.
    if parsed.to_string() == path { Ok(parsed) } else { Err("it is not in its one proper spelling") }
}

fn parse_index(groups: &str) -> Option<u64> {
    let mut index: u64 = 0;
    for group in groups.split('/') {
        let digits = group.strip_prefix('x').unwrap_or(group);
        if digits.len() != 3 || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
            return None;
        }
        index = index.checked_mul(1000)?.checked_add(digits.parse().ok()?)?;
    }
    Some(index)
}

/// A decimal number without sign; the round trip above refuses leading zeros.
fn parse_decimal<N: std::str::FromStr>(digits: &str) -> Option<N> {
    if digits.bytes().all(|byte| byte.is_ascii_digit()) { digits.parse().ok() } else { None }
}
