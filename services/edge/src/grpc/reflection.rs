//! The reflection service: descriptors of the contract and of the standard services. A request that finds nothing gets
//! an `error_response` and the stream stays open, as the protocol requires; tonic-reflection's own service ends it.

use futures_util::{StreamExt, stream::BoxStream};
use mesh_chassis::Failure;
use prost_reflect::{DescriptorPool, EnumDescriptor, FileDescriptor};
use proto_msgs::Contract;
use tonic::{Code, Request, Response, Status, Streaming};
use tonic_reflection::{
    pb::{
        v1::{
            self, ErrorResponse, ExtensionNumberResponse, FileDescriptorResponse, ListServiceResponse,
            ServerReflectionRequest, ServerReflectionResponse, ServiceResponse,
            server_reflection_request::MessageRequest, server_reflection_response::MessageResponse,
        },
        v1alpha,
    },
    server::v1::{ServerReflection, ServerReflectionServer},
};

/// Most requests on a stream, which counts as one call of its client.
const MAX_REQUESTS: usize = 100;

/// Describes what these pools have: the contract, which the edge decodes requests with, and the standard services.
pub(super) struct Reflection([DescriptorPool; 2]);

impl Reflection {
    /// Makes the gRPC service.
    ///
    /// # Errors
    /// When the descriptors cannot be read.
    pub(super) fn server() -> Result<ServerReflectionServer<Self>, Failure> {
        let mut standard = DescriptorPool::new();
        for set in
            [tonic_health::pb::FILE_DESCRIPTOR_SET, v1::FILE_DESCRIPTOR_SET, v1alpha::FILE_DESCRIPTOR_SET]
        {
            standard.decode_file_descriptor_set(set)?;
        }
        Ok(ServerReflectionServer::new(Self([Contract::get().pool().clone(), standard])))
    }
}

#[tonic::async_trait]
impl ServerReflection for Reflection {
    type ServerReflectionInfoStream = BoxStream<'static, Result<ServerReflectionResponse, Status>>;

    async fn server_reflection_info(
        &self,
        requests: Request<Streaming<ServerReflectionRequest>>,
    ) -> Result<Response<Self::ServerReflectionInfoStream>, Status> {
        let pools = self.0.clone();
        let answers = requests.into_inner().enumerate().map(move |(number, request)| {
            let request = request?;
            if number >= MAX_REQUESTS {
                return Err(Status::resource_exhausted("too many requests on one stream: open another"));
            }
            Ok(ServerReflectionResponse {
                valid_host: request.host.clone(),
                message_response: Some(answer(&pools, request.message_request.as_ref())),
                original_request: Some(request),
            })
        });
        Ok(Response::new(answers.boxed()))
    }
}

fn answer(pools: &[DescriptorPool], request: Option<&MessageRequest>) -> MessageResponse {
    let message_of = |name: &str| pools.iter().find_map(|pool| pool.get_message_by_name(name));
    let file = match request {
        None => return error(Code::InvalidArgument, "the request asks for nothing"),
        Some(MessageRequest::ListServices(_)) => {
            let services = pools.iter().flat_map(DescriptorPool::services);
            let named = services.map(|service| ServiceResponse { name: service.full_name().to_owned() });
            let service = named.collect();
            return MessageResponse::ListServicesResponse(ListServiceResponse { service });
        }
        Some(MessageRequest::AllExtensionNumbersOfType(name)) => {
            let Some(message) = message_of(name) else { return not_found() };
            let numbers = message.extensions().filter_map(|extension| extension.number().try_into().ok());
            return MessageResponse::AllExtensionNumbersResponse(ExtensionNumberResponse {
                base_type_name: name.clone(),
                extension_number: numbers.collect(),
            });
        }
        Some(MessageRequest::FileByFilename(name)) => {
            pools.iter().find_map(|pool| pool.get_file_by_name(name))
        }
        Some(MessageRequest::FileContainingSymbol(name)) => {
            pools.iter().find_map(|pool| file_of_symbol(pool, name))
        }
        Some(MessageRequest::FileContainingExtension(asked)) => {
            let message = message_of(&asked.containing_type);
            let number = u32::try_from(asked.extension_number).ok();
            let extension = message.zip(number).and_then(|(message, number)| message.get_extension(number));
            extension.map(|extension| extension.parent_file())
        }
    };
    let Some(file) = file else { return not_found() };
    let file_descriptor_proto = vec![file.encode_to_vec()];
    MessageResponse::FileDescriptorResponse(FileDescriptorResponse { file_descriptor_proto })
}

/// The file that declares a type, a service, an extension, or a member of one of them.
fn file_of_symbol(pool: &DescriptorPool, name: &str) -> Option<FileDescriptor> {
    let message = pool.get_message_by_name(name).map(|message| message.parent_file());
    let declared = message
        .or_else(|| Some(pool.get_enum_by_name(name)?.parent_file()))
        .or_else(|| Some(pool.get_service_by_name(name)?.parent_file()))
        .or_else(|| Some(pool.get_extension_by_name(name)?.parent_file()));
    if declared.is_some() {
        return declared;
    }
    let (of, member) = name.rsplit_once('.')?;
    if let Some(message) = pool.get_message_by_name(of) {
        let is_oneof = || message.oneofs().any(|oneof| oneof.name() == member);
        return (message.get_field_by_name(member).is_some() || is_oneof()).then(|| message.parent_file());
    }
    // A value is a sibling of its type.
    let has_value = |list: &EnumDescriptor| list.values().any(|value| value.full_name() == name);
    if let Some(list) = pool.all_enums().find(has_value) {
        return Some(list.parent_file());
    }
    let service = pool.get_service_by_name(of)?;
    service.methods().any(|method| method.name() == member).then(|| service.parent_file())
}

fn not_found() -> MessageResponse {
    error(Code::NotFound, "nothing of this name is served")
}

fn error(code: Code, reason: &str) -> MessageResponse {
    MessageResponse::ErrorResponse(ErrorResponse {
        error_code: code.into(),
        error_message: reason.to_owned(),
    })
}
