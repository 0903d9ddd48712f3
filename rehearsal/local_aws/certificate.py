"""A self-signed certificate, since AWS's endpoints and CloudFormation's ResponseURL are https."""

import datetime
import ipaddress
from pathlib import Path

import certifi
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

_VALID = datetime.timedelta(days=30)


def make_certificate(*, certificate: Path, key: Path, trust_bundle: Path) -> None:
    """Write a new certificate and key for localhost and 127.0.0.1, and a bundle that trusts them."""
    certificate.parent.mkdir(parents=True, exist_ok=True)
    private_key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "training-cluster local AWS")])
    now = datetime.datetime.now(datetime.UTC)
    names = x509.SubjectAlternativeName(
        [x509.DNSName("localhost"), x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]
    )
    signed = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(private_key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + _VALID)
        .add_extension(names, critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .sign(private_key, hashes.SHA256())
    )
    pem = signed.public_bytes(serialization.Encoding.PEM)
    key.touch(mode=0o600)
    key.write_bytes(
        private_key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
    )
    certificate.write_bytes(pem)
    trust_bundle.write_bytes(Path(certifi.where()).read_bytes() + b"\n" + pem)
