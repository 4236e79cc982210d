"""Calls a mesh over gRPC by what reflection tells, and compares with what is expected.

    python3 reflected.py <host:port> <calls.json>

Each call of the file has a service, a method, its message in hex, and one of `expected` (the reply in the contract's
JSON), `refused` (code and application number) and `download` (the text of the file).
"""

import json
import sys

import grpc
from google.protobuf import json_format, message_factory
from google.protobuf.descriptor_pool import DescriptorPool
from grpc_reflection.v1alpha.proto_reflection_descriptor_database import ProtoReflectionDescriptorDatabase


def plain(value):
    """An unset sub-object is `{}` in the contract's JSON and not there in Python's, and so is every default."""
    if isinstance(value, dict):
        kept = {name: plain(inner) for name, inner in value.items()}
        return {name: inner for name, inner in kept.items() if inner not in ("", "0", 0, False, [], {})}
    if isinstance(value, list):
        return [plain(inner) for inner in value]
    return "" if isinstance(value, str) and value.endswith("_UNSPECIFIED") else value


def said(reply):
    fields = json_format.MessageToDict(reply)
    return plain(fields)


def call(channel, pool, asked):
    method = pool.FindServiceByName(asked["service"]).FindMethodByName(asked["method"])
    request = message_factory.GetMessageClass(method.input_type).FromString(bytes.fromhex(asked["message"]))
    reply_type = message_factory.GetMessageClass(method.output_type)
    path = f"/{asked['service']}/{asked['method']}"
    spelled = dict(request_serializer=lambda message: message.SerializeToString(),
                   response_deserializer=reply_type.FromString)
    if "download" in asked:
        chunks = list(channel.unary_stream(path, **spelled)(request, timeout=30))
        text = b"".join(chunk.data for chunk in chunks).decode()
        assert text == asked["download"], f"{path}: {text[:200]}"
        assert [len(chunk.extensions) for chunk in chunks] == [1] + [0] * (len(chunks) - 1), path
        return
    unary = channel.unary_unary(path, **spelled)
    if "refused" not in asked:
        reply = said(unary(request, timeout=30))
        assert reply == plain(asked["expected"]), f"{path}: {reply} is not {plain(asked['expected'])}"
        return
    try:
        unary(request, timeout=30)
    except grpc.RpcError as error:
        assert error.code().value[0] == asked["refused"]["code"], error
        packed = dict(error.trailing_metadata())["grpc-status-details-bin"]
        rich = message_factory.GetMessageClass(pool.FindMessageTypeByName("google.rpc.Status")).FromString(packed)
        detail = message_factory.GetMessageClass(pool.FindMessageTypeByName("api.v2.ErrorDetail"))()
        assert rich.details[0].Unpack(detail), rich
        assert (rich.message, detail.code) == (error.details(), asked["refused"]["number"]), rich
        return
    raise AssertionError(f"{path} is not refused")


def main():
    address, file = sys.argv[1:]
    with open(file) as opened:
        calls = json.load(opened)
    # The machine's proxy, if it has one, has nothing to do with this.
    with grpc.insecure_channel(address, options=[("grpc.enable_http_proxy", 0)]) as channel:
        database = ProtoReflectionDescriptorDatabase(channel)
        assert "api.v2.Query" in database.get_services(), database.get_services()
        pool = DescriptorPool(database)
        for asked in calls:
            call(channel, pool, asked)
    print(f"{len(calls)} calls")


main()
