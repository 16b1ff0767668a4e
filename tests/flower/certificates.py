"""An authority, a certificate for loopback and key pairs of sites, made anew for each test session."""

import datetime
import ipaddress
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from unpooled.runs.flower import Certificates

PEM, PLAIN = serialization.Encoding.PEM, serialization.NoEncryption()


def make_certificates(folder: Path) -> Certificates:
    folder.mkdir(parents=True, exist_ok=True)
    authority, server = ec.generate_private_key(ec.SECP384R1()), ec.generate_private_key(ec.SECP384R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "unpooled tests")])
    now = datetime.datetime.now(datetime.UTC)

    def signed(subject, key, more):
        builder = x509.CertificateBuilder().subject_name(subject).issuer_name(name)
        builder = builder.public_key(key.public_key()).serial_number(x509.random_serial_number())
        builder = builder.not_valid_before(now - datetime.timedelta(minutes=5))
        builder = builder.not_valid_after(now + datetime.timedelta(hours=1))
        for extension, critical in more:
            builder = builder.add_extension(extension, critical)
        return builder.sign(authority, hashes.SHA384()).public_bytes(PEM)

    identifier = x509.SubjectKeyIdentifier.from_public_key(authority.public_key())
    usage = x509.KeyUsage(False, False, False, False, False, True, True, False, False)
    ca = signed(name, authority, [(x509.BasicConstraints(True, 0), True), (usage, True), (identifier, False)])
    names = x509.SubjectAlternativeName(
        [x509.DNSName("localhost"), x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]
    )
    signer = x509.AuthorityKeyIdentifier.from_issuer_public_key(authority.public_key())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "localhost")])
    certificate = signed(subject, server, [(names, False), (signer, False)])
    made = Certificates(folder / "ca.crt", folder / "server.pem", folder / "server.key")
    made.ca.write_bytes(ca)
    made.certificate.write_bytes(certificate)
    made.key.write_bytes(server.private_bytes(PEM, serialization.PrivateFormat.PKCS8, PLAIN))
    return made


def make_key(folder: Path, name: str) -> tuple[Path, Path]:
    """A site's private and public key, in OpenSSH's formats."""
    folder.mkdir(parents=True, exist_ok=True)
    key = ec.generate_private_key(ec.SECP384R1())
    private, public = folder / name, folder / f"{name}.pub"
    private.write_bytes(key.private_bytes(PEM, serialization.PrivateFormat.OpenSSH, PLAIN))
    private.chmod(0o600)
    public.write_bytes(
        key.public_key().public_bytes(serialization.Encoding.OpenSSH, serialization.PublicFormat.OpenSSH)
    )
    return private, public
