"""The keys of a study: an authority, the coordinator's certificate, a key pair for each site.

Sites trust the coordinator by its certificate, which the study's own authority signs; the coordinator trusts
a site by its public key, which it registers. Whoever makes the keys holds the authority; no one else does.

    keys/coordinator/   ca.key ca.crt server.key server.crt sites/<id>.pub
    keys/<id>/          <id>.key ca.crt study.toml        to hand over to the site, confidentially
"""

from __future__ import annotations

import datetime
import os
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec

from unpooled._files import whole_file
from unpooled._validation import closest, listing
from unpooled.study.certificates import ANYWHERE, authority, check_dates, hosts_of, read_certificate, server
from unpooled.study.config import Study, StudyError

COORDINATOR = "coordinator"


@dataclass(frozen=True)
class Keys:
    """Where the keys of a study are."""

    folder: Path

    @property
    def ca(self) -> Path:
        """The authority's certificate, which everyone has."""
        return self.folder / COORDINATOR / "ca.crt"

    @property
    def certificate(self) -> Path:
        """The coordinator's certificate."""
        return self.folder / COORDINATOR / "server.crt"

    @property
    def key(self) -> Path:
        """The coordinator's private key."""
        return self.folder / COORDINATOR / "server.key"

    def public(self, site: str) -> Path:
        """A site's public key, at the coordinator."""
        return self.folder / COORDINATOR / "sites" / f"{site}.pub"

    def site(self, site: str) -> Path:
        """The folder to hand over to a site."""
        return self.folder / site


def make(
    study: Study,
    path: Path,
    folder: Path,
    days: int,
    hosts: tuple[str, ...] = (),
    passphrase: bytes | None = None,
) -> Keys:
    """Make all keys of a study, whose file is ``path``; nothing that is there is written over.

    ``passphrase`` locks the authority's own key, which no study needs while it runs.
    """
    keys = Keys(folder)
    there = [f for f in (folder / COORDINATOR, *map(keys.site, study.sites)) if f.exists()]
    if there:
        raise StudyError(f"{there[0]} is there already: move it away first, for its keys may be in use")
    if COORDINATOR in study.sites:
        raise StudyError(f"a site cannot be called {COORDINATOR!r}: its folder would be the coordinator's")
    (folder / COORDINATOR).mkdir(parents=True, mode=0o700)
    (folder / COORDINATOR / "sites").mkdir(mode=0o700)
    until = datetime.datetime.now(datetime.UTC) + datetime.timedelta(days=days)
    ca_key = ec.generate_private_key(ec.SECP384R1())
    ca = authority(study.name, ca_key, until)
    _private(folder / COORDINATOR / "ca.key", _pem(ca_key, passphrase))
    keys.ca.write_bytes(ca.public_bytes(serialization.Encoding.PEM))
    server_key = ec.generate_private_key(ec.SECP384R1())
    names = tuple(dict.fromkeys((study.host, *hosts, "localhost", "127.0.0.1")))
    own = server(names, server_key.public_key(), ca, ca_key, until)
    _private(keys.key, _pem(server_key))
    keys.certificate.write_bytes(own.public_bytes(serialization.Encoding.PEM))
    for site in study.sites:
        keys.site(site).mkdir(mode=0o700)
        keys.public(site).write_bytes(_handed_over(keys, site, path, keys.site(site)))
    return keys


def renew(study: Study, path: Path, folder: Path, site: str) -> Keys:
    """Make one site's key anew, or for the first time; the old one is not accepted from the next start on."""
    keys = Keys(folder)
    if site not in study.sites:
        known = f"{closest(site, study.sites)}; it has {listing(study.sites)}"
        raise StudyError(f"{site!r} is not a site of the study{known}")
    if not keys.ca.is_file():
        raise StudyError(f"{keys.ca} is missing: `unpooled study keys` without --site makes all keys first")
    fresh = Path(tempfile.mkdtemp(prefix=f".{site}-", dir=folder))  # readable by its owner only
    try:
        public = _handed_over(keys, site, path, fresh)
        if keys.site(site).exists():
            shutil.rmtree(keys.site(site))
        fresh.rename(keys.site(site))
    except BaseException:
        shutil.rmtree(fresh, ignore_errors=True)
        raise
    with whole_file(keys.public(site)) as file:
        file.write(public)
    return keys


def _handed_over(keys: Keys, site: str, path: Path, folder: Path) -> bytes:
    """Fill the folder that goes to a site; its public key."""
    secret = ec.generate_private_key(ec.SECP384R1())
    _private(folder / f"{site}.key", _openssh(secret))
    shutil.copyfile(keys.ca, folder / "ca.crt")
    shutil.copyfile(path, folder / "study.toml")
    public = secret.public_key().public_bytes(
        serialization.Encoding.OpenSSH, serialization.PublicFormat.OpenSSH
    )
    return public + f" {site}\n".encode()


def check_server(keys: Keys, host: str) -> None:
    """Refuse certificates that are missing, expired, of another authority or for another host."""
    for path in (keys.ca, keys.certificate, keys.key):
        if not path.is_file():
            raise StudyError(
                f"{path} is missing: `unpooled study keys` makes the keys, --keys says where they are"
            )
    ca, own = read_certificate(keys.ca), read_certificate(keys.certificate)
    for path, certificate in ((keys.ca, ca), (keys.certificate, own)):
        check_dates(path, certificate)
    try:
        own.verify_directly_issued_by(ca)
    except Exception:
        raise StudyError(f"{keys.certificate} was not signed by the authority of {keys.ca}") from None
    try:
        secret = serialization.load_pem_private_key(keys.key.read_bytes(), None)
    except (ValueError, TypeError) as error:
        raise StudyError(
            f"{keys.key} is not a private key that `unpooled study keys` made: {error}"
        ) from None
    if secret.public_key() != own.public_key():
        raise StudyError(f"{keys.key} is not the key of {keys.certificate}")
    if not isinstance(secret, ec.EllipticCurvePrivateKey):
        raise StudyError(f"{keys.key} is not a key on an elliptic curve, as `unpooled study keys` makes them")
    known = hosts_of(own)
    if host not in known and host not in ANYWHERE:
        raise StudyError(
            f"{keys.certificate} is for {', '.join(known)}, not for {host!r}, the study's address: "
            "make the keys anew, or correct the address"
        )


def check_site(key: Path, ca: Path) -> None:
    """Refuse a site's key or authority that is missing, expired or not what Flower takes."""
    for path in (key, ca):
        if not path.is_file():
            raise StudyError(
                f"{path} is missing: the coordinator hands over a folder with the key and ca.crt"
            )
    check_dates(ca, read_certificate(ca))
    try:
        own = serialization.load_ssh_private_key(key.read_bytes(), None)
    except (ValueError, TypeError) as error:
        raise StudyError(f"{key} is not a private key that `unpooled study keys` made: {error}") from None
    if not isinstance(own, ec.EllipticCurvePrivateKey) or not isinstance(own.curve, ec.SECP384R1):
        raise StudyError(f"{key} is not a key on the curve P-384, as `unpooled study keys` makes them")
    if os.name == "posix" and key.stat().st_mode & 0o077:
        raise StudyError(f"others can read the private key {key}: chmod 600 {key}")


def _pem(key: ec.EllipticCurvePrivateKey, passphrase: bytes | None = None) -> bytes:
    lock: serialization.KeySerializationEncryption = serialization.NoEncryption()
    if passphrase is not None:
        lock = serialization.BestAvailableEncryption(passphrase)
    return key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, lock)


def _openssh(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.OpenSSH, serialization.NoEncryption()
    )


def _private(path: Path, text: bytes) -> None:
    """Write a file that only its owner can read, from its first byte on."""
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        file.write(text)
