//! The codec of all services; decoding is bounded by the wire crate's limit on decoded size.

use std::marker::PhantomData;

use bytes::Buf;
use proctor_wire::assembly::unpack::{UnpackError, unpack};
use prost::{Message, Name};
use tonic::Status;
use tonic::codec::{Codec, DecodeBuf, Decoder};
use tonic_prost::ProstEncoder;

/// Encodes `T` and decodes `U`.
#[derive(Debug)]
pub struct BoundedCodec<T, U> {
    messages: PhantomData<fn(T) -> U>,
}

impl<T, U> Default for BoundedCodec<T, U> {
    fn default() -> Self {
        Self { messages: PhantomData }
    }
}

impl<T: Message + 'static, U: Name + Default + 'static> Codec for BoundedCodec<T, U> {
    type Encode = T;
    type Decode = U;
    type Encoder = ProstEncoder<T>;
    type Decoder = BoundedDecoder<U>;

    fn encoder(&mut self) -> Self::Encoder {
        ProstEncoder::default()
    }

    fn decoder(&mut self) -> Self::Decoder {
        BoundedDecoder { message: PhantomData }
    }
}

/// Decodes `U`.
#[derive(Debug)]
pub struct BoundedDecoder<U> {
    message: PhantomData<fn() -> U>,
}

impl<U: Name + Default> Decoder for BoundedDecoder<U> {
    type Item = U;
    type Error = Status;

    fn decode(&mut self, source: &mut DecodeBuf<'_>) -> Result<Option<U>, Status> {
        let bytes = source.copy_to_bytes(source.remaining());
        unpack(&bytes).map(Some).map_err(|error| match error {
            UnpackError::TooLarge => Status::resource_exhausted(error.to_string()),
            // The status of other implementations for malformed messages.
            UnpackError::Malformed | UnpackError::TooDeep | UnpackError::Invalid(_) => {
                Status::internal(error.to_string())
            }
        })
    }
}
