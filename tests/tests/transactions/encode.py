"""Random transactions: for each, a line with a JSON body (keys in any order and spelling, defaults written or left
out) and the hash of what Python's own protobuf encodes for the same fields. Arguments: how many, a seed."""

import base64
import hashlib
import json
import random
import sys

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

LABEL_OPTIONAL, STRING, BYTES, UINT32, UINT64, MESSAGE, ENUM = 1, 9, 12, 13, 4, 11, 14


def messages():
    file = descriptor_pb2.FileDescriptorProto(name="tx.proto", package="t", syntax="proto3")
    version = file.enum_type.add(name="Version")
    for name, number in (("NONE", 0), ("V2", 2), ("V3", 3)):
        version.value.add(name=name, number=number)
    signature = file.message_type.add(name="Signature")
    for name, number, kind in (("value", 1, STRING), ("algo", 2, STRING), ("version", 3, UINT32)):
        signature.field.add(name=name, number=number, type=kind, label=LABEL_OPTIONAL)
    pow_ = file.message_type.add(name="Pow")
    for name, number, kind in (("tid", 1, STRING), ("nonce", 2, UINT64)):
        pow_.field.add(name=name, number=number, type=kind, label=LABEL_OPTIONAL)
    tx = file.message_type.add(name="Tx")
    # In another order than their numbers, on purpose.
    tx.oneof_decl.add(name="sender")
    tx.field.add(name="pow", number=3000, type=MESSAGE, type_name=".t.Pow", label=LABEL_OPTIONAL)
    tx.field.add(name="version", number=2000, type=ENUM, type_name=".t.Version", label=LABEL_OPTIONAL)
    tx.field.add(name="address", number=1001, type=STRING, label=LABEL_OPTIONAL, oneof_index=0)
    tx.field.add(name="pub_key", number=1002, type=STRING, label=LABEL_OPTIONAL, oneof_index=0)
    tx.field.add(name="input_data", number=1, type=BYTES, label=LABEL_OPTIONAL)
    tx.field.add(name="signature", number=2, type=MESSAGE, type_name=".t.Signature", label=LABEL_OPTIONAL)
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return {name: message_factory.GetMessageClass(pool.FindMessageTypeByName("t." + name)) for name in ("Tx", "Signature", "Pow")}


def digits(random, count):
    return "".join(random.choice("0123456789abcdefABCDEF") for _ in range(count))


def text_of(random, longest):
    return "".join(random.choice("abcZ09 _-\"\\\u00e9\u4e16\U0001f600\n") for _ in range(random.randrange(longest)))


def shuffled(random, pairs):
    random.shuffle(pairs)
    return dict(pairs)


def one(random, classes):
    tx = classes["Tx"]()
    spelled = lambda camel, snake: random.choice((camel, snake))
    data = random.randbytes(random.randrange(1, 300))
    tx.input_data = data
    encoded = random.choice((base64.b64encode, base64.urlsafe_b64encode))(data).decode()
    body = [(spelled("inputData", "input_data"), encoded if random.random() < 0.5 else encoded.rstrip("="))]

    tx.signature.value = digits(random, 128)
    tx.signature.algo = text_of(random, 20) or "ed25519"
    tx.signature.version = random.choice((1, 2, 127, 128, 2**32 - 1))
    body.append(("signature", shuffled(random, [
        ("value", tx.signature.value),
        ("algo", tx.signature.algo),
        ("version", random.choice((tx.signature.version, str(tx.signature.version)))),
        ("unknown", [1]),
    ])))

    tx.pub_key = digits(random, 64)
    body.append((spelled("pubKey", "pub_key"), tx.pub_key))
    if random.random() < 0.3:
        body.append(("address", random.choice(("", None))))

    version = random.choice((2, 3))
    tx.version = version
    body.append(("version", random.choice((version, str(version), f"TX_VERSION_V{version}"))))

    kind = random.randrange(4)
    if kind == 1:
        tx.pow.SetInParent()
        body.append(("pow", random.choice(({}, {"tid": ""}, {"nonce": 0}, {"tid": "", "nonce": "0"}, {"nonce": None}))))
    elif kind > 1:
        tx.pow.tid = text_of(random, 70)
        tx.pow.nonce = random.choice((0, 1, 127, 128, 2**32, 2**53, 2**53 + 1, 2**64 - 1))
        pairs = [("tid", tx.pow.tid)]
        if tx.pow.nonce or random.random() < 0.5:
            pairs.append(("nonce", random.choice((tx.pow.nonce, str(tx.pow.nonce)))))
        body.append(("pow", shuffled(random, pairs)))
    elif random.random() < 0.3:
        body.append(("pow", None))

    outer = [("tx", shuffled(random, body)), ("type", random.choice(("TYPE_ASYNC", 1, "1")))]
    written = json.dumps(shuffled(random, outer), ensure_ascii=random.random() < 0.5)
    return written, hashlib.sha256(tx.SerializeToString(deterministic=True)).hexdigest().upper()


def main():
    count, seed = int(sys.argv[1]), int(sys.argv[2])
    source, classes = random.Random(seed), messages()
    for _ in range(count):
        print(*one(source, classes), sep="\t")


main()
