"""Certificates of a study: made, read, and refused before they make trouble."""

from __future__ import annotations

import datetime
import ipaddress
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from unpooled.study.config import StudyError

ANYWHERE = ("0.0.0.0", "::")


def authority(study: str, key: ec.EllipticCurvePrivateKey, until: datetime.datetime) -> x509.Certificate:
    """An authority's own certificate."""
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, f"unpooled study {study}"[:64])])
    build = _certificate(name, name, key.public_key(), until)
    build = build.add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
    build = build.add_extension(_usage(signs_certificates=True), critical=True)
    build = build.add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
    return build.sign(key, hashes.SHA384())


def server(
    hosts: tuple[str, ...],
    public: ec.EllipticCurvePublicKey,
    ca: x509.Certificate,
    ca_key: ec.EllipticCurvePrivateKey,
    until: datetime.datetime,
) -> x509.Certificate:
    """The certificate of a server that is reached by these names and addresses."""
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, hosts[0][:64])])
    build = _certificate(name, ca.subject, public, until)
    build = build.add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
    build = build.add_extension(_usage(signs_certificates=False), critical=True)
    build = build.add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
    own = x509.AuthorityKeyIdentifier.from_issuer_public_key(ca_key.public_key())
    build = build.add_extension(own, critical=False)
    names = x509.SubjectAlternativeName([_general(host) for host in hosts if host not in ANYWHERE])
    return build.add_extension(names, critical=False).sign(ca_key, hashes.SHA384())


def _certificate(
    subject: x509.Name, issuer: x509.Name, public: ec.EllipticCurvePublicKey, until: datetime.datetime
) -> x509.CertificateBuilder:
    early = datetime.timedelta(hours=1)  # a site's clock may be behind
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(public)
        .serial_number(x509.random_serial_number())
        .not_valid_before(min(datetime.datetime.now(datetime.UTC), until) - early)
        .not_valid_after(until)
    )


def _usage(*, signs_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not signs_certificates,
        key_cert_sign=signs_certificates,
        crl_sign=signs_certificates,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )


def _general(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def check_dates(path: Path, certificate: x509.Certificate) -> None:
    """Refuse a certificate outside its days."""
    now = datetime.datetime.now(datetime.UTC)
    if now > certificate.not_valid_after_utc:
        raise StudyError(
            f"{path} expired on {certificate.not_valid_after_utc:%d %B %Y}: "
            "make new keys with `unpooled study keys` and hand them over again"
        )
    if now < certificate.not_valid_before_utc:
        raise StudyError(
            f"{path} is valid from {certificate.not_valid_before_utc:%d %B %Y %H:%M} UTC on, and this "
            f"machine's clock says {now:%d %B %Y %H:%M}: is the clock right?"
        )


def read_certificate(path: Path) -> x509.Certificate:
    """A certificate from its PEM file."""
    try:
        return x509.load_pem_x509_certificate(path.read_bytes())
    except ValueError as error:
        raise StudyError(f"{path} is not a certificate: {error}") from None


def hosts_of(certificate: x509.Certificate) -> tuple[str, ...]:
    """The names and addresses that a certificate is for."""
    names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    addresses = [str(address) for address in names.get_values_for_type(x509.IPAddress)]
    return (*names.get_values_for_type(x509.DNSName), *addresses)
