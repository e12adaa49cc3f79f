//! The safetensors file: named tensors, checked for shape and converted to `f32`.

use std::path::{Path, PathBuf};

use ndarray::Array2;
use safetensors::{Dtype, SafeTensors};
use sha2::{Digest as _, Sha256};

use super::folder::read;
use super::{LocalModelError, invalid};

const LARGEST_FILE: u64 = 2 << 30;
const FINGERPRINT_DIGITS: usize = 12;

/// A weights file in memory. It is dropped as soon as the tensors that are needed have been taken from it.
#[derive(Debug)]
pub(super) struct Weights {
    path: PathBuf,
    bytes: Vec<u8>,
}

impl Weights {
    pub(super) fn read(path: PathBuf) -> Result<Weights, LocalModelError> {
        let bytes = read(&path, LARGEST_FILE)?;
        Ok(Weights { path, bytes })
    }

    /// The beginning of the file's SHA-256.
    pub(super) fn fingerprint(&self) -> String {
        let mut digits = hex::encode(Sha256::digest(&self.bytes));
        digits.truncate(FINGERPRINT_DIGITS);
        digits
    }

    pub(super) fn tensors(&self) -> Result<Tensors<'_>, LocalModelError> {
        let file = SafeTensors::deserialize(&self.bytes)
            .map_err(|source| LocalModelError::Weights { path: self.path.clone(), source })?;
        // A checkpoint of a model with a head has the encoder's tensors under its name.
        let prefix = if file.tensor("bert.embeddings.word_embeddings.weight").is_ok() { "bert." } else { "" };
        Ok(Tensors { path: &self.path, file, prefix })
    }
}

/// The file's table of contents.
pub(super) struct Tensors<'a> {
    path: &'a Path,
    file: SafeTensors<'a>,
    prefix: &'static str,
}

impl Tensors<'_> {
    pub(super) fn vector(&self, name: &str, length: usize) -> Result<Vec<f32>, LocalModelError> {
        self.numbers(name, &[length])
    }

    pub(super) fn matrix(
        &self,
        name: &str,
        rows: usize,
        columns: usize,
    ) -> Result<Array2<f32>, LocalModelError> {
        let numbers = self.numbers(name, &[rows, columns])?;
        self.stack(name, rows, columns, numbers)
    }

    /// The numbers of some matrices with `columns` columns, one below the other, as one matrix.
    pub(super) fn stack(
        &self,
        name: &str,
        rows: usize,
        columns: usize,
        numbers: Vec<f32>,
    ) -> Result<Array2<f32>, LocalModelError> {
        Array2::from_shape_vec((rows, columns), numbers)
            .map_err(|problem| invalid(self.path, format!("tensor `{name}`: {problem}")))
    }

    /// The numbers of a tensor that must have exactly this shape.
    pub(super) fn numbers(&self, name: &str, shape: &[usize]) -> Result<Vec<f32>, LocalModelError> {
        let name = format!("{}{name}", self.prefix);
        let tensor =
            self.file.tensor(&name).map_err(|_| invalid(self.path, format!("it has no tensor `{name}`")))?;
        if tensor.shape() != shape {
            return Err(invalid(
                self.path,
                format!("tensor `{name}` has the shape {:?}, config.json makes it {shape:?}", tensor.shape()),
            ));
        }
        let data = tensor.data();
        let numbers: Vec<f32> = match tensor.dtype() {
            Dtype::F32 => data.as_chunks().0.iter().map(|&bytes| f32::from_le_bytes(bytes)).collect(),
            Dtype::F16 => {
                data.as_chunks().0.iter().map(|&bytes| from_half(u16::from_le_bytes(bytes))).collect()
            }
            Dtype::BF16 => {
                let widen = |&bytes| f32::from_bits(u32::from(u16::from_le_bytes(bytes)) << 16);
                data.as_chunks().0.iter().map(widen).collect()
            }
            other => {
                let problem =
                    format!("tensor `{name}` is of type {other:?}, only F32, F16 and BF16 are supported");
                return Err(invalid(self.path, problem));
            }
        };
        if numbers.iter().fold(true, |finite, number| finite & number.is_finite()) {
            Ok(numbers)
        } else {
            Err(invalid(self.path, format!("tensor `{name}` has a number that is not finite")))
        }
    }
}

/// A 16-bit float: a sign, five bits of exponent, ten of mantissa.
fn from_half(half: u16) -> f32 {
    let sign = u32::from(half >> 15) << 31;
    let exponent = u32::from(half >> 10 & 0x1f);
    let mantissa = u32::from(half & 0x3ff);
    match exponent {
        0 => f32::from_bits((mantissa as f32 / 16_777_216.0).to_bits() | sign),
        0x1f => f32::from_bits(sign | 0x7f80_0000 | mantissa << 13),
        _ => f32::from_bits(sign | (exponent + 112) << 23 | mantissa << 13),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_precision_at_known_points() {
        let known = [
            (0x0000, 0.0f32),
            (0x8000, -0.0),
            (0x3c00, 1.0),
            (0xc000, -2.0),
            (0x7bff, 65504.0),
            (0x0001, 5.960_464_5e-8),
            (0x03ff, 6.097_555e-5),
            (0x0400, 6.103_515_6e-5),
            (0x3555, 0.333_251_95),
            (0x7c00, f32::INFINITY),
        ];
        for (half, value) in known {
            assert_eq!(from_half(half).to_bits(), value.to_bits(), "{half:#06x}");
        }
        assert!(from_half(0x7e00).is_nan());
    }
}
