"""Opens what the server sealed, with libraries that share no code with it: jwcrypto, PyNaCl and pyrage.

keys   prints {name: {"sealTo": …, "private": …}}, new keys of every form
open FILE   reads {name: {"kind", "private", "value"}} and prints {name: text}
"""

import base64
import json
import sys

import pyrage
from jwcrypto import jwe, jwk
from nacl.encoding import Base64Encoder
from nacl.public import PrivateKey, SealedBox

curves = {"P-256": "EC", "P-384": "EC", "P-521": "EC", "X25519": "OKP"}


def keys():
    made = {}
    for crv, kty in curves.items():
        key = jwk.JWK.generate(kty=kty, crv=crv)
        made[f"jwk {crv}"] = {
            "sealTo": {"kind": "jwk", "key": key.export_public(as_dict=True)},
            "private": key.export_private(),
        }
    identity = pyrage.x25519.Identity.generate()
    made["age"] = {
        "sealTo": {"kind": "age", "recipient": str(identity.to_public())},
        "private": str(identity),
    }
    box = PrivateKey.generate()
    made["libsodium"] = {
        "sealTo": {"kind": "libsodium", "publicKey": box.public_key.encode(Base64Encoder).decode()},
        "private": box.encode(Base64Encoder).decode(),
    }
    return made


def opened(kind, private, value):
    if kind == "jwk":
        token = jwe.JWE(algs=["ECDH-ES+A256KW", "A256GCM"])
        token.deserialize(value, key=jwk.JWK.from_json(private))
        return token.payload.decode()
    if kind == "age":
        return pyrage.decrypt(value.encode(), [pyrage.x25519.Identity.from_str(private)]).decode()
    return SealedBox(PrivateKey(private.encode(), Base64Encoder)).decrypt(base64.b64decode(value)).decode()


if sys.argv[1] == "keys":
    print(json.dumps(keys()))
else:
    with open(sys.argv[2]) as file:
        print(json.dumps({name: opened(**one) for name, one in json.load(file).items()}))
