//! gRPC calls of any method, with messages as bytes.

use std::time::Duration;

use bytes::{Buf, BufMut};
use proctor_core::json::Json;
use proctor_net::grpc::client::{ChannelOptions, Target};
use proctor_net::tls::ClientTls;
use protox::prost_reflect::MethodDescriptor;
use tonic::client::Grpc;
use tonic::codec::{Codec, DecodeBuf, Decoder, EncodeBuf, Encoder};
use tonic::codegen::http::uri::PathAndQuery;
use tonic::metadata::{MetadataKey, MetadataMap};
use tonic::transport::Channel;
use tonic::{Code, Request, Status};

use super::proto::{self, MessageError};
use crate::ahp_serve::server::LONG;

/// A connection to a gRPC server.
pub struct Connection {
    runtime: tokio::runtime::Runtime,
    channel: Channel,
}

impl Connection {
    /// Connects to `http://…` or `unix:…`.
    pub fn open(endpoint: &str) -> Connection {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let options = ChannelOptions {
            connect_timeout: LONG,
            ping: Duration::from_secs(30),
            ping_timeout: LONG,
            ping_while_idle: false,
        };
        let target = Target::parse(endpoint, &ClientTls::default()).unwrap();
        let channel = runtime.block_on(target.connect(&options)).unwrap();
        Connection { runtime, channel }
    }

    /// Calls a method with these messages. Of a stream of answers `wanted` ones are read; then the call is cancelled.
    pub fn call(
        &self,
        method: &MethodDescriptor,
        messages: &[Json],
        metadata: &[(String, String)],
        wanted: usize,
    ) -> Result<Result<Vec<Json>, Status>, MessageError> {
        let encode = |message: &Json| proto::encode(&method.input(), message);
        let messages = messages.iter().map(encode).collect::<Result<Vec<Vec<u8>>, _>>()?;
        let path = format!("/{}/{}", method.parent_service().full_name(), method.name());
        // On the wire, calls with one message are streams of one.
        let mut request = Request::new(futures_util::stream::iter(messages));
        request_metadata(request.metadata_mut(), metadata);
        let calling = async {
            let mut grpc = Grpc::new(self.channel.clone());
            grpc.ready().await.map_err(|error| Status::unavailable(error.to_string()))?;
            let path = PathAndQuery::try_from(path).unwrap();
            let mut answers = grpc.streaming(request, path, Raw).await?.into_inner();
            let mut read: Vec<Vec<u8>> = Vec::new();
            while read.len() < wanted {
                match answers.message().await? {
                    Some(answer) => read.push(answer),
                    None => break,
                }
            }
            Ok::<Vec<Vec<u8>>, Status>(read)
        };
        let answered = self.runtime.block_on(async { tokio::time::timeout(LONG, calling).await });
        match answered.expect("an answer in time") {
            Ok(answers) => {
                let decode = |answer: Vec<u8>| proto::decode(method.output(), &answer);
                Ok(Ok(answers.into_iter().map(decode).collect::<Result<_, _>>()?))
            }
            Err(status) => Ok(Err(status)),
        }
    }
}

fn request_metadata(map: &mut MetadataMap, metadata: &[(String, String)]) {
    for (name, value) in metadata {
        let name: MetadataKey<_> = name.parse().unwrap();
        map.insert(name, value.parse().unwrap());
    }
}

/// The name of a status code as the specification of gRPC writes it: `INVALID_ARGUMENT`.
pub fn code_name(code: Code) -> String {
    let mut name = String::new();
    for letter in format!("{code:?}").chars() {
        if letter.is_uppercase() && !name.is_empty() {
            name.push('_');
        }
        name.push(letter.to_ascii_uppercase());
    }
    name
}

/// Codec that leaves messages as they are.
struct Raw;

impl Codec for Raw {
    type Encode = Vec<u8>;
    type Decode = Vec<u8>;
    type Encoder = Raw;
    type Decoder = Raw;

    fn encoder(&mut self) -> Raw {
        Raw
    }

    fn decoder(&mut self) -> Raw {
        Raw
    }
}

impl Encoder for Raw {
    type Item = Vec<u8>;
    type Error = Status;

    fn encode(&mut self, message: Vec<u8>, buffer: &mut EncodeBuf<'_>) -> Result<(), Status> {
        buffer.put_slice(&message);
        Ok(())
    }
}

impl Decoder for Raw {
    type Item = Vec<u8>;
    type Error = Status;

    fn decode(&mut self, buffer: &mut DecodeBuf<'_>) -> Result<Option<Vec<u8>>, Status> {
        let mut message = vec![0; buffer.remaining()];
        buffer.copy_to_slice(&mut message);
        Ok(Some(message))
    }
}
